from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import pytest
from tests.model.steps import trace
from tests.runtime.lowered import library_flops, of_kind

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import TensorSpec
from tfdyno.core.messages.wire import fields_of
from tfdyno.runtime.trace.quick import program_of, programs_of
from tfdyno.runtime.trace.stablehlo import read_module

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.workload import TensorRole
    from tfdyno.core.messages.trace import QuickPrograms

BATCH = 37


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps of Keras models, traced in a child."""
    folder = tmp_path_factory.mktemp("steps")
    script = Path(__file__).parents[1] / "keras_steps.py"
    subprocess.run([sys.executable, str(script), str(folder)], check=True, timeout=280)
    return folder


@cache
def quick(folder: Path, name: str, mode: str, by_operation: bool = False) -> Program:
    found = json.loads((folder / f"{name}_{mode}.json").read_text())
    tensors = tuple(
        TensorSpec(
            name=path,
            role=role,
            shape=tuple(shape),
            dtype="float32",
            bytes=4 * math.prod(shape),
        )
        for role, path, shape in found
    )
    return program_of(
        read_module(folder / f"{name}_{mode}.mlir"),
        batch_size=BATCH,
        marker=37,
        trace_sha256="",
        tensors=tensors,
        mode=mode,
        by_operation=by_operation,
    )


def gflops(made: Program) -> float:
    """Per sample."""
    return library_flops(made) / BATCH / 1e9


def test_resnet50_forward_is_3_86_gigamacs(steps: Path) -> None:
    # Keras' ResNet50 has its stride in the first 1x1: 3.858 GMAC, not the 4.09 of the v1.5 layout
    assert gflops(quick(steps, "resnet50", "infer")) == pytest.approx(7.716, rel=0.001)


def test_resnet50_training_is_22_9_gigaflops(steps: Path) -> None:
    # three times the forward pass, less the input gradient of the first convolution:
    # 2 x 112^2 x 49 x 3 x 64 = 0.236
    made = quick(steps, "resnet50", "train")
    assert gflops(made) == pytest.approx(22.91, rel=0.001)
    found = [kernel.direction for kernel in of_kind(made, "convolution")]
    counts = {direction: found.count(direction) for direction in set(found)}
    assert counts == {"forward": 53, "input_gradient": 52, "weight_gradient": 53}


def test_resnet50_names_its_layers_and_phases(steps: Path) -> None:
    made = quick(steps, "resnet50", "train")
    first = of_kind(made, "convolution")[0]
    assert (first.layer, first.phase, first.dims["window"]) == ("conv1_conv", "forward", (7, 7))
    assert {kernel.phase for kernel in made.kernels} == {"forward", "backward", "update"}
    updated = {kernel.layer for kernel in made.kernels if kernel.phase == "update"}
    assert "conv5_block3_3_conv" in updated


def test_bert_base_agrees_with_the_formula(steps: Path) -> None:
    seq, width, depth = 128, 768, 12
    # per token: 4 projections and an MLP of 4 x width; per pair of tokens: scores and sums
    per_layer = seq * 2 * (4 * width**2 + 8 * width**2) + 2 * 2 * seq**2 * width
    forward = depth * per_layer / 1e9
    assert gflops(quick(steps, "bert_base", "infer")) == pytest.approx(forward, rel=0.001)
    assert gflops(quick(steps, "bert_base", "train")) == pytest.approx(3 * forward, rel=0.001)


def test_an_lstm_agrees_with_the_formula(steps: Path) -> None:
    steps_in_sequence, inputs, hidden = 50, 128, 256
    forward = steps_in_sequence * 4 * 2 * (inputs + hidden) * hidden / 1e9
    assert gflops(quick(steps, "lstm", "infer")) == pytest.approx(forward, rel=0.001)
    # weights and state have gradients, the network's input has none
    without = steps_in_sequence * 4 * 2 * inputs * hidden / 1e9
    expected = 3 * forward - without
    assert gflops(quick(steps, "lstm", "train")) == pytest.approx(expected, rel=0.01)


def test_a_depthwise_layer_agrees_with_the_formula(steps: Path) -> None:
    depthwise, pointwise = 2 * 64**2 * 9 * 32 / 1e9, 2 * 64**2 * 32 * 64 / 1e9
    assert gflops(quick(steps, "separable", "infer")) == pytest.approx(depthwise + pointwise)
    # the depthwise layer comes first: no input gradient
    expected = 2 * depthwise + 3 * pointwise
    assert gflops(quick(steps, "separable", "train")) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["resnet50", "bert_base", "lstm", "separable"])
@pytest.mark.parametrize("mode", ["train", "infer"])
def test_a_step_is_priced_in_seconds(steps: Path, name: str, mode: str) -> None:
    made = quick(steps, name, mode)
    assert made.seconds_s > 0.0
    assert made.buffers.peak_bytes.at(BATCH) > made.buffers.argument_bytes.at(BATCH)
    assert sum(part.at(BATCH) for part in made.buffers.parts_bytes.values()) == pytest.approx(
        made.buffers.peak_bytes.at(BATCH)
    )


def test_training_bytes_of_resnet50_are_those_of_the_compiled_program(steps: Path) -> None:
    # XLA for compute capability 8.0, float32, batch 296, this model's v1 layout: 162.0 GB outside
    # libraries and 77.8 GB inside with a momentum update; memory 26.2 GB (compiled 2026-11-21)
    kernels = quick(steps, "resnet50", "train").kernels
    traffic = {True: 0.0, False: 0.0}
    for kernel in kernels:
        library = kernel.kind in {"convolution", "gemm"}
        traffic[library] += (kernel.read_bytes + kernel.write_bytes).at(296) / 1e9
    assert traffic[False] == pytest.approx(162.0, rel=0.1)
    assert traffic[True] == pytest.approx(77.8, rel=0.1)
    plan = quick(steps, "resnet50", "train").buffers
    assert plan.temporary_bytes.at(296) / 1e9 == pytest.approx(26.2, rel=0.12)


def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text("this is no program")
    with pytest.raises(UsageError, match=r"broken\.mlir is not StableHLO"):
        read_module(path)


@pytest.mark.parametrize("name", ["resnet50", "bert_base", "lstm", "separable"])
@pytest.mark.parametrize("mode", ["train", "infer"])
def test_operation_by_operation_the_arithmetic_is_the_same_and_the_traffic_is_not_less(
    steps: Path, name: str, mode: str
) -> None:
    fused, apart = quick(steps, name, mode), quick(steps, name, mode, by_operation=True)
    assert gflops(apart) == pytest.approx(gflops(fused), rel=1e-9)
    moved = [
        sum((kernel.read_bytes + kernel.write_bytes).at(BATCH) for kernel in made.kernels)
        for made in (fused, apart)
    ]
    launches = [sum(kernel.count for kernel in made.kernels) for made in (fused, apart)]
    if name == "lstm":  # one layer: in a loop over the sequence there is nothing to keep apart
        assert moved[0] <= moved[1]
        assert launches[0] <= launches[1]
    else:
        assert moved[0] < moved[1]
        assert launches[0] < launches[1]


def test_resnet50_by_operation_runs_every_layer_of_keras(steps: Path) -> None:
    # Keras' ResNet50: 53 convolutions with bias, 53 normalisations, 49 rectifiers, 16 additions of
    # a shortcut, 2 paddings
    made = quick(steps, "resnet50", "infer", by_operation=True)
    kinds = Counter(kernel.kind for kernel in made.kernels)
    assert kinds["convolution"] == 53
    names = Counter(layer_kind(kernel.layer) for kernel in of_kind(made, "loop"))
    assert {name: names[name] for name in ("conv", "bn", "relu", "add", "out", "pad")} == {
        "conv": 53,
        "bn": 53,
        "relu": 33,  # the 16 others are those of a block's output
        "out": 16,
        "add": 16,
        "pad": 2,
    }


def layer_kind(layer: str) -> str:
    """``conv2_block1_1_bn`` -> ``bn``."""
    return layer.rpartition("/")[2].rpartition("_")[2]


def bfloat16_step(wide: bool) -> QuickPrograms:
    dtype = jnp.float32 if wide else jnp.bfloat16
    shapes = [jax.ShapeDtypeStruct((BATCH, 64), dtype), jax.ShapeDtypeStruct((64, 64), dtype)]
    module = jax.jit(lambda x, w: jnp.tanh(x @ w)).lower(*shapes).compiler_ir("stablehlo")
    roles: tuple[TensorRole, ...] = ("input", "weight")
    tensors = tuple(
        TensorSpec(name=role, role=role, shape=one.shape, dtype=str(one.dtype), bytes=0)
        for role, one in zip(roles, shapes, strict=True)
    )
    made = replace(trace(mode="infer"), batch_size=BATCH, marker=37, tensors=tensors)
    return programs_of(module, made)


def test_a_step_has_a_program_for_each_way_to_run_it() -> None:
    made = fields_of(bfloat16_step(wide=False))
    # It has no attention that a card fuses.
    assert made.pop("fused_attention") is made.pop("wide_attention") is None
    dtypes = {
        name: {kernel.dtype for kernel in one.kernels if kernel.kind == "gemm"}
        for name, one in made.items()
    }
    assert dtypes == {
        "program": {"bf16"},
        "per_op": {"bf16"},
        "per_primitive": {"bf16"},
        "widened": {"f32"},
        "per_op_widened": {"f32"},
        "per_primitive_widened": {"f32"},
    }


def test_without_bfloat16_nothing_is_widened() -> None:
    made = bfloat16_step(wide=True)
    assert made.widened is made.per_op_widened is made.per_primitive_widened is None
    assert [kernel.kind for kernel in made.per_op.kernels] == ["gemm", "loop"]
