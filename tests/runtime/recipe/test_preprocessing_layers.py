"""Which layers prepare data, and which of them need the CPU."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

SEEN = """
import keras
from tfdyno.runtime.recipe.preprocessing_layers import is_random, preprocesses, why_cpu

L = keras.layers
class Own(L.Rescaling):
    pass
class Text(L.Layer):
    def call(self, text):
        return text
    def compute_output_spec(self, text):
        return keras.KerasTensor(text.shape, "string")

reads = Text()
reads(keras.Input((1,), dtype="string"))
layers = [L.StringLookup(vocabulary=["a"]), L.IntegerLookup(vocabulary=[1]), L.Hashing(3),
          L.TextVectorization(vocabulary=["a"]), L.HashedCrossing(3), L.CategoryEncoding(3),
          L.Discretization([0.0]), L.Normalization(mean=0.0, variance=1.0), Own(2.0),
          L.RandomFlip(), L.RandomZoom(0.1), L.RandomCrop(2, 2), L.Resizing(2, 2),
          L.Dense(1), L.Dropout(0.5), reads]
result = {type(each).__name__: [preprocesses(each), is_random(each), why_cpu(each)]
          for each in layers}
"""
TABLE, HASH = "its table is on the CPU", "it hashes text on the CPU"
pytestmark = pytest.mark.tf


@functools.cache
def seen() -> dict[str, Any]:
    return dict(in_tensorflow(SEEN))


@pytest.mark.parametrize(("name", "expected"), [
    ("StringLookup", [True, False, TABLE]), ("IntegerLookup", [True, False, TABLE]),
    ("TextVectorization", [True, False, TABLE]),
    ("Hashing", [True, False, HASH]), ("HashedCrossing", [True, False, HASH]),
    ("CategoryEncoding", [True, False, ""]), ("Discretization", [True, False, ""]),
    ("Normalization", [True, False, ""]), ("Own", [True, False, ""]),
    ("RandomFlip", [True, True, ""]), ("RandomZoom", [True, True, ""]),
    ("RandomCrop", [True, True, ""]), ("Resizing", [True, False, ""]),
    ("Dense", [False, False, ""]), ("Dropout", [False, True, ""]),
    ("Text", [False, False, "it reads text"]),
])  # fmt: skip
def test_what_a_layer_is(name: str, expected: list[Any]) -> None:
    assert seen()[name] == expected
