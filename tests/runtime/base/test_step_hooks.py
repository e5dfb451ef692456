"""The hooks see what a step does and leave nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import keras, numpy as np, tensorflow as tf
from tfdyno.runtime.base.step_hooks import (
    WithoutEffect, floats, has_own_step, held_updates, recorded_calls, unscaled_losses)

def methods():
    called = [id(kind.__call__) for kind in (keras.Layer, keras.Operation)]
    kinds = (keras.optimizers.Adam, keras.optimizers.LossScaleOptimizer)
    return called + [id(method) for kind in kinds for method in (kind.apply, kind.scale_loss)]

before = methods()
inputs = keras.Input((3,))
hidden = keras.layers.Dense(2, kernel_regularizer=keras.regularizers.L2(0.5), name="one")(inputs)
model = keras.Model(inputs, keras.layers.Dropout(0.5, name="two")(keras.ops.exp(hidden)))
scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam())
model.compile(scaled, "mse")
x, y = tf.ones((4, 3)), tf.ones((4, 2))
scaled.build(model.trainable_variables)
def state():
    return [np.asarray(v) for v in (*model.variables, *scaled.variables)]

start, updates = state(), []
with recorded_calls() as recorder, held_updates(updates), WithoutEffect():
    inside = methods()
    model.train_step((x, y))
    seen = [[type(c.owner).__name__, len(c.inputs), len(c.outputs)] for c in recorder.calls]
    recorder.active = False
    model(x)
    quiet = len(recorder.calls)
    recorder.forget()
    recorder.active = True
    keras.layers.Dense(1)(keras.Input((2,)))  # builds a graph of Keras, computes nothing
    built = len(recorder.calls)
plain = []
with held_updates(plain), unscaled_losses(), WithoutEffect():
    unscaled = float(scaled.scale_loss(tf.constant(2.0)))
    keras.utils.set_random_seed(0)
    loss = model.compute_loss(x, y, model(x), None)
    regular = float(model.losses[0])
    model.layers[1].kernel.assign(tf.zeros((3, 2)))
    written = float(model.losses[0])
try:
    with recorded_calls(), held_updates([]):
        raise KeyError
except KeyError:
    pass

class Own(keras.Model):
    def train_step(self, data):
        return {}

result = {
    "seen": seen, "quiet": quiet == len(seen), "built": built,
    "updates": [[type(u.optimizer).__name__, len(u.gradients), [v.path for v in u.variables]]
                for u in updates],
    "scaled": float(tf.reduce_max(tf.abs(updates[0].gradients[0]))) > 100,
    "unscaled": unscaled, "regular": regular, "written": written,
    "by_hand": 0.5 * float(tf.reduce_sum(model.layers[1].kernel.value**2)),
    "unchanged": all(np.array_equal(a, b) for a, b in zip(start, state(), strict=True)),
    "back": [inside != before, methods() == before],
    "floats": len(floats([x, tf.constant(1), "text", np.ones(2), None, tf.sparse.eye(2)])),
    "own": [has_own_step(model), has_own_step(Own())],
}
model.train_step = lambda data: {}
result["own"].append(has_own_step(model))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return in_tensorflow(CODE)


def test_calls_of_layers_and_of_operations_are_seen(found: dict[str, Any]) -> None:
    assert found["seen"] == [
        ["Functional", 1, 1], ["Dense", 1, 1], ["Exp", 1, 1], ["Dropout", 1, 1]
    ]  # fmt: skip
    assert found["quiet"]
    assert found["built"] == 0


def test_updates_are_kept_and_not_made(found: dict[str, Any]) -> None:
    assert found["updates"] == [["LossScaleOptimizer", 2, ["one/kernel", "one/bias"]]]
    assert found["scaled"]
    assert found["unchanged"]


def test_a_loss_is_left_as_it_is(found: dict[str, Any]) -> None:
    assert found["unscaled"] == 2.0


def test_regularizers_see_the_weights_and_what_is_written(found: dict[str, Any]) -> None:
    assert found["regular"] == pytest.approx(found["by_hand"])
    assert found["regular"] > 0
    assert found["written"] == 0.0


def test_nothing_is_left_behind_even_by_an_error(found: dict[str, Any]) -> None:
    assert found["back"] == [True, True]


def test_tensors_of_floats_and_train_steps_of_their_own(found: dict[str, Any]) -> None:
    assert found["floats"] == 2
    assert found["own"] == [False, True, True]
