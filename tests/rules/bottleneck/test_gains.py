"""Gains follow Amdahl, and a pipeline that runs ahead costs the longer of the two."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.bottleneck.steps import HOST, facts, pipeline, waiting

from tfdyno.rules.bottleneck.gains import amdahl, saving, with_less_work, without_wait
from tfdyno.rules.bottleneck.seen import look


def test_half_of_a_step_taken_away_doubles_it() -> None:
    # 1 / (1 - 0.5 x 1), low: 1 / (1 - 0.5 x 0.2), best: 1 / (1 - 0.5 x 0.6)
    found = amdahl(1.0, 0.5, (0.2, 0.6, 1.0))
    assert (found.low, found.best, found.high) == pytest.approx((1 / 0.9, 1 / 0.7, 2.0))


@given(
    whole=st.floats(1e-6, 10),
    part=st.floats(0, 20),
    shares=st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted),
)
def test_a_gain_is_ordered_and_never_a_loss_nor_without_end(
    whole: float, part: float, shares: list[float]
) -> None:
    low, best, high = shares
    found = amdahl(whole, part, (low, best, high))
    assert 1.0 <= found.low <= found.best <= found.high <= 50.0 + 1e-6


def test_savings_are_put_in_order() -> None:
    assert saving(1.0, 0.5, 0.2, 0.5).best == 2.0


def test_a_pipeline_that_runs_ahead_costs_the_longer_of_both() -> None:
    # 60 ms in turns become max(20 rest, 40 batch) = 40; the sure part is 40 % of 20 ms
    seen = look(waiting(pipeline(batch_s=0.040)))
    found = without_wait(seen, 0.040, ahead=True)
    assert (found.low, found.best) == pytest.approx((60 / 52, 60 / 40))


def test_moved_work_still_needs_the_cpus() -> None:
    # the step keeps 90 % of all CPUs busy: 54 of 60 ms are left, though 40 would do for one
    busy = replace(waiting(pipeline(batch_s=0.040)), host=replace(HOST, cpu_ratio=0.9))
    found = without_wait(look(busy), 0.040, ahead=True)
    assert (found.best, found.high) == pytest.approx((60 / 54, 60 / 40))
    assert without_wait(look(busy), 0.040, ahead=True, less_work=True).best == pytest.approx(1.5)


def test_less_work_in_turns_saves_what_it_takes_less() -> None:
    # half of 40 ms: 60 -> 40; the low end is the sure 40 % of a quarter, 4 ms
    seen = look(waiting(pipeline(batch_s=0.040)))
    found = with_less_work(seen, 0.040, (0.25, 0.5, 1.0), ahead=False)
    assert (found.low, found.best, found.high) == pytest.approx((60 / 56, 60 / 40, 60 / 20))


def test_less_work_than_the_step_waits_for_is_still_no_sure_gain() -> None:
    # whether a half or all of 40 ms goes, 20 ms of the step are left; sure are 40 % of the wait
    seen = look(waiting(pipeline(batch_s=0.040)))
    found = with_less_work(seen, 0.040, (0.5, 0.9, 1.0), ahead=True)
    assert (found.low, found.best, found.high) == pytest.approx((60 / 44, 60 / 20, 60 / 20))


def test_no_wait_is_no_gain() -> None:
    assert without_wait(look(facts()), 0.0, ahead=True).best == pytest.approx(1.01, abs=0.001)
