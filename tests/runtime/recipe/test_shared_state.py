"""Writes to Keras' variables apart from memory, and in one operation."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import keras, tensorflow as tf
from tfdyno.runtime.recipe.shared_state import Apart, added_at_once, metric_variables, seed_states

layer = keras.layers.Dense(2, kernel_regularizer="l2", activity_regularizer="l2")
model = keras.Sequential([keras.Input((3,)), layer, keras.layers.Dropout(0.5)])
model.compile("sgd", "mse", metrics=["mae"])
model._symbolic_build(data_batch=(tf.ones((4, 3)), tf.ones((4, 2))))
counter = keras.Variable(5, dtype="int32", trainable=False)
mean = keras.metrics.Mean()
mean.update_state([3.0])
sums = [(v, tf.zeros(v.shape, v.dtype)) for v in mean.variables]

@tf.function
def step():
    with added_at_once(), Apart(sums) as scope:
        model(tf.ones((4, 3)), training=True)
        losses = tf.stack(model.losses)
        mean.update_state([5.0])
        apart = mean.result()
        counter.assign_add(2)
        counter.assign_sub(1)
    scope.add_differences()
    return losses, apart

graph = step.get_concrete_function().graph
kinds = [node.name for node in graph.as_graph_def().library.function]
operations = [op.type for op in graph.get_operations()]
losses, apart = step()
plain = keras.Variable(1.0)
plain.assign_add(1.0)
result = {
    "losses": len(losses), "apart": float(apart), "mean": float(mean.result()),
    "counter": int(counter.numpy()), "adds": operations.count("AssignAddVariableOp"),
    "subtractions": operations.count("AssignSubVariableOp"), "plain": float(plain.numpy()),
    "metrics": sorted(v.path for v in metric_variables(model)), "seeds": len(seed_states(model)),
    "own": "assign_add" in vars(keras.Variable),
}
"""


def test_state_apart_is_added_and_counters_are_changed_in_one_operation() -> None:
    found = in_tensorflow(CODE)
    assert found["apart"] == 5  # the step sees only its own batch
    assert found["mean"] == 4  # (3 + 5) / 2: the other batches are still there
    assert found["counter"] == 6
    assert (found["adds"], found["subtractions"]) == (3, 1)  # total, count and the counter
    assert found["losses"] == 2  # of the weights and of the activations
    mean = "mean_absolute_error"
    assert found["metrics"] == ["loss/count", "loss/total", f"{mean}/count", f"{mean}/total"]
    assert found["seeds"] == 1
    assert found["plain"] == 2  # outside all is as in Keras
    assert not found["own"]
