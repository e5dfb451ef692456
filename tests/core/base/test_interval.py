"""Intervals stay ordered; affine quantities add and scale as straight lines do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.interval import Interval, Scaled

NUMBERS = st.floats(-1e12, 1e12)
INTERVALS = st.lists(NUMBERS, min_size=3, max_size=3).map(
    lambda found: Interval(**dict(zip(("low", "best", "high"), sorted(found), strict=True)))
)
LINES = st.builds(Scaled, fixed=NUMBERS, per_sample=NUMBERS)


@pytest.mark.parametrize("numbers", [(2, 1, 3), (1, 3, 2), (3, 2, 1), (1, math.nan, 3)])
def test_an_interval_out_of_order_is_refused(numbers: tuple[float, float, float]) -> None:
    low, best, high = numbers
    with pytest.raises(ValueError, match=rf"need low <= best <= high, got {low}, {best}, {high}"):
        Interval(low=low, best=best, high=high)


def test_a_certain_quantity_is_an_interval_of_no_width() -> None:
    assert Interval(low=2.0, best=2.0, high=2.0).high == 2.0


def test_times_and_plus_move_all_three_numbers() -> None:
    step_s = Interval(low=0.8, best=1.0, high=1.5)
    assert step_s.times(10) == Interval(low=8.0, best=10.0, high=15.0)
    assert step_s.plus(1.0) == Interval(low=1.8, best=2.0, high=2.5)


@given(INTERVALS, st.floats(0, 1e6), NUMBERS)
def test_scaling_and_shifting_keep_the_order(
    interval: Interval, factor: float, amount: float
) -> None:
    moved = interval.times(factor).plus(amount)
    assert moved.low <= moved.best <= moved.high


def test_a_negative_factor_would_turn_the_interval_round() -> None:
    with pytest.raises(ValueError, match="need low <= best <= high"):
        Interval(low=1.0, best=2.0, high=3.0).times(-1)


def test_an_affine_quantity_at_a_batch() -> None:
    assert Scaled(fixed=100.0, per_sample=4.0).at(32) == 228.0  # 100 + 4 * 32
    assert Scaled().at(32) == 0.0
    assert Scaled(fixed=100.0, per_sample=4.0).times(-3) == Scaled(fixed=-300.0, per_sample=-12.0)


@given(LINES, LINES, st.integers(1, 1 << 20))
def test_the_sum_at_a_batch_is_the_sum_of_both_there(a: Scaled, b: Scaled, batch: int) -> None:
    total = a.at(batch) + b.at(batch)
    assert (a + b).at(batch) == pytest.approx(total, rel=1e-9, abs=1e-3 * batch)
