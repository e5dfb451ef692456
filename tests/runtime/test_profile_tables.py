"""The tables of names: every row's own example means what the row says."""

from __future__ import annotations

import csv

import pytest

from tfdyno.core.step_facts import OPERATION_CLASSES
from tfdyno.runtime.profile_tables import (
    DATA,
    called,
    host_kind,
    kernel_class,
    limit,
    operation_class,
    precision_of,
)

TABLES = {
    "kernels": (kernel_class, "class"),
    "operations": (operation_class, "class"),
    "host": (host_kind, "kind"),
}


def rows(table: str) -> list[dict[str, str]]:
    with (DATA / f"profile_{table}.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize(
    ("table", "row"),
    [pytest.param(t, row, id=f"{t}: {row['example']}"[:60]) for t in TABLES for row in rows(t)],
)
def test_the_example_of_a_row_means_what_the_row_says(table: str, row: dict[str, str]) -> None:
    meaning, column = TABLES[table]
    assert meaning(row["example"]) == row[column]


@pytest.mark.parametrize("table", ["kernels", "operations", "scopes", "host", "calls", "limits"])
def test_every_row_has_a_source(table: str) -> None:
    assert all(row["source"] for row in rows(table))
    assert all(None not in row for row in rows(table)), "a cell with a comma needs quotes"


def test_classes_are_those_of_the_facts() -> None:
    special = {"copy", "input", "python", "checkpoint", "wrapper"}
    for table in ("kernels", "operations", "scopes"):
        assert {row["class"] for row in rows(table)} <= {*OPERATION_CLASSES, *special}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("volta_sgemm_32x32_sliced1x4_nn", "gemm"),
        ("void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128>", "gemm"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1", "gemm"),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN", "gemm"),
        ("void gemv2T_kernel_val<int, int, float, float, float, 128, 16, 4, 4, false>", "gemm"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float, float>", "gemm"),
        ("volta_scudnn_128x64_relu_interior_nn_v1", "conv"),
        ("cutlass_tensorop_f16_s16816fprop_optimized_f16_128x128_32x5_nhwc_align8", "conv"),
        ("sm80_xmma_dgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "conv"),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", "conv"),
        ("void tensorflow::DepthwiseConv2dGPUKernelNHWC<float, 3, 3, 1>", "conv"),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>", "normalisation"),
        ("Relu_GPU_DT_FLOAT_DT_FLOAT_kernel", "elementwise"),
        ("loop_add_multiply_fusion_3", "elementwise"),
        ("input_reduce_fusion_7", "reduction"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>", "reduction"),
        ("void cudnn::pooling_fw_4d_kernel<float, float, cudnn::averpooling_func>", "reduction"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "collective"),
        ("MemcpyD2H", "copy"),
        ("Memset", "data_movement"),
        ("void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<int>", "data_movement"),
        ("some_kernel_nobody_knows", "other"),
    ],
)  # fmt: skip
def test_kernels_of_libraries_have_their_class(name: str, expected: str) -> None:
    assert kernel_class(name) == expected


def test_the_scope_of_a_kernel_tells_what_its_name_does_not() -> None:
    kernel = "Mul_GPU_DT_FLOAT_DT_FLOAT_kernel"
    assert kernel_class(kernel) == "elementwise"
    assert kernel_class(kernel, "StatefulPartitionedCall/adam/mul_3:Mul") == "optimizer"
    assert kernel_class(kernel, "net/batch_normalization/batchnorm/mul:Mul") == "normalisation"
    assert kernel_class("ampere_sgemm_128x64_nn", "net/adam/MatMul:MatMul") == "gemm"


def test_operations_of_the_host_have_their_class() -> None:
    assert operation_class("StatefulPartitionedCall/adam/Sub_15:Sub") == "optimizer"
    assert operation_class("StatefulPartitionedCall/dense/MatMul:MatMul") == "gemm"
    assert operation_class("while/body/PartitionedCall:PartitionedCall") == "wrapper"
    assert operation_class("PyFunc:PyFunc") == "python"


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
