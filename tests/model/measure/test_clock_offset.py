"""The offset of another clock: worked by hand, and never further off than it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.model.measure.clock_offset import clock_offset


def test_the_quickest_exchange_counts() -> None:
    # Asked at 10, answered at 12.5 on the other clock, arrived at 11: 12.5 - 10.5 = 2.0 ± 0.5
    assert clock_offset([(10.0, 12.5, 11.0), (20.0, 29.0, 28.0)]) == pytest.approx((2.0, 0.5))


def test_own_time_that_went_backwards_is_left_out() -> None:
    assert clock_offset([(10.0, 3.0, 9.0), (20.0, 20.5, 21.0)]) == pytest.approx((0.0, 0.5))
    with pytest.raises(ValueError, match="backwards"):
        clock_offset([(10.0, 3.0, 9.0)])


@given(
    offset_s=st.floats(-1e4, 1e4),
    ways_s=st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=8),
)
def test_the_true_offset_lies_within_the_uncertainty(
    offset_s: float, ways_s: list[tuple[float, float]]
) -> None:
    exchanges = [(100.0, 100.0 + there + offset_s, 100.0 + there + back) for there, back in ways_s]
    found_s, uncertainty_s = clock_offset(exchanges)
    assert abs(found_s - offset_s) <= uncertainty_s + 1e-6
