from __future__ import annotations

import csv
from dataclasses import replace
from functools import lru_cache

import pytest

from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.records import path_of, read_record
from tfdyno_truth.rows import TABLES, TRUTH, Row, contradicted, read_rows, single_gpu


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    return tuple(read_rows())


@lru_cache(maxsize=1)
def modern() -> tuple[Row, ...]:
    return tuple(row for row in read_rows(tables=("modern",)) if row.gpus == 1)


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


def test_the_constants_are_fitted_to_the_published_table_alone() -> None:
    assert {row.table for row in rows()} == {"published"}
    assert {row.zoo for row in rows()} == {"zoo.py"}
    assert {row.table for row in read_rows(tables=("published", "modern"))} == set(TABLES)


def test_every_usable_row_of_todays_software_has_a_record() -> None:
    assert len(modern()) == 94
    assert not [row.record for row in modern() if not path_of(FOLDER, row.record).exists()]


def test_a_row_with_an_inferred_setting_is_not_used() -> None:
    assert not [row for row in modern() if "q=C" in row.notes]


def test_a_row_says_what_ran_it() -> None:
    found = {(row.source, row.framework, row.engine) for row in modern()}
    assert ("LuxDL ResNet comparison", "jax", "jax") in found
    assert ("LuxDL ResNet comparison", "reactant", "reactant") in found
    assert ("scheemik unox HPC logs", "tensorflow", "tensorflow") in found
    keras_on_jax = {row.framework for row in rows() if row.engine == "jax"}
    assert keras_on_jax == {"tensorflow"}
    assert next(row for row in modern() if row.slug == "rtx-5090").version == "JAX 0.8 (2026-01)"


def test_gradients_without_an_optimizer_are_outputs_of_the_step() -> None:
    record = read_record(FOLDER, ("modern-jax.resnet50_flax_224", "train", "float32"))
    assert record
    gradients = [k for k in record.program.kernels if k.phase == "update"]
    moved = sum(k.read_bytes.fixed + k.write_bytes.fixed for k in gradients)
    # momentum would read and write each of 25.56 million weights thrice
    assert moved < 0.1 * 25.56e6 * 4


@pytest.mark.parametrize(
    ("function", "multiply_adds"),
    [  # of one image, from the papers and the tables of torchvision and keras.applications
        ("resnet18_flax_224", 1.82e9),
        ("resnet34_flax_224", 3.67e9),
        ("resnet50_flax_224", 4.09e9),
        ("resnet152_flax_224", 11.56e9),
        ("mobilenet_224", 0.569e9),
        ("vgg16_top_224", 15.47e9),
        ("densenet121_224", 2.87e9),
        ("inception_v3_299", 5.73e9),
        ("nasnetlarge_331", 23.8e9),
        ("efficientnet_b4_380", 4.2e9),
        ("efficientnet_b5_456", 9.9e9),
        ("efficientnet_b6_528", 19e9),
        ("efficientnet_b7_600", 37e9),
        ("efficientnetv2_s_384", 8.8e9),
        ("efficientnetv2_m_480", 24e9),
    ],
)
def test_a_record_has_the_operations_that_are_known_of_its_model(
    function: str, multiply_adds: float
) -> None:
    where = "modern-jax" if "_flax_" in function else "modern"
    record = read_record(FOLDER, (f"{where}.{function}", "infer", "float32"))
    assert record
    flops = sum(kernel.flops.per_sample for kernel in record.program.kernels)
    assert flops == pytest.approx(2 * multiply_adds, rel=0.1)


def test_a_record_has_the_parameters_that_its_source_states() -> None:
    with (TRUTH / "zoo_models.csv").open(newline="") as file:
        table = [raw for raw in csv.DictReader(file) if raw["params_m"]]
    stated = {raw["workload"]: (raw["params_m"], raw["params_ratio"] or "1") for raw in table}
    checked = set()
    for row in modern():
        record = read_record(FOLDER, row.record)
        assert record
        million, ratio = stated[f"{row.zoo}:{row.function}"]
        expected = float(million) * float(ratio) * 1e6
        assert record.trainable_parameter_count == pytest.approx(expected, rel=0.02), row.function
        checked.add(row.function)
    assert len(checked) == 35
