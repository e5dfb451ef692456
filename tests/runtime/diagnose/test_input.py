"""The input pipeline by itself."""

from __future__ import annotations

import pytest
from tests.runtime.pipeline_looks import facts, middle

pytestmark = pytest.mark.tf


def test_a_map_that_waits_10_ms_gives_a_batch_each_10_ms() -> None:
    assert 0.010 < middle("no_autotune") < 0.05  # else TensorFlow maps two at a time
    assert middle("plain") < 0.005


def test_a_cache_and_a_prefetch_are_told() -> None:
    assert facts()["cached"]["is_cached"]
    assert not facts()["slow"]["is_cached"]
    assert facts()["slow"]["prefetches"]


def test_a_cached_pipeline_is_told_by_its_later_passes() -> None:
    assert middle("cached") < 0.005


def test_a_pipeline_without_a_batch_has_no_times() -> None:
    assert facts()["empty"]["batch_s"] == []


def test_a_pipeline_of_one_batch_is_repeated() -> None:
    assert len(facts()["one"]["batch_s"]) > 3
    assert facts()["one"]["batch_bytes"] == 40 * 3 * 4


def test_files_are_counted() -> None:
    assert [facts()[name]["files"] for name in ("records", "interleaved", "read", "plain")] == [
        3, 3, 3, 0,
    ]  # fmt: skip


def test_bytes_read_from_files_are_told() -> None:
    assert facts()["records"]["read_bytes_per_s"] > 1e5
    assert facts()["records"]["batch_bytes"] == 10 * 1000


def test_a_generator_that_ends_does_not_hang() -> None:
    assert facts()["generator"]["kind"] == "generator"
    assert len(facts()["generator"]["batch_s"]) <= 5


def test_only_sources_are_repeated_while_stages_are_timed() -> None:
    assert facts()["flowing"] == ["tensor_slice", "repeat", "shuffle", "batch", "map"]
    assert facts()["cache_first"] == ["tensor_slice", "cache", "repeat", "batch"]
    assert facts()["whole"][-1] == "repeat"  # unique would wait for ever


def test_passes_are_opened_and_closed_and_told_by_their_mean() -> None:
    least_s, first, open_ones = facts()["passes"]
    assert least_s > 0.010
    assert (first, open_ones) == (["in", "out"], 0)


def test_what_is_no_dataset_is_told_as_not_run() -> None:
    *nothing, why = facts()["not_run"]
    assert nothing == [None, None]
    assert why.startswith("The input could not be run by itself: ")


def test_what_is_long_in_beginning_is_begun_once() -> None:
    # As TensorFlow runs it, and as it is written; then only the first of these.
    assert facts()["begun"] == [3, ["from_tensor_slices", "batch"]]
