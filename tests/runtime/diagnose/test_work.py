"""What a step has to compute, by hand, and what is known of the memory it runs in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import keras, numpy as np, tensorflow as tf
from keras import layers
from tfdyno.runtime.diagnose.work import (
    capability, graph_flops, memory, unaligned, work_of)

def dense(*units):
    return keras.Sequential([keras.Input((64,)), *(layers.Dense(n, name=f"d{n}") for n in units)])

conv = keras.Sequential([keras.Input((16, 16, 8)), layers.Conv2D(30, 3, padding="same", name="odd"),
                         layers.Conv2D(32, 3, padding="same"), layers.Flatten(),
                         layers.Dense(10, name="head")])
weights = tf.Variable(tf.ones((64, 32)))
variable = tf.Variable(tf.ones((64, 4)))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(x, weights))
    return loss, tape.gradient(loss, weights)

@tf.function
def of_images(x):
    kernel = tf.ones((3, 3, 8, 16))
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        loss = tf.reduce_sum(tf.nn.conv2d(x, kernel, 1, "SAME"))
    return loss, tape.gradient(loss, kernel)

@tf.function
def looping(x):
    return tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.matmul(v, v)), (0, x))[1]

@tf.function(input_signature=[tf.TensorSpec((None, 64), tf.float32)])
def open_ended(x):
    return tf.matmul(x, variable)

step(tf.ones((128, 64)))
of_images(tf.ones((2, 8, 8, 8)))
looping(tf.ones((4, 4)))
open_ended(tf.ones((3, 64)))
twice = tf.function(lambda x: tf.matmul(x, variable))
twice(tf.ones((2, 64)))
twice(tf.ones((5, 64)))
cards = {"float32": [1e12, 2e12], "float16": [8e12, 9e12], "bytes_per_s": [1e11, 1e11]}
result = {
    "model": work_of(dense(32, 16), None, 128, "mixed_float16", cards, 2),
    "one": work_of(dense(32, 16), None, 128, "float32", cards),
    "none": work_of(None, None, 0, "float32", {}),
    "loop": graph_flops(step), "images": graph_flops(of_images), "looping": graph_flops(looping),
    "open": graph_flops(open_ended), "twice": graph_flops(twice), "plain": graph_flops(len),
    "unaligned": [unaligned(one) for one in (
        dense(1001, 64), dense(64, 1024, 512, 10), conv, None, keras.Sequential())],
    "capability": capability(), "memory": memory(),
}
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return dict(in_tensorflow(CODE))


def test_products_of_a_model_count_three_times_for_both_passes(found: dict[str, Any]) -> None:
    # By hand: 128 samples x 2 x (64 x 32 + 32 x 16), three times.
    assert found["model"]["step_flops"] == 3 * 128 * 2 * (64 * 32 + 32 * 16)


def test_products_of_a_loop_are_those_of_its_graph(found: dict[str, Any]) -> None:
    # By hand: 2 x 128 x 64 x 32 forward, as much for the gradient of the weights.
    assert found["loop"] == 2 * 2 * 128 * 64 * 32
    # 2 pictures of 8 x 8, windows of 9, 8 channels to 16; as much for the gradient of the kernel.
    assert found["images"] == 2 * 2 * 2 * 64 * 9 * 8 * 16


@pytest.mark.parametrize("name", ["looping", "open", "twice", "plain"])
def test_work_that_is_not_known_in_full_is_not_told(name: str, found: dict[str, Any]) -> None:
    assert found[name] == 0.0


def test_the_peak_is_that_of_the_cards_that_work_on_a_step(found: dict[str, Any]) -> None:
    assert found["model"]["peak_flops_per_s"] == 17e12
    assert found["model"]["peak_bytes_per_s"] == 2e11
    assert found["one"]["peak_flops_per_s"] == 1e12
    assert found["none"] == {
        "unaligned": [], "compute_capability": "", "peak_flops_per_s": 0.0, "peak_bytes_per_s": 0.0,
    }  # fmt: skip


def test_wide_layers_whose_width_is_no_multiple_of_8_are_named(found: dict[str, Any]) -> None:
    odd, head, conv, none, empty = found["unaligned"]
    assert odd == ["d1001: 1,001 units"]
    assert head == []  # ten classes: next to no work
    assert conv == ["odd: 30 filters"]
    assert none == empty == []


def test_a_machine_without_a_card_has_no_capability_and_the_hosts_memory(
    found: dict[str, Any],
) -> None:
    assert found["capability"] == ""
    used, limit = found["memory"]
    assert 0 < used < limit
    assert limit > 2**28
