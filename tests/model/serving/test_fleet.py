"""From a replica to a fleet."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.serving_size import Replica, ServingGoal, ServingOverhead
from tfdyno.model.serving.fleet import (
    answered,
    autoscaling,
    call_times,
    capacity,
    curve,
    machines_for,
)

NOTHING = ServingOverhead(
    call_s=0.0, front_request_s=1e-6, front_number_s=0.0, front_most_busy_ratio=0.7
)
GOAL = ServingGoal(requests_per_day=8_640_000, p99_s=0.05)
"""100 requests per second, 300 at the peak."""
LATENCY_S = {
    rows: Interval(low=0.8 * time, best=time, high=1.25 * time)
    for rows, time in {1: 0.004, 8: 0.008, 32: 0.016}.items()
}


@cache
def sized(goal: ServingGoal = GOAL, overhead: ServingOverhead = NOTHING,
          host_s: float = 1e-6) -> tuple[Replica, dict[int, float], dict[int, float]]:  # fmt: skip
    best_s, high_s = (
        call_times(LATENCY_S, goal.rows_per_request, overhead, high=high) for high in (False, True)
    )
    done = capacity(high_s, host_s, goal, overhead)
    replica = Replica(
        gpu="card", gpu_name="Card", latency_s=LATENCY_S, latency_source="estimated",
        max_batch_size=done.batching.max_batch_size * goal.rows_per_request,
        max_delay_s=done.batching.max_delay_s, most_per_s=done.most_per_s, host_s=host_s,
        bound_by=done.bound_by, reason="",
    )  # fmt: skip
    return replica, best_s, high_s


def test_the_promise_is_held_by_the_high_end_and_the_best_is_told() -> None:
    replica, best_s, high_s = sized()
    met = answered(best_s, high_s, replica, replica.most_per_s * 0.999, 1)
    assert met is not None
    assert met.p99_s < met.p99_high_s <= GOAL.p99_s * 1.01
    assert met.p99_high_s > 0.9 * GOAL.p99_s
    assert met.utilisation_ratio == pytest.approx(0.999)


def test_a_request_of_eight_rows_is_a_batch_of_eight() -> None:
    goal = replace(GOAL, rows_per_request=8)
    assert call_times(LATENCY_S, 8, NOTHING, high=False) == pytest.approx({1: 0.008, 4: 0.016})
    one, eight = sized(), sized(goal)
    assert eight[0].max_batch_size % 8 == 0
    assert eight[0].most_per_s < one[0].most_per_s


def test_handing_a_batch_over_is_in_its_time() -> None:
    slower = replace(NOTHING, call_s=0.004)
    assert call_times(LATENCY_S, 1, slower, high=False)[1] == pytest.approx(0.008)


def test_the_front_bounds_what_a_quick_model_carries() -> None:
    # 2 ms of a request in one process, at most 70 % busy: 350 requests per second
    replica, _, _ = sized(host_s=0.002)
    assert replica.bound_by == "host"
    assert replica.most_per_s == pytest.approx(350.0, rel=0.02)


def test_a_front_that_takes_all_of_the_time_is_named() -> None:
    done = capacity({1: 0.001}, 0.02, GOAL, NOTHING)
    assert not done.batching.holds
    assert done.batching.reason.startswith("The front takes 20 ms to read a request")


def test_as_many_machines_as_the_peak_needs_and_no_fewer() -> None:
    replica = replace(sized()[0], most_per_s=99.0)
    assert machines_for(replica, 1, GOAL) == 4  # 300 / 99 = 3.03
    assert machines_for(replica, 4, GOAL) == 1
    assert machines_for(replace(replica, most_per_s=0.0), 1, GOAL) == 0


@settings(max_examples=25, deadline=None)
@given(factor=st.floats(1.0, 50.0), more=st.floats(1.0, 10.0))
def test_more_requests_never_need_fewer_machines(factor: float, more: float) -> None:
    replica = replace(sized()[0], most_per_s=77.0)
    less = replace(GOAL, peak_factor=factor)
    greater = replace(less, requests_per_day=less.requests_per_day * more)
    assert machines_for(replica, 2, greater) >= machines_for(replica, 2, less)


def test_an_autoscaler_keeps_room_for_a_rise_and_the_spare_machines() -> None:
    replica = replace(sized()[0], most_per_s=100.0)
    found = autoscaling(replica, replace(GOAL, spare_machines=1))
    assert found.target_requests_per_s == pytest.approx(70.0)
    assert found.min_replicas == 2  # 100 / 70, rounded up
    assert found.max_replicas == 6  # 300 / 70 rounded up, and a spare one


def test_a_curve_rises_with_the_rate_and_passes_the_promise_where_it_says() -> None:
    replica, best_s, high_s = sized()
    found = curve(best_s, high_s, replica, 1)
    assert list(found.rate_per_s) == sorted(found.rate_per_s)
    late = [rate for rate, p99_s in zip(found.rate_per_s, found.p99_high_s, strict=True)
            if p99_s > GOAL.p99_s * 1.02]  # fmt: skip
    assert all(rate > replica.most_per_s for rate in late)
