"""What a model tells of itself after a step."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

pytestmark = pytest.mark.tf
SCRIPT = """
import keras, numpy as np, tensorflow as tf
x, y = np.ones((16, 8), "float32"), np.ones((16, 4), "float32")
def made(policy=None, layers=(), **how):
    m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, dtype=policy), *layers])
    m.compile("sgd", "mse", **{"jit_compile": False, **how})
    m.fit(x, y, verbose=0)
    return m
def slow(v):
    return v + 1
class Host(keras.layers.Layer):
    def call(self, v):
        seen = tf.numpy_function(slow, [v], tf.float32)  # numpy here
        return v + tf.ensure_shape(seen, v.shape)
class Loop(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(4)
    def call(self, v):
        wide = tf.matmul(tf.cast(v, tf.float64), tf.ones((8, 8), tf.float64))  # wide here
        return self.inner(tf.cast(wide, tf.float32))
own = Loop()
own.compile("sgd", "mse", jit_compile=False)
own.fit(x, y, verbose=0)
w = tf.Variable(tf.ones((8, 4)), name="w")
@tf.function
def step(v):
    tf.py_function(slow, [v], tf.float32)  # python here
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(v, w))
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss
step(tf.ones((16, 8)))
data = tf.data.Dataset.from_tensors((x, y.astype("float64")))
cases = {
    "plain": (made(), {"x": x.astype("float64"), "y": y}),
    "wide": (made("float64"), {"x": data}),
    "mixed": (made("mixed_float16"), {}),
    "eager": (made(run_eagerly=True), {}),
    "xla": (made(jit_compile=True), {}),
    "numpy": (made(layers=[Host()]), {}),
    "creep": (own, {"x": x}),
}
"""
CODE = """
import runpy, tempfile
from pathlib import Path
import numpy as np, tensorflow as tf
from tfdyno.runtime.diagnose.model import facts_of
script = Path(tempfile.mkdtemp()) / "model.py"
script.write_text({script!r})
space = runpy.run_path(str(script), run_name="__main__")
def plain(facts):
    return facts | {{"float64_names": len(facts["float64_names"])}}
result = {{name: plain(facts_of(*case)) for name, case in space["cases"].items()}}
result["loop"] = plain(facts_of(None, (np.ones((2, 8)),), function=space["step"]))
result["python_loop"] = plain(facts_of(None, (), function=lambda: 1))
"""


@functools.cache
def told() -> dict[str, Any]:
    return dict(once("diagnose_model", lambda: in_tensorflow(CODE.format(script=SCRIPT))))


def _line(text: str) -> str:
    lines = SCRIPT.splitlines()
    return f"model.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


def test_a_plain_model_has_nothing_to_tell() -> None:
    facts = told()["plain"]
    # By hand: 8 x 4 + 4 parameters of 4 bytes.
    assert facts["parameter_bytes"] == (8 * 4 + 4) * 4
    assert (facts["precision"], facts["execution"]) == ("float32", "graph")
    assert facts["python_steps"] == []
    assert sum(facts["devices"].values()) == facts["variable_count"]
    assert list(facts["devices"]) == ["CPU:0"]


def test_arrays_of_64_bits_are_none_for_keras_casts_them() -> None:
    assert told()["plain"]["float64"] == []


def test_64_bit_variables_and_datasets_are_named() -> None:
    found = told()["wide"]["float64"]
    assert told()["wide"]["precision"] == "float64"
    assert any(one.endswith("/kernel") for one in found)
    assert "input x[1]" in found


def test_a_64_bit_operation_in_a_float32_model_has_its_line() -> None:
    assert any(one.endswith(_line("# wide here")) for one in told()["creep"]["float64"])
    assert told()["creep"]["float64_names"] >= 2


@pytest.mark.parametrize(
    ("name", "precision", "execution"),
    [
        ("mixed", "mixed_float16", "graph"),
        ("eager", "float32", "eager"),
        ("xla", "float32", "xla"),
        ("loop", "float32", "graph"),
        ("python_loop", "float32", "eager"),
    ],
)
def test_precision_and_execution_are_those_of_the_step(
    name: str, precision: str, execution: str
) -> None:
    assert (told()[name]["precision"], told()[name]["execution"]) == (precision, execution)


def test_python_inside_of_the_step_has_its_line() -> None:
    assert told()["numpy"]["python_steps"] == [f"numpy_function in {_line('# numpy here')}"]
    assert told()["loop"]["python_steps"] == [f"py_function in {_line('# python here')}"]
    assert told()["eager"]["python_steps"] == ["run_eagerly"]


def test_a_loop_is_known_by_its_function() -> None:
    facts = told()["loop"]
    assert (facts["variable_count"], facts["parameter_bytes"]) == (1, 128)  # 8 x 4 x 4 bytes
    assert facts["float64"] == ["input 0"]
