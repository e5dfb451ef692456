"""Where a step's time goes, in profiles with a known answer."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once
from tests.runtime.profiles import GPU

SUMS = (
    GPU
    + """
from tfdyno.runtime.diagnose_operations import exclusive, operation_facts, profiled, union_s
from tfdyno.runtime.operation_classes import Operation
from tfdyno.runtime.profile_events import OpEvent, ProfileEvents

def event(line, begin, end, kind, **more):
    return OpEvent(line=line, begin_s=begin, end_s=end, name=kind,
                   operation=Operation(type=kind), **more)
def told(*events):
    facts = operation_facts(ProfileEvents(devices={}, host=events, steps_s=()), 2)
    return facts and to_builtins(facts)

result = {
    "gpu": to_builtins(operation_facts(events_of(made(gpu)), 2)),
    "two": told(event(0, 0, 8, "MatMul"), event(1, 4, 10, "Mul")),
    "inside": told(event(0, 0, 10, "Relu"), event(0, 2, 5, "MatMul", is_float64=True)),
    "exchange": told(event(0, 0, 10, "MatMul"), event(1, 6, 16, "NcclAllReduce")),
    "nothing": told(),
    "union": union_s([(0, 2), (1, 3), (5, 6)]),
    "exclusive": [(b, e, one.name) for b, e, one in exclusive(
        [event(0, 0, 10, "a"), event(0, 1, 3, "b"), event(0, 2, 3, "c"), event(0, 12, 13, "d")])],
}
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
)


@functools.cache
def sums() -> dict[str, Any]:
    return dict(once("diagnose_operations", lambda: in_tensorflow(SUMS)))


def _main(name: str) -> tuple[str, float]:
    classes = sums()[name]["class_s"]
    first = max(classes, key=classes.get)
    return first, classes[first] / sum(classes.values())


pytestmark = pytest.mark.tf


def test_an_instant_is_shared_by_all_that_run_in_it() -> None:
    # By hand, two steps: MatMul alone 0-4, both 4-8, Mul alone 8-10: 4 + 2 and 2 + 2.
    found = sums()["two"]
    assert found["class_s"] == {"gemm": 3.0, "elementwise": 2.0}
    assert (found["busy_s"], found["count_per_step"]) == (5.0, 1.0)


def test_time_inside_of_another_operation_is_the_inner_ones() -> None:
    found = sums()["inside"]
    assert found["class_s"] == {"elementwise": 3.5, "gemm": 1.5}
    assert found["float64_s"] == 1.5
    assert sums()["exclusive"] == [
        [0, 1, "a"], [1, 2, "b"], [2, 3, "c"], [3, 10, "a"], [12, 13, "d"]
    ]  # fmt: skip


def test_exchange_is_hidden_behind_work_or_exposed() -> None:
    # By hand, two steps: of the exchange from 6 to 16, 6-10 lies behind the product.
    found = sums()["exchange"]
    assert (found["collective_exposed_s"], found["collective_hidden_s"]) == (3.0, 2.0)
    assert sums()["two"]["collective_exposed_s"] == 0.0


def test_overlap_counts_once_and_nothing_is_nothing() -> None:
    assert sums()["union"] == 4
    assert sums()["nothing"] is None


def test_the_busiest_card_is_told_with_copies_and_what_ran_beside_it() -> None:
    # By hand, two steps: kernels 20-60, 60-70, 120-160 us and copies 50-70, 80-90 us. Busy 20-70,
    # 80-90, 120-160. The copy to the card shares 50-70 with the kernels.
    found = sums()["gpu"]
    assert found["busy_s"] == pytest.approx(50e-6)
    assert found["class_s"]["gemm"] == pytest.approx((30 + 5 + 40) / 2 * 1e-6)
    assert found["class_s"]["elementwise"] == pytest.approx(2.5e-6)
    assert found["class_s"]["data_movement"] == pytest.approx((10 + 10) / 2 * 1e-6)
    assert found["float64_s"] == pytest.approx(2.5e-6)
    assert (found["copied_bytes"], found["count_per_step"]) == (2048, 2.5)
    assert found["copy_s"] == pytest.approx(10e-6)
    # Unique took 20 of 200 us on the CPU and has no kernel; MatMul has one.
    assert found["host_only"] == ["Unique (m/look/Unique): 10% of the step"]


@pytest.mark.parametrize("name", ["gemm", "xla", "eager"])
def test_a_step_of_products_is_mostly_gemm(name: str) -> None:
    kind, share = _main(name)
    assert kind == "gemm"
    assert share > 0.8


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
