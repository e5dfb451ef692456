"""Typical times stand against outliers, and bursts are not taken for steps of no length."""

from __future__ import annotations

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.rules.bottleneck.steady import half_width, in_bursts, typical


def test_one_slow_step_in_ten_changes_nothing() -> None:
    assert typical([0.010] * 9 + [1.0]) == 0.010


def test_bursts_of_four_batches_take_their_mean() -> None:
    # three steps that find their batch ready and one that waits for four of them: 40 / 4 ms
    times = [0.0, 0.0, 0.0, 0.040] * 8
    assert typical(times) == pytest.approx(0.010)
    assert in_bursts(times)


def test_bursts_too_few_for_blocks_take_their_mean() -> None:
    assert typical([0.0, 0.0, 0.0, 0.040]) == pytest.approx(0.010)


def test_no_step_is_told() -> None:
    with pytest.raises(UsageError, match="no steady step was seen"):
        typical([])


def test_half_width_of_few_values_is_half_of_their_range() -> None:
    assert half_width([1.0, 2.0, 4.0]) == 1.5


def test_half_width_of_100_values_spans_20_ranks() -> None:
    # ranks 50 +- 9.8: the 41st and the 60th value of 0 .. 99, that is 40 and 59
    assert half_width([float(n) for n in range(100)]) == pytest.approx((59 - 40) / 2)


def test_one_value_has_no_width() -> None:
    assert half_width([3.0]) == 0.0
