"""Whether a TensorFlow wheel runs on a GPU, for any pair, without a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import all_gpus
from tfdyno.catalog.software import check_release, releases, wheel_support
from tfdyno.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.hardware import Gpu
    from tfdyno.core.software import WheelSupport

MOST_NAMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportRow:
    """The wheels of several TensorFlow releases on cards that find the same code in them."""

    compute_capability: str
    names: tuple[str, ...]
    """A few cards of this capability, the newest first."""
    verdicts: tuple[str, ...]
    """native, jit, fails, cannot or unknown, one per release; ``fails``: the kernels could be
    compiled, but the CUDA libraries beside them are older than the card."""


def can_run(gpus: Iterable[Gpu], tensorflow: Iterable[str]) -> tuple[tuple[Gpu, WheelSupport], ...]:
    """The verdict for every pair of a card and a release.

    Raises:
        UsageError: A release is unknown, or a card is not NVIDIA's.
    """
    wanted = tuple(tensorflow)
    for release in wanted:
        check_release(release)
    return tuple(
        (gpu, wheel_support(gpu, release)) for gpu in map(_nvidia, gpus) for release in wanted
    )


def matrix(gpus: Iterable[Gpu] = ()) -> tuple[tuple[str, ...], tuple[SupportRow, ...]]:
    """Releases, and a row per compute capability (or per card, where cards are named)."""
    columns = tuple(one for one in releases() if _listed(one))
    named = tuple(map(_nvidia, gpus))
    if named:
        return columns, tuple(_row((gpu,), _verdicts(gpu, columns)) for gpu in named)
    alike: dict[tuple[str, tuple[str, ...]], list[Gpu]] = {}
    for gpu in all_gpus():
        if gpu.vendor.upper() == "NVIDIA":
            alike.setdefault((gpu.compute_capability, _verdicts(gpu, columns)), []).append(gpu)
    ordered = sorted(alike.items(), key=lambda item: float(item[0][0]))
    return columns, tuple(_row(tuple(cards), verdicts) for (_, verdicts), cards in ordered)


def _listed(release: str) -> bool:
    try:
        check_release(release)
    except UsageError:
        return False
    return True


def _verdicts(gpu: Gpu, columns: tuple[str, ...]) -> tuple[str, ...]:
    found = (wheel_support(gpu, release) for release in columns)
    return tuple("fails" if one.has_old_libraries else one.verdict for one in found)


def _row(cards: tuple[Gpu, ...], verdicts: tuple[str, ...]) -> SupportRow:
    newest = sorted(cards, key=lambda gpu: gpu.release_year, reverse=True)
    return SupportRow(
        compute_capability=cards[0].compute_capability,
        names=tuple(gpu.name for gpu in newest[:MOST_NAMES]),
        verdicts=verdicts,
    )


def _nvidia(gpu: Gpu) -> Gpu:
    if gpu.vendor.upper() != "NVIDIA":
        raise UsageError(f"{gpu.name} is not an NVIDIA GPU", why="the wheels hold CUDA code only")
    return gpu
