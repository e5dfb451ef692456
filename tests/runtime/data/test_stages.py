"""A look at the stages of a pipeline."""

from __future__ import annotations

import pytest
from tests.runtime.feed_looks import found

pytestmark = pytest.mark.tf


def test_each_stage_has_time_elements_and_bytes_of_a_batch() -> None:
    look, taken = {stage["title"]: stage for stage in found()["look"]}, found()["looked_batches"]
    decode, batch = look["map(decode_slowly)"], look["batch"]
    assert decode["own_s"] == max(stage["own_s"] for stage in look.values())
    # More is made than taken: two batches in the buffer, and what is under way.
    assert -2 <= batch["elements"] * taken - taken <= 3
    assert -2 * 20 <= decode["elements"] * taken - 20 * taken <= 4 * 20
    assert batch["output_bytes"] == pytest.approx(160 * batch["elements"], rel=0.05)
    assert decode["parallel_calls"] == 2


def test_a_source_that_is_repeated_tells_of_all_its_passes() -> None:
    look, taken = {stage["title"]: stage for stage in found()["look"]}, found()["looked_batches"]
    assert -2 * 20 <= look["tf_record"]["elements"] * taken - 20 * taken <= 50 + 4 * 20
    assert look["tf_record"]["output_bytes"] > 15_000


def test_what_lies_below_a_number_that_is_checked_is_timed_too() -> None:
    # a buffer that holds all records would let TensorFlow forget what lies below it
    look = {stage["title"]: stage for stage in found()["counted"]}
    assert "assert_cardinality" not in look
    assert next(one for title, one in look.items() if title.startswith("interleave"))["own_s"] > 0
    assert look["shuffle"]["elements"] == pytest.approx(20.0, rel=0.1)


def test_a_source_that_gives_nothing_twice_is_not_looked_at() -> None:
    assert found()["no_look"] == []


def test_a_batch_without_a_first_dimension_is_one_sample() -> None:
    assert found()["scalar"] == [1, 7]
