"""Data that come too late: prefetch, cache, reading, and the order of parallel work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import (
    OPERATIONS,
    drafts,
    facts,
    only,
    pipeline,
    primary,
    stage,
    waiting,
)

from tfdyno.rules.bottleneck.input_flow import (
    keeps_order,
    missing_interleave,
    missing_prefetch,
    no_cache,
    slow_copy,
    slow_read,
    slow_start,
    tiny_files,
)

SOURCE = stage("from_tensor_slices", "tensor_slice", 0.001)
WORK = stage("map(spectrum)", "map", 0.036, parallel_calls=-1, output_bytes=60_000)
SHUFFLE = stage("shuffle", "shuffle", 0.001)
BATCH = stage("batch", "batch", 0.002, output_bytes=64_000)
READ = stage("tf_record", "tf_record", 0.036)


def test_a_missing_prefetch_costs_the_shorter_of_both() -> None:
    # 20 + 20 ms in turns become 20
    given = pipeline(SOURCE, WORK, batch_s=0.020)
    found = only(missing_prefetch, waiting(given, step_s=0.040))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(2.0)
    assert not drafts(missing_prefetch, waiting(replace(given, prefetches=True)))


def test_work_that_fits_in_memory_can_be_kept() -> None:
    # 1 + 36 / 4 CPUs of 13 shares of 40 ms lie before the shuffle; 95 % of them go
    seen = waiting(pipeline(SOURCE, WORK, SHUFFLE, BATCH, samples_per_epoch=3200))
    found = only(no_cache, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(60 / (60 - 0.95 * 40 * 10 / 13))
    assert found.settings is None  # those of the cause: input.cache
    assert "what comes out of map(spectrum) is 5.72 MiB an epoch" in found.evidence[-2].text


def test_work_behind_a_shuffle_can_be_kept_by_hand() -> None:
    seen = waiting(pipeline(SOURCE, SHUFFLE, WORK, BATCH, samples_per_epoch=3200))
    found = only(no_cache, seen)
    assert found.settings == {}
    assert "what comes out of map(spectrum)" in found.evidence[-2].text


@pytest.mark.parametrize("why", ["random", "large", "one epoch", "endless", "cached", "python"])
def test_a_cache_is_not_proposed(why: str) -> None:
    work = replace(WORK, operations=("StatelessRandomUniformV2",)) if why == "random" else WORK
    work = (
        replace(work, runs_python=True, operations=("RandomUniform",)) if why == "python" else work
    )
    samples = {"large": 10**9, "endless": 0}.get(why, 3200)
    given = pipeline(SOURCE, work, SHUFFLE, BATCH, samples_per_epoch=samples,
                     is_cached=why == "cached")  # fmt: skip
    assert not drafts(no_cache, waiting(given, epochs=1 if why == "one epoch" else 5))


def test_a_cache_may_take_half_of_the_free_memory() -> None:
    seen = waiting(pipeline(SOURCE, WORK, BATCH, samples_per_epoch=3200))
    for free, proposed in ((13_000_000, True), (11_900_000, False)):  # 6.0 MB an epoch
        host = replace(seen.host, memory_free_bytes=free)
        assert bool(drafts(no_cache, replace(seen, host=host))) == proposed


def test_a_file_for_each_sample_is_too_small() -> None:
    given = pipeline(READ, WORK, BATCH, samples_per_epoch=2048, files=2048)
    found = only(tiny_files, waiting(given))
    assert "2,048 files for 2,048 samples" in [one.text for one in found.evidence]
    assert not drafts(tiny_files, waiting(replace(given, files=16)))


def test_a_pipeline_that_waits_for_its_files_reads_slowly() -> None:
    given = pipeline(READ, BATCH, files=4, cpu_ratio=0.05, read_bytes_per_s=2e6)
    found = only(slow_read, waiting(given))
    assert "reads 2 MB/s and keeps 5 % of the CPUs busy" in [one.text for one in found.evidence]
    assert not drafts(slow_read, waiting(replace(given, cpu_ratio=0.25)))  # a whole CPU of 4


def test_files_one_after_the_other_can_be_read_at_once() -> None:
    # 36 of 38 shares of 40 ms are reading: on 4 CPUs a quarter is left
    given = pipeline(READ, BATCH, files=8)
    found = only(missing_interleave, waiting(given))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(60 / 20)
    assert not drafts(missing_interleave, waiting(replace(given, files=1)))
    many = stage("interleave", "interleave", 0.001, parallel_calls=-1)
    assert not drafts(missing_interleave, waiting(pipeline(READ, many, BATCH, files=8)))


def test_order_costs_where_cpus_are_idle() -> None:
    ordered = replace(WORK, keeps_order=True)
    found = only(keeps_order, waiting(pipeline(SOURCE, ordered, BATCH)))
    assert found.cause == "input.deterministic_order"
    busy = pipeline(SOURCE, ordered, BATCH, cpu_ratio=0.9)
    assert not drafts(keeps_order, waiting(busy))
    assert not drafts(keeps_order, waiting(pipeline(SOURCE, WORK, BATCH)))


def test_a_buffer_that_each_epoch_fills_anew_is_input() -> None:
    # 2.05 - 0.05 s for 100 steps of 20 ms: 20 ms more for each; 70 % of 40 - 20
    given = pipeline(SOURCE, WORK, SHUFFLE, BATCH, batch_s=0.002, prefetches=True, start_s=2.05)
    seen = facts(input=replace(given, samples_per_epoch=3200))
    found = only(slow_start, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(40 / (40 - 0.7 * 20))
    assert found.settings == {"input.cache": "true"}
    assert primary(seen).cause == "input.slow_start"
    assert not drafts(slow_start, replace(seen, input=replace(given, start_s=0.1)))


def test_a_loop_waits_at_its_epochs_only_where_these_are_known() -> None:
    # of data without end, 100 steps are those between two checkpoints
    given = pipeline(SOURCE, SHUFFLE, BATCH, batch_s=0.002, prefetches=True, start_s=2.05)
    seen = facts(input=given, source="loop")
    assert not drafts(slow_start, seen)
    assert drafts(slow_start, replace(seen, input=replace(given, samples_per_epoch=3200)))


def test_a_batch_that_is_copied_while_the_card_waits_is_input() -> None:
    # 6 of 20 ms, 70 % of them go
    operations = replace(OPERATIONS, class_s={"gemm": 0.010, "data_movement": 0.006}, copy_s=0.006,
                         copied_bytes=60e6, fed_s=0.006, fed_bytes=60e6)  # fmt: skip
    seen = facts(device="gpu", operations=operations, execution="xla", precision="mixed_float16")
    found = only(slow_copy, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / (20 - 0.7 * 6))
    assert found.evidence[1].text == "57.2 MiB a step, 9.31 GiB a second"
    assert primary(seen).cause == "input.slow_copy"
    assert not drafts(slow_copy, facts(device="gpu", operations=replace(operations, fed_s=0.0)))


def test_a_generator_has_no_pipeline_on_jax_that_could_prefetch() -> None:
    given = pipeline(stage("from_generator", "from_generator", 0.020), batch_s=0.020)
    seen = waiting(replace(given, kind="generator"), step_s=0.040)
    assert drafts(missing_prefetch, seen)
    assert not drafts(missing_prefetch, replace(seen, backend="jax"))
