"""runtime/nan/look_jax: a step of Keras on JAX in view, without any effect on the model."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.jaxes import told_by

pytestmark = pytest.mark.tf
CHILD = """
import json, os, sys
import keras, numpy as np
from keras import layers
from tfdyno.runtime.nan.look import look

x = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
y = x.sum(axis=1, keepdims=True)
parts = [layers.Dense(4, name="one"), layers.BatchNormalization(name="norm"),
         layers.Dropout(0.5, name="drop"), layers.Dense(1, name="two", kernel_regularizer="l2")]
model = keras.Sequential([keras.Input((4,)), *parts])
model.compile("adam", "mse")
model.optimizer.build(model.trainable_variables)

class Own(keras.Model):
    def train_step(self, state, data):
        return super().train_step(state, data)

def state(of):
    found = [*of.variables, *of.optimizer.variables, *of.metrics_variables]
    return [np.asarray(one) for one in found]

before = state(model)
seen = look(model, (x, y))
inputs = keras.Input((4,))
own = Own(inputs, layers.Dense(1)(inputs))
own.compile("adam", "mse")
left = look(own, (x, y))
result = {
    "names": [call.owner.name for call in seen.calls if call.owner in parts],
    "ended": all(call.ended >= 0 and call.outputs for call in seen.calls),
    "gradients": [variable.path.split("/", 1)[1] for variable, _ in seen.gradients],
    "shapes": [list(g.shape) for _, g in seen.gradients],
    "loss": float(seen.loss), "added": len(seen.added), "problem": seen.problem,
    "unchanged": all(np.array_equal(a, b) for a, b in zip(before, state(model), strict=True)),
    "own": [left.own_step, left.problem, len(left.calls), left.loss],
}
os.write(int(sys.argv[1]), json.dumps(result).encode())
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    told: dict[str, Any] = told_by(CHILD)
    return told


def test_layers_loss_and_gradients_are_seen(found: dict[str, Any]) -> None:
    assert found["names"] == ["one", "norm", "drop", "two"]
    assert found["ended"]
    assert found["gradients"] == ["one/kernel", "one/bias", "norm/gamma", "norm/beta",
                                  "two/kernel", "two/bias"]  # fmt: skip
    assert found["shapes"] == [[4, 4], [4], [4], [4], [4, 1], [1]]
    assert found["loss"] > 0
    assert (found["added"], found["problem"]) == (1, "")


def test_nothing_of_the_model_is_changed(found: dict[str, Any]) -> None:
    """Neither the averages of a layer nor what it draws from."""
    assert found["unchanged"]


def test_a_step_of_its_own_is_left(found: dict[str, Any]) -> None:
    problem = "the train_step is the model's own, which JAX runs as a whole"
    assert found["own"] == [True, problem, 0, None]
