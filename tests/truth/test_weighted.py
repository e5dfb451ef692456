from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno_truth.weighted import quantile


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1.0), (0.25, 1.0), (0.26, 2.0), (0.5, 2.0), (0.51, 7.0), (1.0, 7.0)]
)
def test_a_value_holds_the_share_of_weight_up_to_it(share: float, value: float) -> None:
    assert quantile([7.0, 1.0, 2.0], [4.0, 2.0, 2.0], share) == value


def test_nothing_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="no value"):
        quantile([], [], 0.5)


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(0.1, 9)), min_size=1), st.floats(0.01, 1.0))
def test_at_least_the_share_lies_at_or_below_it(
    pairs: list[tuple[float, float]], share: float
) -> None:
    values, weights = zip(*pairs, strict=True)
    found = quantile(values, weights, share)
    below = sum(weight for value, weight in pairs if value <= found)
    assert below >= share * sum(weights) * (1.0 - 1e-9)
