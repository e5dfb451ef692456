"""Stages in their order, and those that matter first."""

from __future__ import annotations

import pytest
from tests.rules.bottleneck.steps import pipeline, stage, waiting

from tfdyno.rules.bottleneck.input_stage import heavy, reading_s, timed
from tfdyno.rules.bottleneck.seen import look

GIVEN = pipeline(stage("tf_record", "tf_record", 0.010), stage("map", "map", 0.028),
                 stage("batch", "batch", 0.002))  # fmt: skip


def test_the_longest_stage_comes_first_and_short_ones_are_left_out() -> None:
    seen = look(waiting(GIVEN))
    assert [one.stage.kind for one in heavy(seen, GIVEN)] == ["map", "tf_record"]
    assert [one.place for one in timed(seen, GIVEN)] == [0, 1, 2]


def test_reading_is_what_readers_take() -> None:
    assert reading_s(look(waiting(GIVEN)), GIVEN) == pytest.approx(0.010)


def test_a_stage_that_decodes_reads_only_where_the_pipeline_waits() -> None:
    both = stage("map(load)", "map", 0.040, operations=("ReadFile", "DecodeJpeg"))
    busy, waits = pipeline(both, cpu_ratio=0.25), pipeline(both, cpu_ratio=0.05)
    assert reading_s(look(waiting(busy)), busy) == 0.0
    assert reading_s(look(waiting(waits)), waits) == pytest.approx(0.040)
