"""Fits what matrix products and fused attention reach to measured ones, generation by generation.

Three constants a generation: floor, share of the peak, share of the bandwidth. The laws themselves
are the same everywhere. Cards that nobody measured get the geometric mean over generations.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tfdyno.core.choose.product_rates import ProductRate
from tfdyno.model.time.attention import AttentionCard
from tfdyno.model.time.peaks import peak_flops_per_s
from tfdyno.model.time.products import ProductCard, compute_seconds, rate_of
from tfdyno_truth.attention import attention_bytes, attention_seconds, together
from tfdyno_truth.product_rows import XLA, bench_memory_s, read_attention, read_products
from tfdyno_truth.product_scores import (
    Errors,
    KernelScores,
    Reached,
    errors_of,
    generation_of,
    mean_of,
    scores,
    solve,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tfdyno.core.choose.product_rates import ProductLaw, ProductRates, ProductUnit
    from tfdyno.model.time.peaks import Unit
    from tfdyno_truth.product_rows import MeasuredAttention, MeasuredProducts

    Floats = NDArray[np.float64]

UNITS: dict[str, tuple[Unit, ProductUnit]] = {
    "bf16": ("bf16_tensor", "half"),
    "f32": ("tf32_tensor", "tf32"),
    "fp8": ("fp8_tensor", "fp8"),
}
START = (2.5e-6, 0.7, 0.8)
START_OTHER = {"f32": (3e-6, 0.7), "fp8": (6e-6, 0.6, 1.0)}
"""Seconds of the benchmark, share of the peak, and passes over what is quantised."""
START_ATTENTION = (5e-6, 0.7, 1.0)
"""Floor, share of the peak, and passes of what writes the cache."""
QUANTISED_BYTES = 3.0
"""Of an element that is quantised to 8 bits: read in 16 bits, written in 8."""

One = TypeVar("One")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllProducts:
    """Everything that measured products and attentions say."""

    half: KernelScores
    tf32: KernelScores
    fp8: KernelScores
    attention: KernelScores
    alone: dict[str, tuple[float, Errors]]
    """Slug -> 16-bit products of a second source: seconds added to each, and errors then."""


def all_products(rates: ProductRates) -> AllProducts:
    """Fit and judge everything that was measured."""
    ours, others, law = read_products(), read_products(XLA), rates.law
    predict = functools.partial(predict_products, law=law)
    half = scores(
        _of_type(ours, "bf16"),
        lambda _name, cards: fit_half(cards, law),
        predict,
        lambda name, reached: mean_of(one for other, one in reached.items() if other != name),
    )

    def other(measured: Mapping[str, MeasuredProducts]) -> KernelScores:
        return scores(
            measured,
            lambda name, cards: fit_other(cards, law, half.reached[name]),
            predict,
            functools.partial(_scaled_from_others, half=half.reached),
        )

    return AllProducts(
        half=half,
        tf32=other(_of_type(others, "f32")),
        fp8=other(_of_type(ours, "fp8")),
        attention=scores(
            read_attention(),
            lambda name, cards: fit_attention(cards, rates, half.reached[name]),
            functools.partial(predict_attention, rates=rates),
            _attention_of_others,
        ),
        alone=scores_alone(_of_type(others, "bf16"), law, half.reached),
    )


def predict_products(measured: MeasuredProducts, reached: Reached, law: ProductLaw) -> Floats:
    """Seconds that the benchmark would show."""
    unit, kind = UNITS[measured.dtype]
    gpu = measured.gpu
    card = ProductCard(
        sm_count=gpu.sm_count,
        peak_flops_per_s=peak_flops_per_s(gpu, unit),
        rate=rate_row(kind, reached),
    )
    compute_s = compute_seconds(measured.products, card, law)
    memory_s = bench_memory_s(measured, reached.bandwidth_ratio)
    x = measured.products.m * measured.products.k
    bandwidth = reached.bandwidth_ratio * gpu.memory_bytes_per_s
    extra_s = reached.extra_s + reached.passes * QUANTISED_BYTES * x / bandwidth
    return together(compute_s, memory_s, reached.floor_s, law) + extra_s


def predict_attention(measured: MeasuredAttention, reached: Reached, rates: ProductRates) -> Floats:
    """Seconds that the benchmark would show, which writes a paged cache too."""
    gpu = measured.gpu
    card = AttentionCard(
        sm_count=gpu.sm_count,
        peak_flops_per_s=peak_flops_per_s(gpu, "bf16_tensor"),
        clock_hz=gpu.boost_hz,
        bandwidth_bytes_per_s=gpu.memory_bytes_per_s,
        rate=rate_row("attention", reached),
    )
    own_s = attention_seconds(measured.attentions, card, rates)
    moved_s = attention_bytes(measured.attentions) / gpu.memory_bytes_per_s
    return own_s + reached.passes * moved_s / reached.bandwidth_ratio


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


def fit_half(seen: Sequence[MeasuredProducts], law: ProductLaw) -> Reached:
    """Constants of 16-bit products."""

    def reached(x: list[float]) -> Reached:
        return Reached(floor_s=x[0], peak_ratio=x[1], bandwidth_ratio=x[2])

    return solve(seen, START, reached, functools.partial(predict_products, law=law))


def fit_other(seen: Sequence[MeasuredProducts], law: ProductLaw, half: Reached) -> Reached:
    """Share of the peak in TF32 or 8 bits; floor and bandwidth are those of 16 bits.

    What only the benchmark does, its launch or its quantisation, is fitted too and does not ship.
    """

    def reached(x: list[float]) -> Reached:
        return replace(half, extra_s=x[0], peak_ratio=x[1], passes=x[2] if len(x) > 2 else 0.0)

    start = START_OTHER[seen[0].dtype]
    return solve(seen, start, reached, functools.partial(predict_products, law=law))


def fit_attention(seen: Sequence[MeasuredAttention], rates: ProductRates, half: Reached) -> Reached:
    """Floor and share of the peak of fused attention; the bandwidth is that of products."""

    def reached(x: list[float]) -> Reached:
        return replace(half, floor_s=x[0], peak_ratio=x[1], passes=x[2])

    predict = functools.partial(predict_attention, rates=rates)
    return solve(seen, START_ATTENTION, reached, predict)


def ratio_of(reached: Mapping[str, Reached], half: Mapping[str, Reached]) -> float:
    """Geometric mean of the share of the peak over that in 16 bits."""
    logs = [np.log(found.peak_ratio / half[name].peak_ratio) for name, found in reached.items()]
    return float(np.exp(np.mean(logs)))


def _scaled_from_others(
    name: str, reached: Mapping[str, Reached], half: Mapping[str, Reached]
) -> Reached:
    ratio = ratio_of({other: one for other, one in reached.items() if other != name}, half)
    return replace(reached[name], peak_ratio=half[name].peak_ratio * ratio)


def _attention_of_others(name: str, reached: Mapping[str, Reached]) -> Reached:
    found = mean_of(one for other, one in reached.items() if other != name)
    return replace(found, passes=reached[name].passes)


def scores_alone(
    measured: Mapping[str, MeasuredProducts], law: ProductLaw, half: Mapping[str, Reached]
) -> dict[str, tuple[float, Errors]]:
    """Slug -> seconds that a kernel alone takes longer, and errors but for that; no refit."""
    found = {}
    for slug, one in measured.items():
        predicted = predict_products(one, half[generation_of(one.gpu)], law)
        gap_s = float(np.median(one.seconds - predicted))
        found[slug] = gap_s, errors_of([predicted + gap_s], [one])
    return found


def shipped_errors(rates: ProductRates) -> dict[str, Errors]:
    """Slug -> errors of the 16-bit constants that ship."""
    found = {}
    for slug, one in _of_type(read_products(), "bf16").items():
        rate = rate_of(one.gpu, "half", rates)
        reached = Reached(
            floor_s=rate.floor_s, peak_ratio=rate.peak_ratio, bandwidth_ratio=rate.bandwidth_ratio
        )
        found[slug] = errors_of([predict_products(one, reached, rates.law)], [one])
    return found


def _of_type(measured: Mapping[tuple[str, str], One], dtype: str) -> dict[str, One]:
    return {slug: one for (slug, kind), one in measured.items() if kind == dtype}
