"""Judges constants of kernels with shapes, cards and generations of cards left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tfdyno.core.choose.hardware import Gpu

Floats = NDArray[np.float64]
GENERATIONS = {
    "Ampere": ("8.0 all",),
    "Ada": ("8.9 full-rate",),
    "Hopper": ("9.0 all", "9.0 h800"),
    "Blackwell": ("10.0 all", "10.3 all"),
    "Blackwell RTX": ("12.0 full-rate",),
}
"""Rows of ``sm_rates.csv`` whose cards reach the same shares; each has a measured card."""
LARGE_FLOPS, LARGE_WEIGHT = 1e11, 2.0
"""Kernels above this many FLOPs count twice in a fit: they are what training waits for."""
SCALE = 0.02
"""Errors beyond this count linearly, so the fit follows the median."""
DRAWS = 4
"""Random halves of the shapes on which constants of the other half are judged."""


class Kernels(Protocol):
    """Measured kernels of one kind on one card; shapes in the same order on every card."""

    @property
    def gpu(self) -> Gpu:
        """The card."""

    @property
    def seconds(self) -> Floats:
        """Measured."""

    @property
    def flops(self) -> Floats:
        """Of each kernel."""

    def take(self, chosen: NDArray[np.intp]) -> Self:
        """Some of the kernels."""


K = TypeVar("K", bound=Kernels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Constants of one generation on one unit."""

    floor_s: float
    peak_ratio: float
    bandwidth_ratio: float
    extra_s: float = 0.0
    """Of the benchmark, not of the kernel: launching alone, or starting to quantise."""
    passes: float = 0.0
    """Times that the benchmark moves some of the bytes beside the kernel, at the bandwidth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of predicted seconds, relative."""

    kernels: int
    median: float
    p90: float
    large: float
    """Median of those above ``LARGE_FLOPS``."""
    large_bias: float
    """Median of the signed error of the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelScores:
    """What is said of one kind of kernel."""

    reached: dict[str, Reached]
    """Generation -> constants."""
    generations: dict[str, str]
    """Slug -> generation."""
    held_out: dict[str, Errors]
    """Slug -> errors on shapes that the fit has not seen."""
    card_out: dict[str, Errors]
    """Slug -> errors with the card left out: by its siblings, else by all other generations."""
    generation_out: dict[str, Errors]
    """Slug -> errors with its whole generation left out."""


def generation_of(gpu: Gpu) -> str:
    """The generation that a measured card belongs to."""
    card = f"{gpu.compute_capability} {gpu.rates.variant}"
    return next(name for name, cards in GENERATIONS.items() if card in cards)


def solve(
    seen: Sequence[K],
    start: Sequence[float],
    reached: Callable[[list[float]], Reached],
    predict: Callable[[K, Reached], Floats],
) -> Reached:
    """Constants by robust least squares on log(seconds).

    Args:
        seen: Kernels on cards of one generation.
        start: Where the search begins; all constants are above 0, the second is at most 1.
        reached: Constants from what is searched for.
        predict: Seconds that the benchmark would show.
    """
    flops = np.concatenate([one.flops for one in seen])
    weight = np.where(flops > LARGE_FLOPS, LARGE_WEIGHT, 1.0)

    def residuals(x: Floats) -> Floats:
        constants = reached(np.exp(x).tolist())
        logs = [np.log(predict(one, constants) / one.seconds) for one in seen]
        return np.concatenate(logs) * weight

    high = np.full(len(start), np.inf)
    high[1] = 0.0
    found = least_squares(
        residuals, np.log(start), bounds=(-np.inf, high), loss="soft_l1", f_scale=SCALE
    )
    return reached(np.exp(found.x).tolist())


def mean_of(reached: Iterable[Reached]) -> Reached:
    """Geometric means: every generation counts as much, however many cards it has."""
    logs = [np.log([one.floor_s, one.peak_ratio, one.bandwidth_ratio]) for one in reached]
    floor_s, peak_ratio, bandwidth_ratio = np.exp(np.mean(logs, axis=0)).tolist()
    return Reached(floor_s=floor_s, peak_ratio=peak_ratio, bandwidth_ratio=bandwidth_ratio)


def scores(
    measured: Mapping[str, K],
    fit: Callable[[str, Sequence[K]], Reached],
    predict: Callable[[K, Reached], Floats],
    guess: Callable[[str, Mapping[str, Reached]], Reached],
) -> KernelScores:
    """Fit every generation, and judge with something left out.

    Args:
        measured: Slug -> kernels.
        fit: Constants of a generation from kernels on its cards.
        predict: Seconds that the benchmark would show.
        guess: Constants of a generation from those of the others, which it must not look past
            but for what is the benchmark's own.
    """
    groups = _groups(measured)
    reached = {name: fit(name, cards) for name, cards in groups.items()}
    card_out, generation_out = {}, {}
    for slug, one in measured.items():
        mine = generation_of(one.gpu)
        others = guess(mine, reached)
        siblings = [card for card in groups[mine] if card is not one]
        known = fit(mine, siblings) if siblings else others
        card_out[slug] = errors_of([predict(one, known)], [one])
        generation_out[slug] = errors_of([predict(one, others)], [one])
    return KernelScores(
        reached=reached,
        generations={slug: generation_of(one.gpu) for slug, one in measured.items()},
        held_out=_held_out(measured, fit, predict),
        card_out=card_out,
        generation_out=generation_out,
    )


def errors_of(predicted: Sequence[Floats], measured: Sequence[Kernels]) -> Errors:
    """Errors over all draws of one card."""
    seconds = np.concatenate([one.seconds for one in measured])
    flops = np.concatenate([one.flops for one in measured])
    signed = np.concatenate(predicted) / seconds - 1.0
    large = signed[flops > LARGE_FLOPS]
    return Errors(
        kernels=len(signed),
        median=float(np.median(np.abs(signed))),
        p90=float(np.quantile(np.abs(signed), 0.9)),
        large=float(np.median(np.abs(large))),
        large_bias=float(np.median(large)),
    )


def _groups(measured: Mapping[str, K]) -> dict[str, list[K]]:
    found: dict[str, list[K]] = {}
    for one in measured.values():
        found.setdefault(generation_of(one.gpu), []).append(one)
    return found


def _held_out(
    measured: Mapping[str, K],
    fit: Callable[[str, Sequence[K]], Reached],
    predict: Callable[[K, Reached], Floats],
) -> dict[str, Errors]:
    """Errors on shapes that a fit to the other half has not seen, over some random halves."""
    random = np.random.default_rng(0)
    predicted: dict[str, list[Floats]] = {slug: [] for slug in measured}
    judged: dict[str, list[K]] = {slug: [] for slug in measured}
    for _draw in range(DRAWS):
        chance = random.random(max(len(one.seconds) for one in measured.values()))
        halves = {
            slug: chance[: len(one.seconds)] < np.median(chance) for slug, one in measured.items()
        }
        seen = {slug: one.take(np.flatnonzero(halves[slug])) for slug, one in measured.items()}
        known = {name: fit(name, cards) for name, cards in _groups(seen).items()}
        for slug, one in measured.items():
            unseen = one.take(np.flatnonzero(~halves[slug]))
            judged[slug].append(unseen)
            predicted[slug].append(predict(unseen, known[generation_of(one.gpu)]))
    return {slug: errors_of(predicted[slug], judged[slug]) for slug in measured}
