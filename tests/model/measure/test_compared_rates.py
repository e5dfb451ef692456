"""The ratio of two rates by hand, and when nothing is claimed."""

from __future__ import annotations

import math

import pytest

from tfdyno.model.measure.comparison import compare_rates


def test_the_ratio_is_that_of_pairs() -> None:
    found = compare_rates([100.0, 50.0, 200.0], [200.0, 100.0, 400.0])
    assert found.ratio == pytest.approx(2.0)
    assert found.interval == pytest.approx((2.0, 2.0))  # every pair says the same
    assert found.verdict == "faster"
    assert found.paired


def test_the_interval_is_students_at_99_percent() -> None:
    # Logs of the ratios: 0, log 2, log 4; their mean log 2, their deviation log 2.
    found = compare_rates([1.0, 1.0, 1.0], [1.0, 2.0, 4.0])
    half = 9.92484 * math.log(2) / math.sqrt(3)  # t of 99.5 % with 2 degrees of freedom
    assert found.ratio == pytest.approx(2.0)
    assert found.interval == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)), rel=1e-4)
    assert found.verdict == "no_difference"


def test_less_than_a_percent_is_no_difference_however_sure() -> None:
    assert compare_rates([100.0] * 8, [100.9] * 8).verdict == "no_difference"
    assert compare_rates([100.0] * 8, [90.0] * 8).verdict == "slower"


def test_one_pair_is_not_enough() -> None:
    with pytest.raises(ValueError, match="two pairs"):
        compare_rates([1.0], [2.0])
