"""Models cut after their preprocessing layers: the same training, without tables in the step."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.prepared import prepared

NAMES = ["features", "sequential", "glued", "half"]
pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", NAMES)
def test_training_gives_exactly_the_same(name: str) -> None:
    found = prepared()[name]
    assert found["got"] == found["wanted"]
    assert len(found["wanted"]["val_loss"]) == 3
    assert len(set(found["wanted"]["loss"])) == 3
    assert found["weights"] == 0.0
    assert found["predicted"] == 0.0


def test_no_text_reaches_the_step() -> None:
    assert prepared()["features"]["kinds"] == ["<dtype: 'float32'>", "<dtype: 'int64'>"]
    assert prepared()["sequential"]["kinds"] == ["<dtype: 'int64'>"]
    assert prepared()["half"]["kinds"] == ["<dtype: 'bfloat16'>"]


def test_layers_at_the_inputs_are_moved_and_what_is_between_them() -> None:
    assert set(prepared()["features"]["moved"]) == {"look", "words", "norm", "hash"}
    assert prepared()["sequential"]["moved"] == ["words"]
    assert "again" in prepared()["glued"]["moved"]
    assert prepared()["glued"]["before"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_the_users_in_callbacks_and_afterwards(name: str) -> None:
    found = prepared()[name]
    assert found["loaded"] == 0.0  # saved whole: the file takes text
    assert not found["touched"]
    assert found["left"] == []


@pytest.mark.parametrize("name", NAMES)
def test_xla_compiles_the_rest_and_learns_the_same(name: str) -> None:
    found = prepared()[name]
    assert found["jit"] is True
    assert found["jit_after"] is False
    # XLA rounds otherwise, and Adam's first updates take only the sign of a small gradient.
    close = 2e-2 if name == "half" else 1e-3
    assert found["xla"]["val_loss"] == pytest.approx(found["wanted"]["val_loss"], rel=close)


SEEN = """
import keras
from tfdyno.runtime.recipe.preprocessing_split import is_random, preprocesses, why_cpu

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
