"""core/product_rates: a table of rates is whole, or it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfdyno.core.choose.product_rates import (
    AttentionLaw,
    ProductLaw,
    ProductRate,
    ProductRates,
    ProductUnit,
)

LAW = ProductLaw(tile=64, prologue=64, lone_tiles=1.0, split_s=0.0, exponent=2.0, source="test")
ATTENTION = AttentionLaw(block=128, exp_per_clock=16.0, source="test")
UNITS: tuple[ProductUnit, ...] = ("half", "tf32", "fp8", "cuda", "attention")


def rate(unit: ProductUnit, *cards: str) -> ProductRate:
    return ProductRate(
        unit=unit,
        cards=cards,
        measured=bool(cards),
        floor_s=1e-6,
        peak_ratio=0.7,
        bandwidth_ratio=0.8,
        median_error_ratio=0.1,
        p90_error_ratio=0.3,
        source="test",
    )


COMMON = tuple(rate(unit) for unit in UNITS)


def test_every_unit_needs_a_row_for_all_other_cards() -> None:
    assert ProductRates(law=LAW, attention=ATTENTION, rates=COMMON).rates == COMMON
    with pytest.raises(ValueError, match="one row without cards for every unit"):
        ProductRates(law=LAW, attention=ATTENTION, rates=COMMON[1:])


def test_a_card_has_one_row_of_a_unit() -> None:
    both = (*COMMON, rate("half", "9.0 all"), rate("tf32", "9.0 all"))
    assert len(ProductRates(law=LAW, attention=ATTENTION, rates=both).rates) == 7
    with pytest.raises(ValueError, match="two rows of one unit"):
        ProductRates(
            law=LAW, attention=ATTENTION, rates=(*both, rate("half", "8.0 all", "9.0 all"))
        )


@pytest.mark.parametrize("peak_ratio", [0.0, 1.1])
def test_a_share_of_the_peak_that_no_card_reaches_is_refused(peak_ratio: float) -> None:
    with pytest.raises(ValueError, match="shares above 0, at most 1"):
        replace(COMMON[0], peak_ratio=peak_ratio)


@pytest.mark.parametrize(
    "wrong",
    [{"tile": 0, "prologue": 64}, {"tile": 64, "prologue": -1}],
)
def test_a_law_without_finite_times_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="need a tile above 0"):
        ProductLaw(**wrong, lone_tiles=1.0, split_s=0.0, exponent=2.0, source="test")
    with pytest.raises(ValueError, match="need a block and exponentials above 0"):
        replace(ATTENTION, exp_per_clock=0.0)
    with pytest.raises(ValueError, match="exponent: need at least 1"):
        replace(LAW, exponent=0.5)
