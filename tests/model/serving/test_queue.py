"""The queue of a batching server against closed forms, a simulation, and what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdyno.model.serving.queue import full_rate_per_s, load_at, service_times

GPU = {1: 0.001, 64: 0.006}
"""One row takes 1 ms, 64 take 6 ms."""


def simulated(
    service_s: np.ndarray, rate: float, delay_s: float = 0.0, rows: int = 60_000, seed: int = 1
) -> tuple[float, float]:
    """p50 and p99 of rows that arrive at random, served one batch after the other."""
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1.0 / rate, rows))
    latencies, first, free_s = np.empty(rows), 0, 0.0
    limit = len(service_s)
    while first < rows:
        filled_s = arrivals[first + limit - 1] if first + limit <= rows else np.inf
        starts_s = max(free_s, min(arrivals[first] + delay_s, filled_s))
        waiting = int(np.searchsorted(arrivals, starts_s, side="right")) - first
        taken = min(limit, max(1, waiting))
        free_s = starts_s + service_s[taken - 1]
        latencies[first : first + taken] = free_s - arrivals[first : first + taken]
        first += taken
    settled = latencies[rows // 20 :]
    return float(np.percentile(settled, 50)), float(np.percentile(settled, 99))


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.8])
def test_one_row_at_a_time_is_the_queue_of_pollaczek_and_khinchine(busy: float) -> None:
    # M/D/1: mean = s (1 + busy / (2 (1 - busy)))
    load = load_at(service_times({1: 0.002}), busy / 0.002)
    assert load is not None
    assert load.mean_s == pytest.approx(0.002 * (1 + busy / (2 * (1 - busy))), rel=0.02)
    assert load.busy_ratio == pytest.approx(busy, rel=1e-6)


@pytest.mark.parametrize("rate", [50.0, 300.0, 450.0, 700.0])
def test_the_mean_is_just_below_the_published_bound_for_batches_of_any_size(rate: float) -> None:
    # Inoue 2021: s(b) = a b + c without a limit; close where the server is busy all the time
    slope_s, fixed_s = 0.001, 0.005
    load = load_at(service_times({1: slope_s + fixed_s, 256: 256 * slope_s + fixed_s}), rate)
    used = rate * slope_s
    always = 1.5 * fixed_s / (1 - used) + slope_s / 2 * (used + 2) / (1 - used**2)
    assert load is not None
    assert load.mean_s <= 1.005 * always
    assert rate < 100.0 or load.mean_s > 0.98 * always


@pytest.mark.parametrize("table", [GPU, {1: 0.005, 32: 0.006}, {1: 0.007, 16: 0.03}, {1: 0.002}])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.85])
def test_a_simulation_finds_the_same_percentiles(table: dict[int, float], share: float) -> None:
    service_s = service_times(table)
    rate = share * full_rate_per_s(service_s)
    load = load_at(service_s, rate)
    assert load is not None
    p50, p99 = simulated(service_s, rate)
    assert load.p50_s == pytest.approx(p50, rel=0.06)
    assert load.p99_s == pytest.approx(p99, rel=0.08)


@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
@pytest.mark.parametrize("delay_s", [0.0005, 0.003])
def test_a_simulation_with_a_delay_finds_the_same(share: float, delay_s: float) -> None:
    service_s = service_times(GPU)
    rate = share * full_rate_per_s(service_s)
    load = load_at(service_s, rate, delay_s)
    assert load is not None
    p50, p99 = simulated(service_s, rate, delay_s)
    assert load.p50_s == pytest.approx(p50, rel=0.06)
    assert load.p99_s == pytest.approx(p99, rel=0.06)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    one_s=st.floats(1e-4, 0.1),
    limit=st.integers(1, 64),
    growth=st.floats(0.0, 1.0),
    share=st.floats(0.02, 0.9),
    delay=st.floats(0.0, 2.0),
)
def test_it_agrees_with_the_simulation_everywhere(
    one_s: float, limit: int, growth: float, share: float, delay: float
) -> None:
    service_s = service_times({1: one_s, limit: one_s * (1.0 + growth * (limit - 1))})
    rate = share * full_rate_per_s(service_s)
    delay_s = min(delay * one_s, 0.3 * limit / rate)
    load = load_at(service_s, rate, delay_s if limit > 1 else 0.0)
    assert load is not None
    p50, p99 = simulated(service_s, rate, delay_s if limit > 1 else 0.0)
    assert load.p50_s == pytest.approx(p50, rel=0.10)
    assert load.p99_s == pytest.approx(p99, rel=0.10)


@settings(max_examples=40, deadline=None)
@given(
    limit=st.sampled_from([1, 2, 7, 32]),
    growth=st.floats(0.0, 1.0),
    shares=st.tuples(st.floats(0.01, 0.9), st.floats(0.01, 0.9)),
)
def test_more_rows_never_wait_less(limit: int, growth: float, shares: tuple[float, float]) -> None:
    service_s = service_times({1: 0.01, limit: 0.01 * (1.0 + growth * (limit - 1))})
    less, more = (
        load_at(service_s, share * full_rate_per_s(service_s)) for share in sorted(shares)
    )
    assert less is not None
    assert more is not None
    assert more.p99_s >= less.p99_s * 0.99
    assert more.mean_s >= less.mean_s * 0.99
    assert more.mean_batch >= less.mean_batch * 0.999


@settings(max_examples=40, deadline=None)
@given(limit=st.integers(1, 40), share=st.floats(0.01, 0.9))
def test_no_row_is_answered_before_its_own_batch_ends(limit: int, share: float) -> None:
    service_s = service_times({rows: 0.01 * rows**0.5 for rows in range(1, limit + 1)})
    load = load_at(service_s, share * full_rate_per_s(service_s))
    assert load is not None
    assert 0.01 * 0.99 <= load.p50_s <= load.p99_s
    assert 0.999 <= load.mean_batch <= limit * 1.001
    assert load.busy_ratio <= 1.0


def test_a_server_that_cannot_keep_up_has_no_answer() -> None:
    assert load_at(service_times({1: 0.01, 4: 0.02}), 200.0) is None
    assert load_at(service_times({1: 0.01, 4: 0.02}), 150.0) is not None


def test_between_known_sizes_times_lie_on_a_line_and_never_fall() -> None:
    assert service_times({1: 1.0, 3: 2.0, 4: 1.5}).tolist() == [1.0, 1.5, 2.0, 2.0]
    assert service_times({4: 2.0}).tolist() == [2.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "table", [{}, {0: 1.0}, {1: 0.0}, {1: float("nan")}, {1: float("inf")}, {1: -1.0}]
)
def test_a_table_without_times_is_refused(table: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="need batches of 1 row and more"):
        service_times(table)


@pytest.mark.parametrize(("rate", "delay_s"), [(0.0, 0.0), (-1.0, 0.0), (1.0, -1.0)])
def test_a_rate_or_delay_out_of_range_is_refused(rate: float, delay_s: float) -> None:
    with pytest.raises(ValueError, match="need a rate above 0"):
        load_at(service_times({1: 0.01}), rate, delay_s)
