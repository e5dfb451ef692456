"""Whether a TensorFlow wheel runs on a GPU, for any pair, without a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import all_gpus
from tfdyno.catalog.software import check_release, releases, wheel_support
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.machine.wheels import supported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.software import WheelSupport

MOST_NAMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Which wheels run on which cards."""

    releases: tuple[str, ...]
    rows: tuple[SupportRow, ...]
    without: tuple[str, ...] = ()
    """Cards and boards for which no release has a wheel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportRow:
    """The wheels of several TensorFlow releases on cards that find the same code in them."""

    compute_capability: str
    names: tuple[str, ...]
    """A few cards of this capability, the first that came out before later ones."""
    verdicts: tuple[str, ...]
    """``WheelSupport.outcome``, one per release."""


def can_run(gpus: Iterable[Gpu], tensorflow: Iterable[str]) -> tuple[tuple[Gpu, WheelSupport], ...]:
    """Return the verdict for every pair of a card and a release.

    Raises:
        UsageError: A release is unknown, or a card is not NVIDIA's.
    """
    wanted = tuple(tensorflow)
    for release in wanted:
        check_release(release)
    return tuple((gpu, supported(gpu, release)) for gpu in map(_nvidia, gpus) for release in wanted)


def matrix(gpus: Iterable[Gpu] = (), tensorflow: Iterable[str] = ()) -> Matrix:
    """Return a row per compute capability, or per card where cards are named.

    Args:
        gpus: Cards; every NVIDIA card of the catalogue when empty.
        tensorflow: Releases; every one that was taken apart when empty.

    Raises:
        UsageError: A release is unknown, or a card is not NVIDIA's.
    """
    columns = tuple(tensorflow) or tuple(one for one in releases() if _listed(one))
    for release in columns:
        check_release(release)
    named = tuple(map(_nvidia, gpus))
    if named:
        rows = tuple(_row((gpu,), _verdicts(gpu, columns)) for gpu in named)
        return Matrix(releases=columns, rows=rows)
    alike: dict[tuple[str, tuple[str, ...]], list[Gpu]] = {}
    without = []
    for gpu in all_gpus():
        if gpu.vendor.upper() != "NVIDIA":
            continue
        if _has_no_wheel(gpu):
            without.append(gpu.name)
        else:
            alike.setdefault((gpu.compute_capability, _verdicts(gpu, columns)), []).append(gpu)
    ordered = sorted(alike.items(), key=lambda item: float(item[0][0]))
    rows = tuple(_row(tuple(cards), verdicts) for (_, verdicts), cards in ordered)
    return Matrix(releases=columns, rows=rows, without=tuple(without))


def _has_no_wheel(gpu: Gpu) -> bool:
    """Return whether no release runs, not even by compiling: boards with another processor."""
    found = wheel_support(gpu)
    return found.verdict == "cannot" and not found.smallest_runnable


def _listed(release: str) -> bool:
    try:
        check_release(release)
    except UsageError:
        return False
    return True


def _verdicts(gpu: Gpu, columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(supported(gpu, release).outcome for release in columns)


def _row(cards: tuple[Gpu, ...], verdicts: tuple[str, ...]) -> SupportRow:
    first = sorted(cards, key=lambda gpu: (gpu.release_year, len(gpu.name)))
    return SupportRow(
        compute_capability=cards[0].compute_capability,
        names=tuple(gpu.name for gpu in first[:MOST_NAMES]),
        verdicts=verdicts,
    )


def _nvidia(gpu: Gpu) -> Gpu:
    if gpu.vendor.upper() != "NVIDIA":
        raise UsageError(f"{gpu.name} is not an NVIDIA GPU", why="the wheels hold CUDA code only")
    return gpu
