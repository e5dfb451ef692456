"""What a step computes, against counts by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import numpy as np, tensorflow as tf, keras
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.recipe.flops import flops_and_peak, forward_flops
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
L = keras.layers
dense = keras.Sequential([keras.Input((8,)), L.Dense(16, activation="relu"), L.Dense(4)])
image = keras.Sequential([keras.Input((10, 10, 3)), L.Conv2D(6, 3), L.GlobalAveragePooling2D()])
a, b = keras.Input((5, 8), name="a"), keras.Input((5, 8), name="b")
two = keras.Model({"a": a, "b": b}, L.MultiHeadAttention(2, 4)(a, b))
loop = keras.Sequential([keras.Input((7, 3)), L.LSTM(4)])
open_size = keras.Sequential([keras.Input((None, 3)), L.Dense(4)])
class Own(keras.Model):
    def call(self, x):
        return x
half = keras.Sequential([keras.Input((8,)), L.Dense(16, dtype="mixed_bfloat16"),
                         L.Dense(1, dtype="float32")])
x, y = np.ones((100, 8), "float32"), np.ones((100, 4), "float32")
peaks = {"float32": [1e12, 1e12, 4e12], "bfloat16": [2e12, 2e12, 8e12]}
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    mirrored = keras.Sequential([keras.Input((8,)), L.Dense(16)])
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(20)
result = {
    "dense": forward_flops(dense), "image": forward_flops(image), "two": forward_flops(two),
    "unknown": [forward_flops(one) for one in (loop, open_size, Own())],
    "arrays": flops_and_peak(dense, {"x": x, "y": y}, peaks, Recipe()),
    "data": flops_and_peak(dense, {"x": data}, peaks, Recipe()),
    "generator": flops_and_peak(dense, {"x": (one for one in [])}, peaks, Recipe()),
    "half": flops_and_peak(half, {"x": data}, peaks, Recipe())[1],
    "no_card": flops_and_peak(dense, {"x": data}, {}, Recipe()),
    "own_strategy": flops_and_peak(mirrored, {"x": data}, peaks, Recipe())[1],
    "strategies": [flops_and_peak(dense, {"x": data}, peaks, Recipe(strategy=name))[1]
                   for name in ("single", "ps")],
}
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    result: dict[str, Any] = in_tensorflow(CODE)
    return result


def test_products_are_counted_with_two_for_a_multiply_add(found: dict[str, Any]) -> None:
    assert found["dense"] == 2 * 8 * 16 + 2 * 16 * 4
    assert found["image"] == 2 * 8 * 8 * 6 * 3 * 3 * 3
    projections = 3 * 2 * 5 * 8 * 8 + 2 * 5 * 8 * 8
    assert found["two"] == projections + 2 * (2 * 2 * 5 * 5 * 4)


def test_what_stands_in_no_graph_is_not_known(found: dict[str, Any]) -> None:
    assert found["unknown"] == [0.0, 0.0, 0.0]


def test_a_step_has_the_batch_and_three_passes(found: dict[str, Any]) -> None:
    assert found["arrays"] == [3 * 384 * 32, 1e12]
    assert found["data"] == [3 * 384 * 20, 1e12]
    assert found["generator"] == [0.0, 1e12]


def test_the_peak_is_that_of_the_dtype_that_most_is_computed_in(found: dict[str, Any]) -> None:
    assert found["half"] == 2e12
    assert found["no_card"] == [0.0, 0.0]


def test_the_peak_is_of_the_cards_that_the_strategy_takes_also_the_scripts_own(
    found: dict[str, Any],
) -> None:
    assert found["own_strategy"] == 2e12
    assert found["strategies"] == [1e12, 6e12]
