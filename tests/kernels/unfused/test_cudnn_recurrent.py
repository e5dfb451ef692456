"""Recurrent layers of a real Keras model, as cuDNN would compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.choose.trace import Traced, trace

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.program import Kernel

STEPS, INPUTS, HIDDEN = 20, 24, 16
MODEL = """
import keras
import tensorflow as tf
from keras import layers

def built(*parts):
    x = inputs = keras.Input((20, 24))
    for part in parts:
        x = part(x)
    model = keras.Model(inputs, layers.Dense(1)(x))
    model.compile("sgd", "mse")
    return model

def lstm():
    return built(layers.LSTM(16))

def two_ways():
    return built(layers.Bidirectional(layers.GRU(16)))

def by_tensorflow():
    return built(layers.LSTM(16), layers.Lambda(lambda x: tf.identity(x), (16,)))

def plain():
    return built(layers.LSTM(16, use_cudnn=False))

def dropping():
    return built(layers.LSTM(16, recurrent_dropout=0.1))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp("recurrent")
    (place / "net.py").write_text(MODEL)
    return place


def traced(folder: Path, name: str, mode: str = "train") -> Traced:
    reference = f"{folder / 'net.py'}:{name}"
    infer = mode == "infer"
    return trace(Workload(reference=reference, kind="function", mode="infer" if infer else "train"))


def primitives(made: Traced) -> tuple[Kernel, ...]:
    assert made.per_primitive
    return made.per_primitive.kernels


def of_layer(made: Traced, word: str) -> list[Kernel]:
    return [one for one in primitives(made) if word in one.layer]


def test_time_steps_are_launches_and_the_products_run_at_once(folder: Path) -> None:
    made = traced(folder, "lstm")
    assert made.trace.cudnn_layers == ("lstm",)
    kernels = [one for one in of_layer(made, "lstm") if one.phase != "update"]
    assert [(one.kind, one.name, one.phase, one.count) for one in kernels] == [
        ("copy", "cudnn_weights", "forward", 20),
        ("gemm", "cudnn_input_product", "forward", 1),
        ("recurrent", "cudnn_steps", "forward", 2 * STEPS),
        ("recurrent", "cudnn_steps", "backward", 4 * STEPS),
        ("gemm", "cudnn_input_product", "backward", 1),
        ("gemm", "cudnn_weight_gradient", "backward", 1),
        ("gemm", "cudnn_weight_gradient", "backward", 1),
        ("copy", "cudnn_weights", "backward", 20),
    ]
    # a multiply-add for each weight, time step and sample, in each of three passes
    weights = 4 * HIDDEN * (INPUTS + HIDDEN)
    flops = sum(one.flops.per_sample for one in kernels)
    assert flops == 3 * 2 * weights * STEPS
    assert all(one.repeats == 1 for one in primitives(made) if one.kind != "recurrent")
    assert max(one.repeats for one in made.program.kernels) == STEPS  # XLA's loop stays


def test_two_directions_are_two_layers_of_cudnn(folder: Path) -> None:
    made = traced(folder, "two_ways", "infer")
    assert set(made.trace.cudnn_layers) == {"forward_gru", "backward_gru"}
    steps = [one for one in primitives(made) if one.kind == "recurrent"]
    assert [(one.phase, one.count, *one.dims["gates"]) for one in steps] == [
        ("forward", 2 * STEPS, 3),
        ("forward", 2 * STEPS, 3),
    ]
    assert all("bidirectional" in one.layer for one in steps)


@pytest.mark.parametrize(("name", "execution"), [("plain", "xla"), ("dropping", "graph")])
def test_what_cudnn_does_not_compute_stays_a_loop(folder: Path, name: str, execution: str) -> None:
    made = traced(folder, name)
    assert made.trace.cudnn_layers == ()
    kinds = {one.kind for one in primitives(made)}
    assert "recurrent" not in kinds
    assert max(one.repeats for one in primitives(made)) == STEPS
    # Keras: the layer clears supports_jit when it is made if cuDNN suits its other settings
    assert made.trace.execution == execution


def test_a_model_that_cudnn_serves_runs_without_xla(folder: Path) -> None:
    made = traced(folder, "lstm")
    assert made.trace.execution == "graph"
    assert any("cuDNN" in warning for warning in made.trace.warnings)


@pytest.mark.tf
def test_a_step_that_tensorflow_traced_has_the_same_kernels_of_cudnn(folder: Path) -> None:
    made, other = traced(folder, "by_tensorflow"), traced(folder, "lstm")
    assert (made.trace.path, other.trace.path) == ("tensorflow", "jax")
    assert made.trace.execution == other.trace.execution == "graph"

    def by_cudnn(one: Traced) -> list[tuple[str, str, int, float]]:
        kernels = (kernel for kernel in primitives(one) if "cudnn_" in kernel.name)
        return sorted((k.name, k.phase, k.count, k.flops.per_sample) for k in kernels)

    assert len(by_cudnn(other)) == 8
    assert by_cudnn(made) == by_cudnn(other)
    assert all(one.repeats == 1 for one in primitives(made) if one.kind != "recurrent")
