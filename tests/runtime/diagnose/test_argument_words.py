"""How two calls of a function differ, in words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import numpy as np, tensorflow as tf
from tfdyno.runtime.diagnose.argument_words import described, difference
def step(x, y=None, *rest, **named):
    pass
def told(before, now):
    return difference([described(step, *one) for one in before], described(step, *now))
a, b = tf.ones((2, 3)), tf.ones((4, 3))
data = tf.data.Dataset.from_tensors
class Mine:
    pass
result = {
    "shape": told([((a,), {})], ((b,), {})),
    "nearest": told([((b, 1), {}), ((a, 2), {})], ((b, 2), {})),
    "array": told([((np.ones(3),), {})], ((np.ones(3, "float32"),), {})),
    "kind": told([((a, 1), {})], ((a, a), {})),
    "object": told([((Mine(),), {})], ((Mine(),), {})),
    "text": told([((a, "train"), {})], ((a, "test"), {})),
    "nothing": told([((a,), {})], ((a,), {})),
    "first": told([], ((a,), {})),
    "data": told([((data(a),), {})], ((data(b),), {})),
    "many": len(described(step, (list(range(1000)),), {})),
    "variable": told([((tf.Variable(a),), {})], ((tf.Variable(b),), {})),
    "unknown": described(lambda: None, (1,), {"k": None}),
}
"""


@pytest.fixture(scope="module")
def words() -> dict[str, Any]:
    return dict(in_tensorflow(CODE))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shape", "argument x: shape (2, 3) -> (4, 3)"),
        ("nearest", "argument x: shape (2, 3) -> (4, 3)"),
        ("array", "argument x: float64 -> float32"),
        ("kind", "argument y: value 1 -> a tensor"),
        ("object", "argument x: another Mine"),
        ("text", "argument y: 'train' -> 'test'"),
        ("nothing", "no argument: a variable, a device or a setting that it uses"),
        ("first", ""),
        ("data", "argument x: shape (2, 3) -> (4, 3)"),
        ("variable", "argument x: Variable (2, 3) -> Variable (4, 3)"),
    ],
)
def test_the_difference_is_that_from_the_most_similar_call(
    words: dict[str, Any], name: str, expected: str
) -> None:
    assert words[name] == expected


def test_large_structures_are_cut_and_odd_calls_are_described(words: dict[str, Any]) -> None:
    assert words["many"] == 64
    assert words["unknown"] == {"0": ["value", "1"], "k": ["value", "None"]}
