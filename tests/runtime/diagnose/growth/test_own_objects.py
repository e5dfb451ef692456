"""What the user's code holds, found by name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
SCRIPT = """
import collections, keras, numpy as np, tensorflow as tf
losses = []
text = "abc"
class Log:
    shared = {}
    def __init__(self):
        self.rows = collections.deque([1, 2])
        self.inner = {"a": [1.0], "b": np.zeros((4, 8))}
log = Log()
def made():
    hidden = set()
    def step():
        hidden.add(1)  # grows here
    return step
step = made()
loop = []
loop.append(loop)
class Odd(dict):
    def items(self):
        raise RuntimeError("no")
odd = Odd(a=1)
class Keep(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []
def main():
    inside = [1, 2, 3]
    return look()
found = main()
"""
CODE = """
import runpy, sys, tempfile
from pathlib import Path
import numpy as np, tensorflow as tf
from tfdyno.runtime.diagnose.growth import own_objects
script = Path(tempfile.mkdtemp()) / "held.py"
script.write_text({script!r})
def look():
    return {{one.name: [one.size, one.is_bytes, own_objects.grown_at(one)]
             for one in own_objects.held(own_objects.roots())}}
space = runpy.run_path(str(script), {{"look": look}}, run_name="__main__")
keep = space["Keep"]()
callback = [one.name for one in own_objects.held(own_objects.roots([keep])) if "Keep" in one.name]
same, tensor = np.zeros(100), tf.ones((10, 10))
result = {{
    "found": space["found"],
    "callback": callback,
    "kinds": [own_objects.kind_of(one) for one in (
        [tensor], [{{"logs": tensor}}], [tf.function(lambda: 1)], [1.0], [],
        [iter(tf.data.Dataset.range(2))], {{"a": [tensor, 1]}}, np.zeros(3))],
    "same": own_objects.element_bytes([same] * 5),
    "arrays": own_objects.element_bytes([np.zeros(100) for _ in range(5)]),
    "tensors": own_objects.element_bytes([tf.ones((10, 10)) for _ in range(5)]),
    "empty": own_objects.element_bytes([]),
}}
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return dict(in_tensorflow(CODE.format(script=SCRIPT)))


def test_lists_arrays_and_texts_of_the_script_are_found_by_name(told: dict[str, Any]) -> None:
    found = told["found"]
    assert found["losses"][:2] == [0, False]
    assert found["text"][:2] == [3, True]
    assert found["log.rows"][:2] == [2, False]
    assert found["log.inner['a']"][:2] == [1, False]
    assert found["log.inner['b']"][:2] == [4 * 8 * 8, True]
    assert "Log.shared" in found


def test_what_a_function_closes_over_or_holds_while_it_runs_is_found(told: dict[str, Any]) -> None:
    assert told["found"]["hidden"][0] == 0
    assert told["found"]["inside"][0] == 3


def test_the_line_that_makes_it_grow_is_named(told: dict[str, Any]) -> None:
    lines = SCRIPT.splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "# grows here" in text)
    assert told["found"]["hidden"][2] == f"held.py:{line}"
    assert told["found"]["losses"][2] == "held.py:3"  # nothing appends: where it is made


def test_attributes_of_callbacks_are_found(told: dict[str, Any]) -> None:
    assert "Keep.seen" in told["callback"]


def test_the_kind_is_that_of_the_elements(told: dict[str, Any]) -> None:
    assert told["kinds"] == [
        "tensors", "tensors", "functions", "objects", "objects", "iterators", "tensors", "objects",
    ]  # fmt: skip


def test_bytes_of_an_element_are_its_values_and_an_object_kept_twice_adds_a_pointer(
    told: dict[str, Any],
) -> None:
    # By hand: 100 doubles are 800 bytes, 10 x 10 floats 400; each with what its object takes.
    assert told["same"] == 8.0
    assert 800 < told["arrays"] < 900
    assert 400 + 900 <= told["tensors"] < 1400
    assert told["empty"] == 0.0
