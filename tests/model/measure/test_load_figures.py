from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loads import stretch

from tfdyno.core.measure.load import CONNECTION, TIMEOUT, LoadPlan
from tfdyno.model.measure.load_figures import (
    QUANTILES,
    least_for_end,
    ranks,
    stage_figures,
    usd_per_million,
)


def test_quantiles_are_those_of_the_sorted_latencies() -> None:
    found = stage_figures(stretch([0.001 * (at + 1) for at in range(100)]))
    assert found.p50_s is not None
    assert found.p99_s is not None
    assert found.p50_s.best == pytest.approx(0.050)
    assert found.p99_s.best == pytest.approx(0.099)
    assert found.worst_s == pytest.approx(0.100)


def test_the_warm_up_does_not_count() -> None:
    run = stretch([5.0] * 50 + [0.001] * 50)
    run = replace(run, plan=LoadPlan(clients=4, seconds_s=0.5, warmup_s=0.5))
    found = stage_figures(run)
    assert found.requests == 50
    assert found.worst_s == pytest.approx(0.001)
    assert found.accepted_per_s == pytest.approx(100.0, rel=0.03)  # 50 answers in 0.5 s


def test_refusals_and_errors_stand_apart_and_have_no_latency() -> None:
    codes = (200,) * 90 + (429,) * 4 + (503,) * 2 + (500,) * 2 + (TIMEOUT, CONNECTION)
    run = stretch([0.001] * 90 + [9.0] * 10, codes=codes)
    found = stage_figures(run)
    assert (found.accepted, found.refused) == (90, 6)
    assert found.errors == {"500": 2, "timed out": 1, "connection lost": 1}
    assert found.worst_s == pytest.approx(0.001)
    assert found.refused_ratio == pytest.approx(0.06)


def test_an_error_of_the_warm_up_is_an_error() -> None:
    run = stretch([0.001] * 100, codes=(500,) + (200,) * 99)
    run = replace(run, plan=LoadPlan(clients=4, seconds_s=0.5, warmup_s=0.5))
    assert stage_figures(run).errors == {"500": 1}


def test_cost_is_the_hour_over_its_requests() -> None:
    assert usd_per_million(3.6, 1000.0) == pytest.approx(1.0)  # 3.6 M requests for 3.6 dollars
    assert usd_per_million(3.6, 0.0) is None
    assert usd_per_million(None, 10.0) is None


def test_a_slow_spell_widens_the_interval_and_not_only_the_p99() -> None:
    """Two of twenty slices are slow: with or without them, the p99 is another."""
    calm = stage_figures(stretch([0.010] * 2000)).p99_s
    spell = stage_figures(stretch([0.010] * 1800 + [0.100] * 200)).p99_s
    assert calm is not None
    assert spell is not None
    assert calm.high == pytest.approx(calm.low)
    assert spell.low == pytest.approx(0.010)
    assert spell.high == pytest.approx(0.100)


@pytest.mark.parametrize("count", [300, 1000, 4000])
def test_intervals_hold_the_true_quantile_nineteen_times_in_twenty(count: int) -> None:
    """Of independent latencies, whose quantiles are known."""
    draw = np.random.default_rng(count)
    held = np.zeros(len(QUANTILES))
    tries = 150
    for _ in range(tries):
        found = stage_figures(stretch(draw.exponential(size=count).tolist()))
        each = (found.p50_s, found.p95_s, found.p99_s, found.p999_s)
        held += [one is not None and one.low <= -math.log(1 - share) <= one.high
                 for one, share in zip(each, QUANTILES, strict=True)]  # fmt: skip
    assert (held / tries >= 0.93).all(), held / tries


@pytest.mark.parametrize("count", [1, 5, 6, 100, 367, 368])
@pytest.mark.parametrize("share", QUANTILES)
def test_ranks_are_the_narrowest_with_no_more_than_a_fortieth_beyond_each(
    count: int, share: float
) -> None:
    chances = [math.comb(count, k) * share**k * (1 - share) ** (count - k)
               for k in range(count + 1)]  # fmt: skip
    upto = [0.0, *accumulate(chances)]  # of fewer than k latencies up to the quantile
    low, high = ranks(count, share)
    assert upto[low] <= 0.025 + 1e-9
    assert 1 - upto[high] <= 0.025 + 1e-9
    assert upto[low + 1] > 0.025 - 1e-9
    assert 1 - upto[high - 1] > 0.025 - 1e-9


def test_a_quantile_without_enough_requests_has_no_upper_end() -> None:
    assert [least_for_end(one) for one in QUANTILES] == [6, 72, 368, 3688]
    for count, is_open in ((367, True), (368, False)):
        p99 = stage_figures(stretch([0.001 * (at + 1) for at in range(count)])).p99_s
        assert p99 is not None
        assert math.isinf(p99.high) is is_open
    alone = stage_figures(stretch([0.5])).p50_s
    assert alone is not None
    assert (alone.low, alone.best, alone.high) == (0.0, 0.5, math.inf)


def test_a_client_at_its_end_is_told() -> None:
    assert stage_figures(stretch([0.01] * 100, client_cpu_s=0.95)).client_is_limit
    assert stage_figures(stretch([0.01] * 100, lag_p99_s=0.02)).client_is_limit
    assert not stage_figures(stretch([0.01] * 100, lag_p99_s=0.002)).client_is_limit


@given(st.lists(st.floats(1e-4, 10.0), min_size=1, max_size=60))
def test_quantiles_are_ordered_and_inside_their_intervals(latencies_s: list[float]) -> None:
    found = stage_figures(stretch(latencies_s))
    known = [found.p50_s, found.p95_s, found.p99_s, found.p999_s]
    best = [one.best for one in known if one]
    assert best == sorted(best)
    assert best[-1] <= found.worst_s
