"""What is asked of a service, and what its answer has."""

from __future__ import annotations

import pytest
from tests.services import CHEAP, GOAL, size


def test_the_peak_is_the_mean_of_the_day_times_the_factor() -> None:
    assert GOAL.mean_per_s == pytest.approx(100.0)  # 8,640,000 / 86,400
    assert GOAL.peak_per_s == pytest.approx(300.0)


def test_a_pick_is_found_by_its_title() -> None:
    found = size().pick("cheapest")
    assert found is not None
    assert found.candidate is CHEAP
    assert size(picks=()).pick("balanced") is None
