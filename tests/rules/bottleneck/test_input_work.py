"""Work of the pipeline: each cause is named by its stage, with the gain that its time allows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import (
    HOST,
    drafts,
    facts,
    only,
    pipeline,
    primary,
    stage,
    waiting,
)

from tfdyno.rules.bottleneck.draft import bottleneck
from tfdyno.rules.bottleneck.input_work import (
    map_before_batch,
    python_generator,
    python_in_map,
    sequential_map,
    shuffle_cost,
    slow_decode,
    slow_pipeline,
)

SOURCE = stage("from_tensor_slices", "tensor_slice", 0.001)
BATCH = stage("batch", "batch", 0.001, output_bytes=64_000)


def test_a_sequential_map_shares_its_work_between_the_cpus() -> None:
    # 38 of 40 ms in the map; on 4 CPUs 9.5 are left: a batch of 11.5 hides behind 20 ms of step
    slow = stage("map(load)", "map", 0.038)
    found = only(sequential_map, waiting(pipeline(SOURCE, slow, BATCH)))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(60 / 20)
    assert found.place == "train.py:7"
    assert found.settings == {"input.parallel_calls": "-1", "input.prefetch": "-1"}


def test_a_map_that_draws_random_numbers_is_parallel_only_where_the_order_is_free() -> None:
    slow = stage("map(flip)", "map", 0.038, operations=("RandomUniform",))
    found = only(sequential_map, waiting(pipeline(SOURCE, slow, BATCH)))
    assert found.settings is not None
    assert found.settings["input.deterministic"] == "false"
    assert "another order each time" in bottleneck(found).fix[1].text


def test_a_sequential_map_on_one_cpu_has_nobody_to_share_with() -> None:
    slow = stage("map(load)", "map", 0.038)
    seen = replace(waiting(pipeline(SOURCE, slow, BATCH)), host=replace(HOST, usable_cpus=1))
    assert not drafts(sequential_map, seen)


def test_a_parallel_map_is_not_called_sequential() -> None:
    fast = stage("map(load)", "map", 0.038, parallel_calls=-1)
    assert not drafts(sequential_map, waiting(pipeline(SOURCE, fast, BATCH)))


def test_a_generator_is_named_and_loses_seven_tenths() -> None:
    # 36 of 40 ms, in turns: 60 - 0.7 x 36 = 34.8
    generator = stage("from_generator", "from_generator", 0.036, runs_python=True)
    rest = stage("batch", "batch", 0.004)
    found = only(python_generator, waiting(pipeline(generator, rest)))
    assert found.gain is not None
    assert found.gain.best == pytest.approx(60 / 34.8)
    assert found.cause == "input.python_generator"


def test_a_pydataset_is_named_without_stages() -> None:
    found = only(python_generator, waiting(pipeline(kind="pydataset")))
    assert found.cause == "input.slow_pydataset"


def test_who_has_workers_already_is_told_to_take_more() -> None:
    given = pipeline(kind="pydataset", workers=2, prefetches=True)
    found = bottleneck(only(python_generator, waiting(given)))
    assert "workers: 2" in [one.text for one in found.evidence]
    (fix,) = found.fix
    assert fix.text.startswith("Give it more than 2 `workers`")
    (fix,) = bottleneck(only(python_generator, waiting(pipeline(kind="pydataset")))).fix
    assert fix.text.startswith("Give it `workers=4, use_multiprocessing=True`")


def test_python_in_a_map_is_named_with_its_operation() -> None:
    slow = stage("map(clean)", "map", 0.038, runs_python=True, operations=("EagerPyFunc",))
    found = only(python_in_map, waiting(pipeline(SOURCE, slow, BATCH)))
    assert "map(clean) runs EagerPyFunc" in [one.text for one in found.evidence]
    assert not drafts(sequential_map, waiting(pipeline(SOURCE, slow, BATCH)))


def test_python_that_only_waits_can_wait_several_times_at_once() -> None:
    # a twentieth of 4 CPUs is busy: 8 at once leave 38 / 8 = 4.75 ms
    slow = stage("map(ask)", "map", 0.038, runs_python=True)
    seen = waiting(pipeline(SOURCE, slow, BATCH, cpu_ratio=0.05))
    assert only(sequential_map, seen).gain is not None


def test_decoding_is_named() -> None:
    slow = stage(
        "map(load)", "map", 0.038, parallel_calls=-1, operations=("ReadFile", "DecodeJpeg")
    )
    found = only(slow_decode, waiting(pipeline(SOURCE, slow, BATCH)))
    assert found.cause == "input.slow_decode"
    assert not drafts(slow_decode, waiting(pipeline(SOURCE, stage("map", "map", 0.038), BATCH)))


def test_decoding_of_records_is_no_picture() -> None:
    parse = stage("map(parse)", "map", 0.038, operations=("ParseExampleV2", "DecodeRaw"))
    assert not drafts(slow_decode, waiting(pipeline(SOURCE, parse, BATCH)))


def test_a_cheap_map_before_the_batch_is_called_too_often() -> None:
    # 1.9 ms for 32 elements: 59 us each
    cheap = stage("map(scale)", "map", 0.0019)
    after = waiting(pipeline(cheap, stage("batch", "batch", 0.0002)))
    assert only(map_before_batch, after).cause == "input.batch_after_map"
    before = waiting(pipeline(stage("batch", "batch", 0.0002), cheap))
    assert not drafts(map_before_batch, before)
    dear = waiting(pipeline(stage("map(filter)", "map", 0.0064), BATCH))  # 200 us each
    assert not drafts(map_before_batch, dear)


def test_a_shuffle_that_takes_a_good_part_is_named() -> None:
    shuffle = stage("shuffle", "shuffle", 0.020, buffer_size=10_000)
    found = only(shuffle_cost, waiting(pipeline(SOURCE, shuffle, BATCH)))
    assert "its buffer holds 10,000 elements" in [one.text for one in found.evidence]


def test_waiting_without_any_stage_is_still_the_input() -> None:
    # half of 40 ms
    seen = waiting(pipeline(kind="other"))
    found = only(slow_pipeline, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(60 / 40)
    assert primary(replace(seen, input=None)).cause == "input.slow_pipeline"


@pytest.mark.parametrize(
    "rule", [sequential_map, python_generator, python_in_map, slow_decode, slow_pipeline]
)
def test_a_step_that_does_not_wait_says_nothing(rule: object) -> None:
    slow = stage("map(load)", "map", 0.003, runs_python=True, operations=("DecodeJpeg",))
    seen = facts(input=pipeline(slow, batch_s=0.003, prefetches=True, cpu_ratio=0.0))
    assert not drafts(rule, seen)  # type: ignore[arg-type]
