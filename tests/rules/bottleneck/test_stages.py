"""Each stage of a pipeline has its share of a batch and the rate that it alone would allow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import answer, facts, pipeline, stage, waiting


def test_shares_add_up_to_the_batch_and_rates_follow() -> None:
    # 40 ms a batch: 30 and 10 ms of CPU time, one element at a time
    slow = pipeline(stage("map(load)", "map", 0.030, output_bytes=3_000_000),
                    stage("batch", "batch", 0.010), batch_s=0.040)  # fmt: skip
    told = answer(waiting(slow))
    load, batch = told.stages
    assert (load.title, load.place) == ("map(load)", "train.py:7")
    assert load.batch_s == pytest.approx(0.030)
    assert load.samples_per_s == pytest.approx(32 / 0.030)
    assert load.bytes_per_s == pytest.approx(3_000_000 / 0.030)
    assert batch.samples_per_s == pytest.approx(3200.0)  # 32 / 0.010
    assert (told.batch_s, told.held_s) == pytest.approx((0.040, 0.020))


def test_what_works_on_several_elements_takes_less_of_the_time() -> None:
    # 40 ms of CPU time on the 4 CPUs of the machine, 10 ms on one: equal halves of 20 ms
    both = pipeline(stage("map(load)", "map", 0.040, parallel_calls=-1),
                    stage("batch", "batch", 0.010), batch_s=0.020)  # fmt: skip
    assert [one.batch_s for one in answer(waiting(both)).stages] == pytest.approx([0.010, 0.010])


def test_the_samples_are_those_of_all_replicas() -> None:
    slow = pipeline(stage("map(load)", "map", 0.040))
    (one,) = answer(waiting(slow, replica_count=2)).stages
    assert one.samples_per_s == pytest.approx(64 / 0.040)


def test_a_stage_below_what_the_clock_tells_has_no_rate() -> None:
    slow = pipeline(stage("map(load)", "map", 0.040), stage("take", "take", 0.00001))
    assert answer(waiting(slow)).stages[1].samples_per_s == 0.0


def test_shares_that_would_be_guessed_are_not_told() -> None:
    untimed = pipeline(stage("map(load)", "map", 0.0), stage("batch", "batch", 0.0))
    assert answer(waiting(untimed)).stages == ()
    assert answer(facts(input=None)).stages == ()
    alone = waiting(pipeline(stage("map(load)", "map", 0.040)))
    assert answer(replace(alone, input=replace(alone.input, batch_s=()))).stages == ()  # type: ignore[type-var]
