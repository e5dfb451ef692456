from __future__ import annotations

import json
import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.runtime.lowered import library_flops, of_kind

from tfdyno.core.errors import UsageError
from tfdyno.core.workload import TensorSpec
from tfdyno.runtime.quick import program_of
from tfdyno.runtime.stablehlo import read_module

if TYPE_CHECKING:
    from tfdyno.core.program import Program

BATCH = 37


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps of Keras models, traced in a child."""
    folder = tmp_path_factory.mktemp("steps")
    script = Path(__file__).with_name("keras_steps.py")
    subprocess.run([sys.executable, str(script), str(folder)], check=True, timeout=280)
    return folder


@cache
def quick(folder: Path, name: str, mode: str) -> Program:
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
    assert made.seconds_s < 10  # 0.4 alone on a core; tests share the machine
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
