"""One measurement of a pipeline, from its first batch to its files."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.feed_looks import found

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.measure.feed import Feed

pytestmark = pytest.mark.tf


def feed(name: str) -> Feed:
    return from_builtins(found()[name], Feed)


def rates(name: str, kind: str = "warm") -> list[float]:
    return [one.samples / one.seconds_s for one in feed(name).rounds if one.kind == kind]


def test_a_batch_that_waits_5_ms_comes_each_5_ms() -> None:
    # four samples in 5 ms, one batch at a time: at most 800 samples/s with any number of CPUs
    assert 0 < min(rates("sleeping")) <= max(rates("sleeping")) < 800


def test_rounds_take_turns_with_all_cpus_and_with_fewer() -> None:
    rounds = feed("sleeping").rounds
    counts = [one.cpus for one in rounds]
    assert counts == [*counts[: len(counts) // 2]] * 2
    assert counts[0] == max(counts)
    assert all(one.seconds_s >= 0.2 for one in rounds)
    assert all(one.samples == 4 * one.batches for one in rounds)


def test_cpu_time_is_that_of_the_work_and_not_of_the_waiting() -> None:
    assert all(0.0 < one.cpu_s < 0.9 * one.seconds_s for one in feed("sleeping").rounds)


def test_what_was_measured_is_described() -> None:
    seen = feed("records")
    assert (seen.reference, seen.title, seen.kind) == ("records", "net", "dataset")
    assert (seen.batch_size, seen.batch_bytes) == (20, 160)
    assert seen.start_s > 0
    assert feed("arrays").samples_per_epoch == 80  # 20 % of 100 are for validation
    assert feed("rebatched").batch_size == 10


def test_files_are_read_and_counted() -> None:
    seen = feed("records")
    warm = [one for one in seen.rounds if one.kind == "warm"]
    read, samples = sum(one.read_bytes for one in warm), sum(one.samples for one in warm)
    # 1,016 bytes a record; TensorFlow reads ahead by some thousand records, on a busy machine
    # most of them before the round begins.
    assert samples > 3 * 200
    assert 0 < read < 1.3 * 1016 * samples + 5 * 200 * 1016
    assert seen.disk
    assert (seen.disk.files, seen.disk.total_bytes) == (3, 3 * 200 * 1016)
    assert [one.kind for one in seen.rounds][-2:] == ["cold", "cold"]


def test_cold_rounds_read_from_the_disk() -> None:
    seen = feed("records")
    if seen.disk is None or not seen.disk.disk_bytes:
        pytest.skip("this file system does not forget, or does not tell")
    assert sum(one.disk_bytes for one in seen.rounds if one.kind == "cold") > 0


def test_files_that_only_python_knows_are_found_while_they_are_open() -> None:
    seen = feed("by_hand")
    assert seen.disk
    assert (seen.disk.files, seen.disk.total_bytes) == (1, 1 << 20)


def test_a_pipeline_without_files_reads_nothing() -> None:
    seen = feed("sleeping")
    assert seen.disk is None
    assert {one.read_bytes for one in seen.rounds} == {0}


def test_a_cache_is_filled_first_and_told_apart() -> None:
    seen = feed("cached")
    assert seen.is_cached
    assert [one.kind for one in seen.rounds].count("first") == 1
    assert seen.rounds[0].samples == 36  # of 40; the first batch was there already
    naps = found()["naps"]
    assert naps["first batch"] == 10  # of 40 elements in fours: each was made once
    assert naps["looking at the stages, 1 of 2"] == 10  # and none for the rounds
    assert not seen.notes


def test_a_cache_that_is_never_full_is_noted() -> None:
    seen = feed("never_full")
    assert {one.kind for one in seen.rounds} == {"first"}
    assert "cache was not full after 0.1 s" in seen.notes[0]


def test_a_generator_is_never_begun_anew() -> None:
    assert feed("generator").kind == "generator"
    assert feed("generator").looks == ()
    ended = feed("ended")
    assert 0 < len(ended.rounds) < len(feed("generator").rounds)
    assert "ended before all rounds" in ended.notes[0]
    assert "before a round was measured: 4 batches" in found()["too_short"]


def test_workers_of_a_pydataset_are_told() -> None:
    seen = {name: feed(name) for name in ("pydataset", "workers")}
    assert [one.workers for one in seen.values()] == [1, 3]
    assert {one.kind for one in seen.values()} == {"pydataset"}
    assert {one.samples_per_epoch for one in seen.values()} == {48}
    assert not any(one.uses_processes for one in seen.values())


def test_stages_are_looked_at_as_often_as_asked() -> None:
    looks = feed("records").looks
    assert len(looks) == 2
    assert [stage.title for stage in looks[0]][-3:] == ["map(decode)", "batch", "prefetch"]


def test_data_without_a_batch_is_refused() -> None:
    assert "ended after 0 batches" in found()["empty"]


def test_what_was_measured_until_it_is_stopped_is_kept() -> None:
    seen: dict[str, Any] = found()["stopped"]
    assert seen["stopped"]
    assert 0 < len(seen["rounds"]) < 100
    assert "It was stopped" in seen["notes"][-1]


def test_stopped_before_the_first_round_there_is_nothing() -> None:
    assert found()["stopped_early"] == "nothing"
    assert found()["stopped_in_code"] == "SIGTERM"


def test_each_stage_is_told_as_it_begins() -> None:
    said = found()["said"]
    assert said[:2] == ["first batch", "warming up"]
    assert any(line.startswith("round 1 of 2, ") for line in said)
    assert {"looking at the stages, 2 of 2", "reading the files in order"} <= set(said)
    assert "first pass, which fills the cache" in said


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
