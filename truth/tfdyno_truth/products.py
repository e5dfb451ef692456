"""Fits what matrix products reach to measured ones, and judges it with products and cards left out.

Three constants a generation of cards: floor, share of the peak, share of the bandwidth. The law
itself is the same everywhere. Cards that nobody measured get the geometric mean over generations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from tfdyno.core.product_rates import ProductRate
from tfdyno.model.peaks import peak_flops_per_s
from tfdyno.model.products import ProductCard, compute_seconds, rate_of, together
from tfdyno_truth.product_rows import XLA, bench_memory_s, read_products

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tfdyno.core.hardware import Gpu
    from tfdyno.core.product_rates import ProductLaw, ProductRates, ProductUnit
    from tfdyno.model.peaks import Unit
    from tfdyno_truth.product_rows import Measured

    Floats = NDArray[np.float64]

GENERATIONS = {
    "Ampere": ("8.0 all",),
    "Ada": ("8.9 full-rate",),
    "Hopper": ("9.0 all", "9.0 h800"),
    "Blackwell": ("10.0 all", "10.3 all"),
    "Blackwell RTX": ("12.0 full-rate",),
}
"""Rows of ``sm_rates.csv`` whose cards reach the same shares; each has a measured card."""
UNITS: dict[str, tuple[Unit, ProductUnit]] = {
    "bf16": ("bf16_tensor", "half"),
    "f32": ("tf32_tensor", "tf32"),
    "fp8": ("fp8_tensor", "fp8"),
}
START = np.log([2.5e-6, 0.7, 0.8])
LARGE_FLOPS, LARGE_WEIGHT = 1e11, 2.0
"""Products above this many FLOPs count twice: they are what training waits for."""
SCALE = 0.02
"""Errors beyond this count linearly, so the fit follows the median."""
DRAWS = 4
"""Random halves of the shapes on which constants of the other half are judged."""
QUANTISED_BYTES = 3.0
"""Of an element that is quantised to 8 bits: read in 16 bits, written in 8."""
START_OTHER = {"f32": np.log([3e-6, 0.7]), "fp8": np.log([6e-6, 0.6, 1.0])}
"""Seconds of the benchmark, share of the peak, and passes over what is quantised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Constants of one generation on one unit."""

    floor_s: float
    peak_ratio: float
    bandwidth_ratio: float
    extra_s: float = 0.0
    """Of the benchmark, not of the product: launching alone, or starting to quantise."""
    passes: float = 0.0
    """Times that the benchmark moves ``QUANTISED_BYTES`` of x at the bandwidth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of predicted seconds, relative."""

    products: int
    median: float
    p90: float
    large: float
    """Median of those above ``LARGE_FLOPS``."""
    large_bias: float
    """Median of the signed error of the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductScores:
    """What is said of one type."""

    dtype: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AllProducts:
    """Everything that measured products say."""

    half: ProductScores
    tf32: ProductScores
    fp8: ProductScores
    alone: dict[str, tuple[float, Errors]]
    """Slug -> 16-bit products of a second source: seconds added to each, and errors then."""


def generation_of(gpu: Gpu) -> str:
    """The generation that a measured card belongs to."""
    card = f"{gpu.compute_capability} {gpu.rates.variant}"
    return next(name for name, cards in GENERATIONS.items() if card in cards)


def predict(measured: Measured, reached: Reached, law: ProductLaw) -> Floats:
    """Seconds that the benchmark would show."""
    unit, kind = UNITS[measured.dtype]
    gpu = measured.gpu
    card = ProductCard(
        sm_count=gpu.sm_count,
        peak_flops_per_s=peak_flops_per_s(gpu, unit),
        bandwidth_bytes_per_s=gpu.memory_bytes_per_s,
        rate=rate_row(kind, reached),
    )
    compute_s = compute_seconds(measured.products, card, law)
    memory_s = bench_memory_s(measured, reached.bandwidth_ratio)
    x = measured.products.m * measured.products.k
    bandwidth = reached.bandwidth_ratio * gpu.memory_bytes_per_s
    extra_s = reached.extra_s + reached.passes * QUANTISED_BYTES * x / bandwidth
    return together(compute_s, memory_s, reached.floor_s, law) + extra_s


def rate_row(unit: ProductUnit, reached: Reached) -> ProductRate:
    """A row of constants that says nothing of its errors."""
    return ProductRate(
        unit=unit,
        cards=(),
        measured=False,
        floor_s=reached.floor_s,
        peak_ratio=min(reached.peak_ratio, 1.0),
        bandwidth_ratio=min(reached.bandwidth_ratio, 1.0),
        median_error_ratio=0.0,
        p90_error_ratio=0.0,
        source="",
    )


def fit(seen: Sequence[Measured], law: ProductLaw, half: Reached | None = None) -> Reached:
    """Constants of one generation by robust least squares on log(seconds).

    Args:
        seen: Products of one type on cards of the generation.
        law: How tiles fill a card.
        half: What the generation reaches in 16 bits, for other types: floor and bandwidth are
            taken from it. What only the benchmark does is fitted then and does not ship.
    """
    weight = np.where(np.concatenate([one.products.flops for one in seen]) > LARGE_FLOPS,
                      LARGE_WEIGHT, 1.0)  # fmt: skip
    start = START if half is None else START_OTHER[seen[0].dtype]

    def residuals(x: Floats) -> Floats:
        reached = _reached(x, half)
        logs = [np.log(predict(one, reached, law) / one.seconds) for one in seen]
        return np.concatenate(logs) * weight

    found = least_squares(residuals, start, loss="soft_l1", f_scale=SCALE)
    return _reached(found.x, half)


def _reached(x: Floats, half: Reached | None) -> Reached:
    values = np.exp(x).tolist()
    if half is None:
        return Reached(floor_s=values[0], peak_ratio=values[1], bandwidth_ratio=values[2])
    passes = values[2] if len(values) > 2 else 0.0
    return replace(half, peak_ratio=values[1], extra_s=values[0], passes=passes)


def mean_of(reached: Iterable[Reached]) -> Reached:
    """Geometric means: every generation counts as much, however many cards it has."""
    logs = [np.log([one.floor_s, one.peak_ratio, one.bandwidth_ratio]) for one in reached]
    return _reached(np.mean(logs, axis=0), None)


def errors_of(predicted: Sequence[Floats], measured: Sequence[Measured]) -> Errors:
    """Errors over all draws of one card."""
    seconds = np.concatenate([one.seconds for one in measured])
    flops = np.concatenate([one.products.flops for one in measured])
    signed = np.concatenate(predicted) / seconds - 1.0
    large = signed[flops > LARGE_FLOPS]
    return Errors(
        products=len(signed),
        median=float(np.median(np.abs(signed))),
        p90=float(np.quantile(np.abs(signed), 0.9)),
        large=float(np.median(np.abs(large))),
        large_bias=float(np.median(large)),
    )


def scores_half(measured: Mapping[str, Measured], law: ProductLaw) -> ProductScores:
    """Fit and judge 16-bit products.

    Args:
        measured: Slug -> products of one type, the same shapes in the same order on every card.
        law: How tiles fill a card.
    """
    groups = _groups(measured)
    reached = {name: fit(cards, law) for name, cards in groups.items()}
    card_out, generation_out = {}, {}
    for slug, one in measured.items():
        mine = generation_of(one.gpu)
        others = mean_of(found for name, found in reached.items() if name != mine)
        siblings = [card for card in groups[mine] if card is not one]
        known = fit(siblings, law) if siblings else others
        card_out[slug] = errors_of([predict(one, known, law)], [one])
        generation_out[slug] = errors_of([predict(one, others, law)], [one])
    return ProductScores(
        dtype="bf16",
        reached=reached,
        generations={slug: generation_of(one.gpu) for slug, one in measured.items()},
        held_out=_held_out(measured, law, None),
        card_out=card_out,
        generation_out=generation_out,
    )


def scores_other(
    measured: Mapping[str, Measured], law: ProductLaw, half: Mapping[str, Reached]
) -> ProductScores:
    """Fit and judge products of another type, given what each generation reaches in 16 bits.

    With a generation left out its share is that in 16 bits times the others' mean ratio; what only
    the benchmark does stays as it is.
    """
    groups = _groups(measured)
    reached = {name: fit(cards, law, half[name]) for name, cards in groups.items()}
    card_out, generation_out = {}, {}
    for slug, one in measured.items():
        mine = generation_of(one.gpu)
        ratio = ratio_of({n: found for n, found in reached.items() if n != mine}, half)
        others = replace(reached[mine], peak_ratio=half[mine].peak_ratio * ratio)
        siblings = [card for card in groups[mine] if card is not one]
        known = fit(siblings, law, half[mine]) if siblings else others
        card_out[slug] = errors_of([predict(one, known, law)], [one])
        generation_out[slug] = errors_of([predict(one, others, law)], [one])
    return ProductScores(
        dtype=next(iter(measured.values())).dtype,
        reached=reached,
        generations={slug: generation_of(one.gpu) for slug, one in measured.items()},
        held_out=_held_out(measured, law, half),
        card_out=card_out,
        generation_out=generation_out,
    )


def ratio_of(reached: Mapping[str, Reached], half: Mapping[str, Reached]) -> float:
    """Geometric mean of the share of the peak over that in 16 bits."""
    logs = [np.log(found.peak_ratio / half[name].peak_ratio) for name, found in reached.items()]
    return float(np.exp(np.mean(logs)))


def _groups(measured: Mapping[str, Measured]) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for one in measured.values():
        found.setdefault(generation_of(one.gpu), []).append(one)
    return found


def _held_out(
    measured: Mapping[str, Measured], law: ProductLaw, half: Mapping[str, Reached] | None
) -> dict[str, Errors]:
    """Errors on the shapes that a fit to the other half has not seen, over some random halves."""
    random = np.random.default_rng(0)
    predicted: dict[str, list[Floats]] = {slug: [] for slug in measured}
    judged: dict[str, list[Measured]] = {slug: [] for slug in measured}
    for _draw in range(DRAWS):
        order = random.permutation(max(len(one) for one in measured.values()))
        seen, unseen = np.array_split(order, 2)
        parts = {slug: one.take(seen) for slug, one in measured.items()}
        for name, cards in _groups(parts).items():
            known = fit(cards, law, half[name] if half else None)
            for slug, one in measured.items():
                if generation_of(one.gpu) == name:
                    judged[slug].append(one.take(unseen))
                    predicted[slug].append(predict(judged[slug][-1], known, law))
    return {slug: errors_of(predicted[slug], judged[slug]) for slug in measured}


def scores_alone(
    measured: Mapping[str, Measured], law: ProductLaw, half: Mapping[str, Reached]
) -> dict[str, tuple[float, Errors]]:
    """Slug -> seconds that a kernel alone takes longer, and errors but for that; no refit."""
    found = {}
    for slug, one in measured.items():
        predicted = predict(one, half[generation_of(one.gpu)], law)
        gap_s = float(np.median(one.seconds - predicted))
        found[slug] = gap_s, errors_of([predicted + gap_s], [one])
    return found


def all_products(law: ProductLaw) -> AllProducts:
    """Fit and judge everything that was measured."""
    ours, others = read_products(), read_products(XLA)
    half = scores_half(_of_type(ours, "bf16"), law)
    return AllProducts(
        half=half,
        tf32=scores_other(_of_type(others, "f32"), law, half.reached),
        fp8=scores_other(_of_type(ours, "fp8"), law, half.reached),
        alone=scores_alone(_of_type(others, "bf16"), law, half.reached),
    )


def shipped_errors(rates: ProductRates) -> dict[str, Errors]:
    """Slug -> errors of the 16-bit constants that ship."""
    found = {}
    for slug, one in _of_type(read_products(), "bf16").items():
        rate = rate_of(one.gpu, "half", rates)
        reached = Reached(
            floor_s=rate.floor_s, peak_ratio=rate.peak_ratio, bandwidth_ratio=rate.bandwidth_ratio
        )
        found[slug] = errors_of([predict(one, reached, rates.law)], [one])
    return found


def _of_type(measured: Mapping[tuple[str, str], Measured], dtype: str) -> dict[str, Measured]:
    return {slug: one for (slug, kind), one in measured.items() if kind == dtype}
