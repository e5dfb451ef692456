"""Another optimizer in the traced step: what it keeps, by the names of its own variables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import Traced, trace

if TYPE_CHECKING:
    from pathlib import Path

MODELS = """
import keras
from keras import layers

def dense(policy=None):
    model = keras.Sequential(
        [keras.Input((64,)), layers.Dense(32, use_bias=False, dtype=policy)], name="dense"
    )
    model.compile(keras.optimizers.Adam(1e-3, clipnorm=1.0, use_ema=True), "mse")
    return model

def mixed():
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, use_bias=False)], name="mixed")
    model.compile("adam", "mse")
    return model

def plain():
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, use_bias=False)], name="plain")
    model.compile("adam", "mse")
    return model
"""
KERNEL = 64 * 32 * 4
pytestmark = pytest.mark.tf


@pytest.fixture
def models(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


def state(traced: Traced) -> int:
    """Bytes of the optimizer's variables of the size of the kernel."""
    return sum(t.bytes for t in traced.trace.tensors if t.role == "optimizer" and t.bytes >= 1024)


@pytest.mark.parametrize(
    ("name", "kernels"),
    # Keras' Adafactor keeps one factor per row and column, and a velocity of full size beside them
    [("", 2), ("lion", 1), ("adafactor", 1), ("sgd", 0)],
)
def test_an_optimizer_keeps_so_many_values_for_each_weight(
    models: Path, name: str, kernels: int
) -> None:
    traced = trace(replace(parse_reference(f"{models}:plain"), optimizer=name))
    assert state(traced) == kernels * KERNEL
    assert traced.trace.optimizer == (name or "adam")
    told = [one for one in traced.trace.warnings if "what is learned changes" in one]
    assert bool(told) == bool(name)


def test_clipping_and_averages_stay(models: Path) -> None:
    traced = trace(replace(parse_reference(f"{models}:dense"), optimizer="sgd"))
    assert state(traced) == KERNEL  # the moving average of the weights


def test_a_scaled_loss_stays_scaled(models: Path) -> None:
    workload = parse_reference(f"{models}:mixed", precision="mixed_float16")
    names = [t.name for t in trace(replace(workload, optimizer="sgd")).trace.tensors]
    assert [name for name in names if "dynamic_scale" in name]


def test_a_loop_of_ones_own_takes_no_other(tmp_path: Path) -> None:
    path = tmp_path / "loop.py"
    path.write_text("""
import tensorflow as tf
w = tf.Variable(tf.zeros((4, 2)))

@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(x @ w)
    w.assign_sub(tape.gradient(loss, w))
    return loss
""")
    workload = parse_reference(f"{path}:train_step", input_spec=("float32[batch,4]",))
    for changed in ({"optimizer": "sgd"}, {"remat": "blocks"}):
        with pytest.raises(UsageError, match="a loop of your own does its step itself"):
            trace(replace(workload, **changed))  # type: ignore[arg-type]
