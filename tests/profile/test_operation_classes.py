"""Classes of operations by the names that TensorFlow, XLA and the cards' libraries give them."""

from __future__ import annotations

import csv
import re
from typing import Any

import pytest

from tfdyno.core.measure.step_facts import OPERATION_CLASSES
from tfdyno.profile.operation_classes import LAYOUT, SPECIAL, TABLE, Operation, class_of

with TABLE.open(encoding="utf-8", newline="") as lines:
    ROWS = list(csv.DictReader(lines))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"type": "MatMul"}, "gemm"),
        ({"type": "_MklNativeFusedMatMul"}, "gemm"),
        ({"type": "_FusedMatMul"}, "gemm"),
        ({"type": "BatchMatMulV2"}, "gemm"),
        ({"type": "_MklNativeConv2DBackpropFilter"}, "conv"),
        ({"type": "DepthwiseConv2dNativeBackpropInput"}, "conv"),
        ({"type": "Conv3D"}, "conv"),
        ({"type": "CollectiveReduceV2"}, "collective"),
        ({"type": "StatelessRandomUniformV2"}, "random"),
        ({"type": "ResourceApplyAdam"}, "optimizer"),
        ({"type": "Mul", "scope": "adam_2/Mul_1"}, "optimizer"),
        ({"type": "MatMul", "scope": "muon/MatMul"}, "gemm"),
        ({"type": "Mul", "scope": "gradient_tape/m/dense/Mul"}, "elementwise"),
        ({"type": "SquaredDifference", "scope": "m/batch_normalization_1/x"}, "normalisation"),
        ({"type": "SquaredDifference", "scope": "loss/mse/x"}, "elementwise"),
        ({"type": "FusedBatchNormGradV3"}, "normalisation"),
        ({"type": "Mean"}, "reduction"),
        ({"type": "MaxPoolGrad"}, "reduction"),
        ({"type": "Softmax"}, "reduction"),
        ({"type": "Transpose"}, "data_movement"),
        ({"type": "ReadVariableOp"}, "data_movement"),
        ({"type": "AddV2"}, "elementwise"),
        ({"type": "MyOwnOp"}, "other"),
        ({"hlo": ("dot",)}, "gemm"),
        ({"hlo": ("custom-call:__cublas$lt$matmul",)}, "gemm"),
        ({"hlo": ("custom-call:__cudnn$convForward",)}, "conv"),
        ({"hlo": ("fusion", "convolution", "add")}, "conv"),
        ({"hlo": ("all-reduce-start",)}, "collective"),
        ({"hlo": ("fusion", "reduce", "add")}, "reduction"),
        ({"hlo": ("fusion", "add", "multiply")}, "elementwise"),
        ({"hlo": ("copy",)}, "data_movement"),
        ({"kernel": "ampere_sgemm_128x64_nn"}, "gemm"),
        ({"kernel": "sm80_xmma_fprop_implicit_gemm_tf32f32"}, "conv"),
        ({"kernel": "void cudnn::bn_fw_tr_1C11_singleread"}, "normalisation"),
        ({"kernel": "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}, "collective"),
        ({"kernel": "void Eigen::internal::EigenMetaKernel<x>"}, "elementwise"),
        ({"kernel": "loop_add_fusion_3"}, "elementwise"),
        ({"kernel": "MemcpyH2D"}, "copy"),
        ({"hlo": ("fusion", "broadcast", "multiply")}, "elementwise"),
        ({"hlo": ("fusion", "slice", "xor"), "scope": "d/random_uniform/X"}, "random"),
        ({"hlo": ("fusion", "compare", "add", "gather")}, "data_movement"),
        ({"kernel": "nchwToNhwcKernel", "type": "Conv2D"}, "layout"),
        ({"kernel": "a_kernel_nobody_knows", "type": "Conv2D"}, "conv"),
        ({"type": "StatefulPartitionedCall"}, "wrapper"),
        ({"type": "IteratorGetNext"}, "input"),
        ({"type": "_HostRecv"}, "wait"),
        ({"type": "PyFunc", "scope": "PyFunc"}, "python"),
        ({}, "other"),
    ],
)  # fmt: skip
def test_the_class_is_that_of_the_work(known: dict[str, Any], expected: str) -> None:
    assert class_of(Operation(**known)) == expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['field']}: {row['example'][:50]}")
def test_the_example_of_a_row_means_what_the_row_says(row: dict[str, str]) -> None:
    said: Any = {"hlo": {"hlo": (row["example"],)}, "scope": {"scope": row["example"] + "/Mul"}}
    assert (
        class_of(Operation(**said.get(row["field"], {row["field"]: row["example"]})))
        == (row["class"])
    )


def test_every_row_has_a_known_class_a_pattern_that_compiles_and_a_source() -> None:
    assert len(ROWS) > 20
    for row in ROWS:
        assert row["field"] in ("type", "scope", "hlo", "kernel")
        assert row["class"] in {*OPERATION_CLASSES, *SPECIAL, LAYOUT}
        assert row["source"]
        assert None not in row, "a cell with a comma needs quotes"
        assert re.compile(row["pattern"]).search("") is None  # it does not fit everything


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
        ("void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<int>", "layout"),
        ("some_kernel_nobody_knows", "other"),
    ],
)  # fmt: skip
def test_kernels_of_libraries_have_their_class(name: str, expected: str) -> None:
    assert class_of(Operation(kernel=name)) == expected
