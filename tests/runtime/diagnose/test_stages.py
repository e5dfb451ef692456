"""The stages of a pipeline, with the time of each."""

from __future__ import annotations

import pytest
from tests.runtime.pipeline_looks import facts, middle, stages

pytestmark = pytest.mark.tf


def test_the_time_is_the_stages_own() -> None:
    found = stages("slow")
    assert list(found) == ["from_tensor_slices", "shuffle", "batch", "map(slow)", "prefetch"]
    slow_s = found["map(slow)"]["own_s"]
    assert slow_s > 0.010
    assert sum(each["own_s"] for each in found.values()) < 2 * slow_s
    assert found["map(slow)"]["output_bytes"] == 4 * 3 * 4
    assert found["shuffle"]["buffer_size"] == 1000


def test_sources_below_a_large_shuffle_are_timed_too() -> None:
    # TensorFlow forgets them when they end, at once where the buffer holds them all.
    assert stages("slow")["from_tensor_slices"]["own_s"] > 0


def test_python_and_parallel_work_are_told() -> None:
    stage = stages("parallel")["map(slow)"]
    assert (stage["parallel_calls"], stage["runs_python"]) == (2, True)
    assert not stage["keeps_order"]
    assert stages("slow")["map(slow)"]["parallel_calls"] == 1
    assert "PyFunc" in stage["operations"]


def test_stages_are_told_without_times_where_tensorflow_keeps_none() -> None:
    found = stages("no_autotune")
    assert "map(slow)" in found
    assert all(each["own_s"] == 0 for each in found.values())
    assert middle("no_autotune") > 0.010


def test_names_of_nodes_are_compared_without_their_version() -> None:
    assert facts()["plain_names"] == ["map", "repeat", "batch", "tfrecord"]
    assert facts()["calls"] == [-1, 1]


def test_all_operations_of_a_stage_are_kept_also_the_last_of_many() -> None:
    operations = facts()["crowded"]
    assert len(operations) > 20
    assert "RandomUniform" in operations
