"""Stages share the time of a batch by their CPU seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import HOST, facts, pipeline, stage, waiting

from tfdyno.rules.bottleneck.seen import look, samples_of_step, stage_walls, waits_itself


def test_a_parallel_stage_counts_with_its_cpus() -> None:
    # 8 ms on 4 CPUs and 2 ms on one: 2 to 2, so that each has half of 10 ms
    given = pipeline(stage("map", "map", 0.008, parallel_calls=-1), stage("batch", "batch", 0.002))
    assert stage_walls(given, 0.010, 4) == pytest.approx((0.005, 0.005))


def test_stages_without_times_share_it_where_work_is_done() -> None:
    given = pipeline(stage("range", "range", 0.0), stage("map", "map", 0.0))
    assert stage_walls(given, 0.010, 4) == (0.0, 0.010)


def test_a_pipeline_that_keeps_a_fifth_of_a_cpu_busy_waits() -> None:
    seen = look(facts())
    assert waits_itself(seen, pipeline(cpu_ratio=0.05))
    assert not waits_itself(seen, pipeline(cpu_ratio=0.25))
    assert not waits_itself(seen, pipeline(cpu_ratio=0.0))  # not known


def test_facts_have_the_batch_of_each_replica() -> None:
    assert samples_of_step(look(facts(replica_count=2))) == 64


def test_the_input_is_looked_at_only_where_the_step_waits() -> None:
    assert look(facts()).input is None
    assert look(waiting(pipeline(stage("map", "map", 0.040)))).input is not None
    assert look(facts(host=replace(HOST, usable_cpus=0.5))).cpus == 1.0
