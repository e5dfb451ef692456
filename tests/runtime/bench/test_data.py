"""The data of a measured fit: endless, batched anew, or random."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import numpy as np, tensorflow as tf, keras
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import InputOptions
from tfdyno.runtime.bench import data as d
x, y = np.arange(50, dtype="float32").reshape(50, 1), np.eye(3, dtype="float32")[np.arange(50) % 3]

def sizes(stream, count=8):
    return [int(batch[0].shape[0]) for batch in stream.arguments["x"].take(count)]

slices = tf.data.Dataset.from_tensor_slices((x, y))
arrays = d.own_stream({"x": x, "y": y, "batch_size": 16, "shuffle": True}, 0)
split = d.own_stream({"x": x, "y": y, "batch_size": 16, "validation_split": 0.5}, 0)
own = d.own_stream({"x": slices.batch(16)}, 0)
last = d.own_stream({"x": slices.batch(16).prefetch(2)}, 20)
mapped = d.own_stream({"x": slices.batch(16).map(lambda a, b: (a, b))}, 20)

twice = slices.map(lambda a, b: (a * 2, b)).batch(16)
faster = d.own_stream({"x": twice}, 0, InputOptions(parallel_calls=-1, prefetch=-1))
ready = d.own_stream({"x": x, "y": y, "batch_size": 16}, 0, InputOptions(prefetch=2))

class Data(keras.utils.PyDataset):
    def __len__(self):
        return 3
    def __getitem__(self, index):
        return x[:8], y[:8]

try:
    d.own_stream({"x": Data()}, 20)
except UsageError as error:
    refused = str(error)

try:
    d.own_stream({"x": Data()}, 0, InputOptions(prefetch=2))
except UsageError as error:
    no_pipeline = str(error)

made = []
def note(value):
    made.append(float(value[0]))
    return value
def noting(a, b):
    return tf.ensure_shape(tf.py_function(note, [a], tf.float32), [1]), b
noted = slices.map(noting).batch(16)
cached = d.own_stream({"x": noted.cache()}, 0)
cached_sizes = sizes(cached, 12)

batch = d.first_batch(d.own_stream({"x": (part for part in [(x[:9], y[:9])] * 2)}, 0))
ids = np.array([[3], [5], [7]], "int32")
mixed = d.randomised(({"ids": ids, "image": np.zeros((3, 2), "uint8"), "f": x[:3]}, y[:3]))
result = {
    "arrays": sizes(arrays), "split": sizes(split), "own": sizes(own), "last": sizes(last),
    "cached": cached_sizes, "made": sorted(made),
    "mapped": sizes(mapped), "notes": [last.notes, mapped.notes], "refused": refused,
    "faster": sizes(faster), "ready": sizes(ready), "no_pipeline": no_pipeline,
    "options": [faster.notes, ready.notes],
    "same": [[float(v) for v in b[0][:, 0]] for b in faster.arguments["x"].take(2)],
    "seen": sorted({float(v) for b in arrays.arguments["x"].take(30) for v in b[0][:, 0]}),
    "pydata": d.own_stream({"x": Data()}, 0).endless,
    "generator": [list(part.shape) for part in batch],
    "ids": sorted(mixed[0]["ids"][:, 0].tolist()), "image": mixed[0]["image"].tolist(),
    "floats": mixed[0]["f"].tolist(), "hot": sorted(mixed[1].tolist()),
}
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    result: dict[str, Any] = in_tensorflow(CODE)
    return result


@pytest.mark.parametrize(
    ("kind", "size"), [("arrays", 16), ("split", 16), ("own", 16), ("last", 20), ("mapped", 20)]
)
def test_batches_are_whole_and_do_not_end(found: dict[str, Any], kind: str, size: int) -> None:
    assert found[kind] == [size] * 8


def test_a_cache_is_filled_by_the_first_pass_though_its_smaller_last_batch_is_left_out(
    found: dict[str, Any],
) -> None:
    assert found["cached"] == [16] * 12
    assert found["made"] == [float(number) for number in range(50)]


def test_options_of_the_input_keep_what_comes_and_its_order(found: dict[str, Any]) -> None:
    assert found["faster"] == found["ready"] == [16] * 8
    assert found["same"] == [[2.0 * n for n in range(16)], [2.0 * n for n in range(16, 32)]]
    assert "parallel_calls: as many elements as TensorFlow chooses" in found["options"][0][0]
    assert found["options"][1] == ["prefetch: 2 batches are made ready ahead."]


def test_data_that_is_no_dataset_takes_no_options(found: dict[str, Any]) -> None:
    assert found["no_pipeline"].startswith("the input options cannot be set for a Data")


def test_arrays_stay_shuffled_so_that_all_samples_come(found: dict[str, Any]) -> None:
    assert found["seen"] == [float(number) for number in range(50)]


def test_how_a_dataset_was_batched_anew_is_told(found: dict[str, Any]) -> None:
    assert found["notes"] == [
        ["The last batch() of the dataset makes batches of another size."],
        ["The dataset's batches are cut anew (rebatch), which costs time on the host."],
    ]


def test_data_that_makes_its_own_batches_cannot_be_batched_anew(found: dict[str, Any]) -> None:
    assert found["refused"].startswith("batch_size cannot be set for a Data: it makes its batches")
    assert found["pydata"] is False


def test_the_first_batch_of_a_generator_is_not_lost(found: dict[str, Any]) -> None:
    assert found["generator"] == [[9, 1], [9, 3]]


def test_random_values_keep_ids_and_labels_valid(found: dict[str, Any]) -> None:
    assert found["ids"] == [3, 5, 7]
    assert found["hot"] == [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert all(0.0 <= value <= 2.0 for row in found["floats"] for value in row)
    assert len({value for row in found["image"] for value in row}) > 1  # no zeros for images
