"""Which of several ways to run a step is faster, as far as two ranges tell: figures by hand."""

from __future__ import annotations

import math

import pytest

from tfdyno.core.base.interval import Interval
from tfdyno.model.choose.backend_speed import fastest, speed_of


def of(low: float, best: float, high: float) -> Interval:
    return Interval(low=low, best=best, high=high)


def test_the_fastest_has_the_shortest_best_estimate() -> None:
    assert fastest([of(1, 3, 4), of(1.5, 2, 9), of(2, 5, 6)]) == 1


def test_a_range_below_that_of_every_other_is_faster() -> None:
    # 4 over 2; half widths ln 2 below and above for both: exp(sqrt 2 ln 2) = 2^1.4142 = 2.665
    verdict, ratio = speed_of(of(1, 2, 3.9), [of(4, 8, 16), of(8, 16, 32)])
    assert verdict == "faster"
    assert ratio.best == 4.0
    assert ratio.low == pytest.approx(4 / math.exp(math.hypot(math.log(2), math.log(1.95))))
    assert ratio.high == pytest.approx(4 * 2 ** math.sqrt(2))


def test_a_range_above_that_of_the_fastest_is_slower_whatever_the_others() -> None:
    verdict, ratio = speed_of(of(5, 6, 7), [of(2, 3, 4.9), of(6, 9, 12)])
    assert (verdict, ratio.best) == ("slower", 0.5)


def test_ranges_that_touch_tell_no_difference() -> None:
    assert speed_of(of(1, 2, 4), [of(4, 8, 16)])[0] == "no_difference"
    assert speed_of(of(4, 8, 16), [of(1, 2, 4)])[0] == "no_difference"


def test_another_way_that_may_be_as_fast_tells_no_difference() -> None:
    """The best estimates name one as the fastest; the other's range reaches as low."""
    verdict, _ = speed_of(of(1, 2, 3), [of(4, 5, 6), of(2.5, 6, 12)])
    assert verdict == "no_difference"


def test_what_is_known_exactly_has_a_ratio_without_a_range() -> None:
    _, ratio = speed_of(of(1, 1, 1), [of(2, 2, 2)])
    assert (ratio.low, ratio.best, ratio.high) == (2.0, 2.0, 2.0)
