"""The tables of names: every row's own example means what the row says."""

from __future__ import annotations

import csv

import pytest

from tfdyno.profile.tables import DATA, called, host_kind, limit, precision_of


def rows(table: str) -> list[dict[str, str]]:
    with (DATA / f"profile_{table}.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("row", rows("host"), ids=lambda row: row["example"])
def test_the_example_of_a_row_means_what_the_row_says(row: dict[str, str]) -> None:
    assert host_kind(row["example"]) == row["kind"]


@pytest.mark.parametrize("table", ["host", "calls", "limits"])
def test_every_row_has_a_source(table: str) -> None:
    assert all(row["source"] for row in rows(table))
    assert all(None not in row for row in rows(table)), "a cell with a comma needs quotes"


def test_calls_of_functions_are_known_by_their_names() -> None:
    assert called("EagerLocalExecute: __inference_train_step_123") == "train_step"
    assert called("PjitFunction(update)") == "update"
    assert called("EagerLocalExecute: MatMul") == ""


def test_the_name_of_a_kernel_tells_its_precision() -> None:
    assert precision_of("void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_f16>") == "float16"
    assert precision_of("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn") == "bfloat16"
    assert precision_of("volta_dgemm_64x64_nn") == "float64"
    assert precision_of("Mul_GPU_DT_DOUBLE_DT_DOUBLE_kernel") == "float64"
    assert precision_of("ampere_sgemm_128x64_nn") == ""


def test_limits_are_numbers() -> None:
    assert limit("outlier_ratio") == 3
    assert 0 < limit("long_gap_s") < 1e-3
