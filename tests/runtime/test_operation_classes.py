"""Classes of operations by the names that TensorFlow, XLA and the cards' libraries give them."""

from __future__ import annotations

import csv
import re
from typing import Any

import pytest

from tfdyno.core.step_facts import OPERATION_CLASSES
from tfdyno.runtime.operation_classes import TABLE, Operation, class_of


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
        ({"kernel": "MemcpyH2D"}, "data_movement"),
        ({}, "other"),
    ],
)  # fmt: skip
def test_the_class_is_that_of_the_work(known: dict[str, Any], expected: str) -> None:
    assert class_of(Operation(**known)) == expected


def test_every_row_has_a_known_class_a_pattern_that_compiles_and_a_source() -> None:
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 20
    for row in rows:
        assert row["field"] in ("type", "scope", "hlo", "kernel")
        assert row["class"] in OPERATION_CLASSES
        assert row["source"]
        assert re.compile(row["pattern"]).search("") is None  # it does not fit everything
