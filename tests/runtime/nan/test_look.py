"""What is seen of one tensor, of a batch, and of one step."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import dataclasses
import keras, numpy as np, tensorflow as tf
from tfdyno.runtime.nan.look import is_finite, look, named, not_finite_inside, parts, sight

nan, inf = np.nan, np.inf
half = sight(tf.constant([[1.0, -inf], [2.0, -inf]], tf.float16))
slices = tf.IndexedSlices(tf.constant([[1.0], [nan]]), tf.constant([0, 0]), tf.constant([4, 1]))
spread = tf.distribute.DistributedValues
x = {"a": np.ones((2, 3), "float32"), "b": [np.ones(2, "int64"), np.ones((2, 1), "float64")]}
ragged = tf.ragged.constant([[1.0], [2.0, nan]])

class Part(keras.layers.Layer):
    def call(self, inputs):
        return inputs / 0.0

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, use_bias=False), Part()])
model.compile("sgd", lambda truth, predicted: keras.ops.mean(predicted - truth))
step = look(model, (tf.ones((4, 2)), tf.ones((4, 2))))
result = {
    "half": [str(half), half.first, half.column, half.low, half.high, half.dtype, half.only_low],
    "mixed": [str(sight(np.array([nan, 1.0, inf]))), sight(np.array([nan, 1.0, inf])).column],
    "fine": [str(sight(np.array([-3.0, 1.0]))), sight(np.array([-3.0, 1.0])).most],
    "empty": str(sight(np.zeros((0, 2)))),
    "slices": [str(sight(slices)), is_finite(slices), is_finite(None)],
    "named": [name for name, _ in named((x, np.ones(2)), "x")] + [n for n, _ in named(ragged, "r")],
    "ragged": str(sight(named(ragged, "r")[0][1])),
    "parts": [type(leaf).__name__ for leaf in tf.nest.flatten(parts((np.ones(2), None)))],
    "calls": [[call.name, type(call.owner).__name__, len(call.inputs), not_finite_inside(call)]
              for call in step.calls],
    "own_step": step.own_step, "problem": step.problem,
    "gradients": [str(sight(gradient)) for _, gradient in step.gradients],
    "encloses": step.calls[0].encloses(step.calls[1]) and not step.calls[1].encloses(step.calls[0]),
}
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return in_tensorflow(CODE)


def test_a_tensor_in_words(found: dict[str, Any]) -> None:
    words, first, column, low, high, dtype, only_low = found["half"]
    assert words == "2 infinite of 4 values"
    assert (first, column, low, high, dtype, only_low) == ([0, 1], 1, 1.0, 2.0, "float16", True)
    assert found["mixed"] == ["1 NaN and 1 infinite of 3 values", None]
    assert found["fine"] == ["between -3 and 1", 3.0]
    assert found["empty"] == "between 0 and 0"
    assert found["slices"] == ["1 NaN of 2 values", False, True]


def test_the_data_of_a_batch_by_name(found: dict[str, Any]) -> None:
    assert found["named"] == ["x[0]['a']", "x[0]['b'][1]", "x[1]", "r"]
    assert found["ragged"] == "1 NaN of 3 values"
    assert found["parts"] == ["EagerTensor", "NoneType"]


def test_a_step_is_seen_layer_by_layer(found: dict[str, Any]) -> None:
    kinds = [(kind, inputs, bad) for _, kind, inputs, bad in found["calls"]]
    assert kinds == [("Sequential", 1, True), ("Dense", 1, False), ("Part", 1, True)]
    assert found["encloses"]
    assert (found["own_step"], found["problem"]) == (False, "")
    assert found["gradients"] == ["4 infinite of 4 values"]
