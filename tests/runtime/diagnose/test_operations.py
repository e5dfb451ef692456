"""Where the time of real steps goes, by TensorFlow's own profiler."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

SUMS = """
from tfdyno.core.base.codec import to_builtins
from tfdyno.runtime.base.tensorflow_internals import forget_kernels
from tfdyno.runtime.diagnose.operations import profiled

result = {}
import keras, numpy as np, tensorflow as tf, time
big = tf.ones([700, 700])
w = tf.Variable(big)
@tf.function
def gemm():
    return tf.matmul(tf.matmul(big, w), w)
kernel = tf.Variable(tf.ones([3, 3, 32, 32]))
images = tf.ones([8, 48, 48, 32])
@tf.function
def conv():
    return tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME"))
doubles = tf.cast(big, tf.float64)
@tf.function
def in_doubles():
    return tf.matmul(doubles, doubles, name="creep")
def real(step, **more):
    step()
    before = time.perf_counter()
    for _ in range(5):
        step()
    plain_s = (time.perf_counter() - before) / 5
    began = time.perf_counter()
    found = to_builtins(profiled(lambda count: [step() for _ in range(count)], 5, **more))
    return found | {"plain_s": plain_s, "took_s": time.perf_counter() - began}
result["gemm"] = real(gemm)
result["xla"] = real(tf.function(gemm.python_function, jit_compile=True))
result["eager"] = real(gemm.python_function)
result["conv"] = real(conv)
result["conv_xla"] = real(tf.function(conv.python_function, jit_compile=True))
result["float64"] = real(in_doubles, float64_names=frozenset({"creep"}))
result["float64_xla"] = real(tf.function(in_doubles.python_function, jit_compile=True))
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512, "relu"),
                          keras.layers.BatchNormalization(), keras.layers.Dense(8)])
model.compile("adam", "mse", jit_compile=False)
x, y = np.ones((64, 64), "float32"), np.ones((64, 8), "float32")
result["keras"] = real(lambda: model.train_on_batch(x, y))
few = tf.Variable(tf.ones([4]))
@tf.function
def chain():
    value = few
    for _ in range(30):
        value = tf.reverse(tf.cumsum(value), [0])  # nothing that could be made one
    return value
for _ in range(300):
    chain()
result["worn"] = to_builtins(profiled(lambda count: chain(), 5))
forget_kernels()
chain()
result["fresh"] = to_builtins(profiled(lambda count: chain(), 5))
try:
    profiled(lambda count: None, 0)
except ValueError as error:
    result["none"] = str(error)
def fails(count):
    raise KeyError("step")
try:
    profiled(fails, 1)
except KeyError as error:
    result["raised"] = str(error)
import tempfile
tf.profiler.experimental.start(tempfile.mkdtemp())
result["second"] = profiled(lambda count: gemm(), 1)
tf.profiler.experimental.stop()
"""


@functools.cache
def sums() -> dict[str, Any]:
    return dict(once("diagnose_operations", lambda: in_tensorflow(SUMS)))


def _main(name: str) -> tuple[str, float]:
    classes = sums()[name]["class_s"]
    first = max(classes, key=classes.get)
    return first, classes[first] / sum(classes.values())


pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", ["gemm", "xla", "eager"])
def test_a_step_of_products_is_mostly_gemm(name: str) -> None:
    kind, share = _main(name)
    assert kind == "gemm"
    assert share > 0.8


def test_operations_that_tensorflow_has_found_cheap_are_told_once_it_begins_anew() -> None:
    worn, fresh = sums()["worn"], sums()["fresh"]
    assert fresh["count_per_step"] >= 60
    assert worn is None or worn["count_per_step"] < 10  # what a profile told without that


@pytest.mark.parametrize("name", ["conv", "conv_xla"])
def test_a_step_of_convolutions_is_mostly_conv(name: str) -> None:
    kind, share = _main(name)
    assert kind == "conv"
    assert share > 0.6


@pytest.mark.parametrize("name", ["float64", "float64_xla"])
def test_64_bit_work_is_seen_by_the_names_given_or_the_program_of_xla(name: str) -> None:
    found = sums()[name]
    assert found["float64_s"] > 0.8 * found["busy_s"]
    assert sums()["gemm"]["float64_s"] == 0.0


def test_classes_add_up_to_the_busy_time() -> None:
    for name in ("gemm", "xla", "eager", "conv", "keras"):
        found = sums()[name]
        assert sum(found["class_s"].values()) == pytest.approx(found["busy_s"], rel=1e-6)


def test_a_keras_step_has_an_optimizer_and_a_normalisation() -> None:
    classes = sums()["keras"]["class_s"]
    assert {"gemm", "optimizer", "normalisation", "elementwise"} <= set(classes)
    assert sums()["keras"]["count_per_step"] > 30
    assert sums()["keras"]["largest"][0][1] > 0


def test_no_steps_are_refused_and_a_failing_step_is_passed_on() -> None:
    assert "at least one step" in sums()["none"]
    assert "step" in sums()["raised"]


def test_a_profile_within_a_profile_is_none() -> None:
    assert sums()["second"] is None
