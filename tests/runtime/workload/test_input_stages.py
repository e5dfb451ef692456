"""The stages of a pipeline by name, and what their functions do besides computing."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.pipelines import asked, resumed

SEEN = """
import dataclasses
def effects(dataset):
    found = [dataclasses.asdict(input_stages.effects(s)) for s in input_stages.walk(dataset)]
    return sorted({f"{name}: {op}" for each in found for name, op in each.items() if op})

@tf.function
def outer(v):
    return tf.cond(v > 3, lambda: draw(v), lambda: v)

weights = tf.Variable(2, dtype=tf.int64)
result = {name: effects(made(name)) for name in MADE if name != "snapshot"}
result["nested"] = effects(numbers().map(outer))
result["variable"] = effects(numbers().map(lambda v: v * weights))
result["stateless"] = effects(numbers().map(
    lambda v: v + tf.random.stateless_uniform([], [1, v], 0, 9, tf.int64)))
result["images"] = effects(D.list_files(FILES, seed=1).map(tf.io.read_file).map(
    lambda text: tf.debugging.assert_type(text, tf.string) or tf.strings.length(text)))
result["kinds"] = [input_stages.kind(each) for each in (
    tf.data.TFRecordDataset("x"), tf.data.FixedLengthRecordDataset("x", 3), D.from_tensors(1),
    numbers().ragged_batch(2), numbers().ignore_errors(), numbers().map(double, 2))]
result["arrays"] = {name: input_stages.of_keras_arrays(made(name)) for name in
                    ("keras_arrays", "keras_in_order", "py_dataset", "shuffle")}
"""
pytestmark = pytest.mark.tf


@functools.cache
def seen() -> dict[str, Any]:
    return dict(asked(SEEN))


@pytest.mark.parametrize(("name", "effects"), [
    ("parallel_map", []), ("table", []), ("stateless", []), ("images", []),
    ("random_map", ["draws: RandomUniformInt"]),
    ("nested", ["draws: RandomUniformInt"]),
    ("keras_arrays", ["draws: RandomShuffle"]), ("keras_in_order", []),
    ("interleave", []), ("interleave_inner", ["shuffles: ShuffleDatasetV3"]),
    ("tf_generator", ["keeps: RngReadAndSkip"]),
    ("counter", ["keeps: AssignAddVariableOp", "reads: ReadVariableOp"]),
    ("variable", ["reads: ReadVariableOp"]),
    ("numpy_draws", ["python: PyFunc"]), ("python_pure", ["python: EagerPyFunc"]),
    ("captured", ["captures: a dataset made outside of it"]),
])  # fmt: skip
def test_what_functions_do(name: str, effects: list[str]) -> None:
    assert seen()[name] == effects


@pytest.mark.parametrize("name", ["generator", "py_dataset"])
def test_a_generator_is_python(name: str) -> None:
    assert any(effect.startswith("python: ") for effect in seen()[name])


def test_a_layer_that_keeps_its_seed_in_a_variable_keeps_a_state() -> None:
    assert any(effect.startswith("keeps: Assign") for effect in seen()["keras_layer"])


def test_kinds_are_the_names_of_the_methods() -> None:
    assert seen()["kinds"] == [
        "tf_record", "fixed_length_record", "tensor", "batch", "ignore_errors", "map",
    ]  # fmt: skip


def test_stages_are_named_as_in_the_script() -> None:
    titles = {name: facts["titles"] for name, facts in resumed().items()}
    assert titles["random_map"] == ["range", "shuffle", "map(draw)", "batch"]
    assert titles["py_dataset"] == ["from_tensors", "from_generator", "prefetch"]
    assert titles["window"][3].startswith("flat_map(lambda of <string>, line ")


def test_the_pipeline_of_arrays_is_known() -> None:
    assert seen()["arrays"] == {
        "keras_arrays": True, "keras_in_order": True, "py_dataset": False, "shuffle": False,
    }  # fmt: skip
