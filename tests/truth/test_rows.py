from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from tfdyno_truth.rows import Row, contradicted, read_rows, single_gpu


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    return tuple(read_rows())


def a_row(**changes: object) -> Row:
    first = next(r for r in rows() if r.source == "Lambda TF benchmark" and r.gpus == 1)
    return replace(first, **changes)  # type: ignore[arg-type]


def test_the_published_table_gives_the_rows_that_the_command_can_express() -> None:
    assert len(rows()) == 3728
    assert len(single_gpu(list(rows()))) == 2400  # 2,432 without the 32 mislabelled ones


def test_every_measured_card_is_one_of_the_catalogue() -> None:
    slugs = {row.gpu: row.slug for row in rows()}
    assert slugs["K80"] == "k80"
    assert slugs["V100-SXM3-32GB-H"] == "v100-sxm3-32gb-h"
    assert slugs["RTX 2080 Super Max-Q"] == "rtx-2080-super-max-q"
    assert slugs["B200-192GB"] == "b200-sxm-180gb"
    assert slugs["TITAN X-12GB"] == "titan-x-pascal"


def test_a_throughput_becomes_a_step_time() -> None:
    # ResNet-50 v1.5, A100-SXM4-40GB, AMP, XLA, batch 256: 2,375 img/s
    row = next(r for r in rows() if r.number == 1)
    assert (row.slug, row.batch_size, row.precision) == ("a100-sxm4-40gb", 256, "mixed_float16")
    assert row.step_s == pytest.approx(256 / 2375, rel=1e-3)


def test_graph_is_never_a_pytorch_run() -> None:
    assert {r.framework for r in rows() if r.execution == "graph"} == {"tensorflow"}


def test_the_slower_of_two_contradicting_rows_is_not_learned_from() -> None:
    fast = a_row(number=1, step_s=1.0)
    slow = a_row(number=2, step_s=1.5, host=("other",) * 10)
    close = a_row(number=3, step_s=1.3, host=("third",) * 10)
    assert contradicted([fast, slow, close]) == {2}


def test_the_rest_of_a_contradicted_log_goes_with_it() -> None:
    good = [a_row(number=n, batch_size=n, step_s=1.0) for n in (1, 2, 3)]
    log = ("log",) * 10
    bad = [a_row(number=10 + n, batch_size=n, step_s=2.0, host=log) for n in (1, 2, 4)]
    assert contradicted([*good, *bad]) == {11, 12, 14}


@pytest.mark.parametrize(
    ("slug", "chip"),
    [("v100-sxm2-16gb", "v100"), ("gh200-96gb", "h100"), ("rtx-3090", "rtx-3090")],
)
def test_cards_with_one_chip_are_left_out_together(slug: str, chip: str) -> None:
    assert a_row(slug=slug).chip == chip


@pytest.mark.parametrize(
    ("function", "architecture"),
    [
        ("resnet50_v1_224", "resnet"),
        ("bert_large_squad_seq384", "bert"),
        ("efficientnet_b0_224", "efficientnet"),
        ("tf_mobilenetv3_small_075_224", "mobilenetv"),
    ],
)
def test_sizes_of_one_model_are_left_out_together(function: str, architecture: str) -> None:
    assert a_row(function=function).architecture == architecture


def test_torch_compile_is_an_execution_of_its_own() -> None:
    compiled = [row for row in rows() if row.execution == "compiled-torch"]
    assert compiled
    assert all("torch.compile" in row.notes for row in compiled)
    assert {row.framework for row in compiled} == {"pytorch"}
    assert not [r for r in rows() if "torch.compile" in r.notes and r.execution == "eager-torch"]


def test_only_eager_pytorch_can_be_told_an_order_of_dimensions() -> None:
    last = [row for row in rows() if row.channels_last]
    assert last
    assert {row.execution for row in last} == {"eager-torch"}
    told = [row for row in rows() if "NHWC" in row.notes and row.execution == "eager-torch"]
    assert told
    assert all(row.channels_last for row in told)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"channels_last": True}, "channels-last"),
        ({"fused_attention": True}, "fused attention"),
        ({"launch_bound": True}, "launch-bound"),
        # each row is in one line only: what holds it most comes first
        ({"launch_bound": True, "fused_attention": True, "channels_last": True}, "launch-bound"),
        ({"fused_attention": True, "channels_last": True}, "fused attention"),
    ],
)
def test_what_the_command_cannot_be_told_is_judged_apart(
    changes: dict[str, bool], why: str
) -> None:
    plain = a_row(launch_bound=False, fused_attention=False, channels_last=False)
    assert replace(plain, **changes).apart == why  # type: ignore[arg-type]


def test_accumulated_steps_are_counted_from_the_notes() -> None:
    assert {row.accumulation for row in rows()} >= {1, 8}
    for row in rows():
        assert (row.accumulation > 1) == ("grad-accum " in row.notes)
        if row.accumulation > 1:
            assert f"grad-accum {row.accumulation}" in row.notes
