"""profile/timeline: few points that keep the time and the steps, and the longest steps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.measure.step_facts import StallFacts
from tfdyno.profile.timeline import MOST_POINTS, MOST_STALLS, longest, timeline


@given(st.lists(st.floats(1e-4, 10.0), min_size=1, max_size=3000))
def test_joined_points_keep_the_time_and_the_steps(whole_s: list[float]) -> None:
    found = timeline(whole_s, [1] * len(whole_s))
    assert len(found.whole_s) <= MOST_POINTS
    counts = found.steps_each or (1,) * len(found.whole_s)
    assert sum(counts) == len(whole_s)
    total_s = math.fsum(s * n for s, n in zip(found.whole_s, counts, strict=True))
    assert total_s == pytest.approx(math.fsum(whole_s))


@given(st.lists(st.floats(1e-4, 10.0), max_size=200))
def test_stalls_are_long_few_and_in_order(whole_s: list[float]) -> None:
    steps = [StallFacts(step=at + 1, whole_s=one) for at, one in enumerate(whole_s)]
    found = longest(steps)
    assert len(found) <= MOST_STALLS
    assert [one.step for one in found] == sorted(one.step for one in found)
    left = max((one.whole_s for one in steps if one not in found), default=0.0)
    if len(found) == MOST_STALLS:
        assert left <= min(one.whole_s for one in found)
