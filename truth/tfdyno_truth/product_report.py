"""What measured matrix products taught, as a data file and as sections of a page."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.choose.product_rates import ProductRate
from tfdyno_truth import all_reduces
from tfdyno_truth.cells import shares
from tfdyno_truth.product_scores import DRAWS, GENERATIONS, mean_of
from tfdyno_truth.products import ratio_of
from tfdyno_truth.sections import Section, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfdyno.core.choose.product_rates import (
        AttentionLaw,
        ProductLaw,
        ProductRates,
        ProductUnit,
    )
    from tfdyno_truth.product_scores import Errors, KernelScores, Reached
    from tfdyno_truth.products import AllProducts

AICONFIGURATOR = "NVIDIA aiconfigurator 095f58a (Apache-2.0)"
XLA = "XLA's table of measured products 183fa00 (Apache-2.0)"
HEAD = """\
# What matrix products reach on each kind of card; the formula stands in tfdyno.model.time.products.
# `tfdyno-truth products --write` writes all of it, and leaves the laws as they are.
"""
FITTED = "fit to {source}; errors on products left out"
MEAN = "geometric mean of the generations that were measured; errors with a generation left out"
SCALED = (
    "share in 16 bits x {ratio:.3f}, the mean ratio of the generations that were measured; "
    "errors: the worst with a generation left out, in 16 bits or in this type"
)
CUDA_RATIO = 0.9
"""Middle of 0.81 and 1: below 0.81 the products of published float32 BERT steps on V100 would take
longer than the whole steps did."""
UNSEEN = (
    "no product on CUDA cores was measured: peak_ratio between 0.81, below which the products of "
    "published float32 BERT steps on V100 would take longer than the whole steps did, and 1; the "
    "rest as in 16 bits; errors: their worst with a generation left out"
)
METHOD = """\
Seconds of {shapes:,} matrix products on each of {cards} cards, measured in 16 bits (cuBLAS in a
CUDA graph) for {source}, against the law of `tfdyno.model.time.products`. Three constants belong to
a generation: the floor, the share of the tensor cores' peak, the share of the memory bandwidth.

*Shapes left out*: constants fitted to a random half of the shapes, judged on the other half
({draws} draws). *Card left out*: constants of its generation's other cards, or where it has none,
the geometric mean of the other generations, which is what cards get that nobody measured.
*Generation left out*: that mean always. *Large* are products above 10¹¹ FLOPs; *bias* is theirs.
The form of the law was chosen on these shapes too, so expect a little more on others. The benchmark
takes six copies of the weights in turn; what comes from the L2 cache by that is counted here and is
not part of estimates."""
ALONE = """\
{source} also holds 375 products in bfloat16, of which no constant has seen any. But for the
time that a kernel takes longer alone than in a CUDA graph ({gaps}), the constants above
predict them with a median error of {errors}."""
OTHERS = """\
TF32 is from {xla}, FP8 from {source}, whose time includes turning 16 bits into 8 by one of
three frameworks, which differ from each other by 27 % in the median. That part, and the start of a
lone kernel, are fitted and not shipped. With the generation left out the share is the one in
16 bits times the other generations' mean ratio."""
FUSED = """\
Causal attention of whole sequences in 16 bits from {source}, median over frameworks whose kernels
differ by 1.3 to 2.0 times. Some write a paged cache too, whose passes are fitted and do not ship.
The floor is that of these kernels together; one without a cache has less. Of backward passes
nothing was measured."""
RULE = """\
What ships; cards without a line of their own take those of *others*, with the wider error."""
_SETS = ("shapes left out", "card left out", "generation left out")
_ERRORS = ("median", "90 % below", "large", "bias")


def rows_of(found: AllProducts) -> Iterator[ProductRate]:
    """Every row that ships, the one for all other cards of a unit first."""
    half = found.half
    common = mean_of(half.reached.values())
    yield _row("half", "", common, half.generation_out.values(), MEAN)
    for name, reached in half.reached.items():
        yield _fitted("half", half, name, reached)
    for unit, scores in _others(found):
        ratio = ratio_of(scores.reached, half.reached)
        rule = SCALED.format(ratio=ratio)
        unseen = _worst(half, scores)
        yield _row(unit, "", _scaled(common, ratio), [unseen], rule)
        for name, reached in half.reached.items():
            if name in scores.reached:
                yield _fitted(unit, scores, name, scores.reached[name])
            elif unit == "tf32":  # a card without FP8 multiplies in 16 bits instead
                yield _row(unit, name, _scaled(reached, ratio), [unseen], rule)
    cuda = dataclasses.replace(common, peak_ratio=CUDA_RATIO)
    yield _row("cuda", "", cuda, [_worst(half)], UNSEEN)
    attention = found.attention
    yield _row("attention", "", mean_of(attention.reached.values()),
               attention.generation_out.values(), MEAN)  # fmt: skip
    for name, reached in attention.reached.items():
        yield _fitted("attention", attention, name, reached)


def _others(found: AllProducts) -> tuple[tuple[ProductUnit, KernelScores], ...]:
    return ("tf32", found.tf32), ("fp8", found.fp8)


def text_of(shipped: ProductRates, rows: Iterable[ProductRate]) -> str:
    """The data file with other rows and the laws that ship.

    Raises:
        ValueError: A card has two rows of one unit, or a unit has none for all others.
    """
    table = dataclasses.replace(shipped, rates=tuple(rows))
    parts = [HEAD, "[law]", *_fields(table.law), "", "[attention]", *_fields(table.attention)]
    for rate in table.rates:
        parts += ["", "[[rates]]", *_fields(rate)]
    return "\n".join(parts) + "\n"


def sections(found: AllProducts) -> Iterator[Section]:
    """Errors of 16 bits, of the other types, and the constants."""
    half = found.half
    shapes = next(iter(half.card_out.values())).kernels
    method = METHOD.format(
        shapes=shapes, cards=len(half.card_out), source=AICONFIGURATOR, draws=DRAWS
    )
    alone = ALONE.format(
        source=XLA,
        gaps=", ".join(f"{slug} {gap * 1e6:.1f} µs" for slug, (gap, _) in found.alone.items()),
        errors=" and ".join(f"{errors.median:.1%}" for _, errors in found.alone.values()),
    )
    prose = "\n\n".join((answer(found), method, alone))
    yield Section(title="Matrix products", prose=prose, table=_scores(half))
    told = OTHERS.format(xla=XLA, source=AICONFIGURATOR)
    yield Section(title="Products in TF32", prose=told, table=_scores(found.tf32), below=True)
    yield Section(title="Products in FP8", table=_scores(found.fp8), below=True)
    told = FUSED.format(source=AICONFIGURATOR)
    yield Section(title="Fused attention", prose=told, table=_scores(found.attention), below=True)
    yield all_reduces.section(AICONFIGURATOR)
    rows = tuple(_constants(rate) for rate in rows_of(found))
    headings = ("unit", "cards", "floor, µs", "of the peak", "of the bandwidth", *_ERRORS[:2])
    table = Table(headings=headings, rows=rows, words=2)
    yield Section(title="Constants", prose=RULE, table=table, below=True)


def answer(found: AllProducts) -> str:
    """The errors in one sentence."""
    half = found.half
    worst = max(half.held_out, key=lambda slug: half.held_out[slug].median)
    out = [np.mean([one.median for one in each.values()])
           for each in (half.held_out, half.card_out, half.generation_out)]  # fmt: skip
    return (
        f"Median error in 16 bits, mean over cards: {out[0]:.1%} on products that the fit has "
        f"not seen (at most {half.held_out[worst].median:.1%}, on {worst}), {out[1]:.1%} on a "
        f"card that it has not seen, {out[2]:.1%} on a generation that it has not seen."
    )


def _fitted(unit: ProductUnit, scores: KernelScores, name: str, reached: Reached) -> ProductRate:
    source = FITTED.format(source=XLA if unit == "tf32" else AICONFIGURATOR)
    errors = [scores.held_out[slug] for slug in scores.held_out if scores.generations[slug] == name]
    return _row(unit, name, reached, errors, source, measured=True)


def _row(
    unit: ProductUnit,
    generation: str,
    reached: Reached,
    errors: Iterable[Errors],
    source: str,
    *,
    measured: bool = False,
) -> ProductRate:
    seen = list(errors)
    return ProductRate(
        unit=unit,
        cards=GENERATIONS.get(generation, ()),
        measured=measured,
        floor_s=_rounded(reached.floor_s),
        peak_ratio=_rounded(reached.peak_ratio),
        bandwidth_ratio=_rounded(reached.bandwidth_ratio),
        median_error_ratio=_rounded(float(np.mean([one.median for one in seen]))),
        p90_error_ratio=_rounded(float(np.mean([one.p90 for one in seen]))),
        source=source,
    )


def _worst(*scores: KernelScores) -> Errors:
    out = [one for each in scores for one in each.generation_out.values()]
    return max(out, key=lambda one: one.median)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _scaled(reached: Reached, ratio: float) -> Reached:
    return dataclasses.replace(reached, peak_ratio=reached.peak_ratio * ratio)


def _fields(noun: ProductLaw | AttentionLaw | ProductRate) -> list[str]:
    values = {one.name: getattr(noun, one.name) for one in dataclasses.fields(noun)}
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]


def _scores(scores: KernelScores) -> Table:
    ways = (scores.held_out, scores.card_out, scores.generation_out)
    rows = tuple(
        (slug, how, *shares(one.median, one.p90, one.large), f"{one.large_bias:+.1%}")
        for slug in scores.held_out
        for how, one in zip(_SETS, (way[slug] for way in ways), strict=True)
    )
    return Table(headings=("card", "how", *_ERRORS), rows=rows, words=2)


def _constants(rate: ProductRate) -> tuple[str, ...]:
    return (
        rate.unit,
        ", ".join(rate.cards) or "others",
        f"{rate.floor_s * 1e6:.2f}",
        *(f"{value:.3f}" for value in (rate.peak_ratio, rate.bandwidth_ratio)),
        *shares(rate.median_error_ratio, rate.p90_error_ratio),
    )
