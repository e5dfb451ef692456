"""runtime/convert_measure: both sides give the same batches, and are read in turns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.forks import forked, handled
from tests.runtime.pictures import make_pictures

from tfdyno.core.messages.data import COMPARE_READING, CompareReading
from tfdyno.core.messages.wire import encode
from tfdyno.jobs.data.convert import ConvertRequest, convert

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.deploy.dataset import Dataset

pytestmark = pytest.mark.tf
SAME = """
import json, sys
import numpy as np, tensorflow as tf
from tfdyno.core.messages.data import CompareReading
from tfdyno.core.messages.wire import decode
from tfdyno.runtime.data.convert import measure

request = decode(json.loads(sys.argv[1]), CompareReading)

def rows(data):
    found = []
    for batch in data.unbatch().as_numpy_iterator():
        found.append(tuple(np.asarray(one).tobytes() for one in tf.nest.flatten(batch)))
    return sorted(found)

def whole(data):
    return [[str(spec.dtype.name), list(spec.shape)] for spec in tf.nest.flatten(data.element_spec)]

original, name = measure._original(request)
converted = measure._converted(request)
cast = lambda *batch: tf.nest.map_structure(
    lambda one: tf.cast(one, tf.int64) if one.dtype == tf.int32 else one, batch)
original = original.map(cast)
print(json.dumps([name, rows(original) == rows(converted.map(cast)), len(rows(converted)),
                  whole(converted), int(converted.cardinality())]))
"""
"""Labels of Keras are int32, those of records int64."""


def asked(folder: Path, source: Path, dataset: Dataset) -> CompareReading:
    return CompareReading(
        source=source, folder=folder / "out", settings=dataset.settings,
        features=dataset.features, classes=dataset.classes,
        batch_size=5, image_size=(12, 10), pairs=2,
    )  # fmt: skip


def ran(code: str, request: CompareReading) -> Value:
    """What code prints last; Keras counts the files before."""
    return json.loads(forked(code, encode(request)).splitlines()[-1])


def converted(source: Path, **more: Any) -> Dataset:
    question = ConvertRequest(
        source=source, destination=source.parent / "out", measure=False, **more
    )
    return convert(question).dataset


def table(folder: Path) -> Path:
    path = folder / "a [1]*.csv"  # TensorFlow takes such names for patterns
    rows = "".join(
        f'{n},{n / 7 if n % 4 else ""},"t, {n}",{("yes", "no")[n % 2]}\n' for n in range(23)
    )
    path.write_text(f"id,size,text,kind\n{rows}")
    return path


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_converted_images_are_those_of_keras(tmp_path: Path, compression: str) -> None:
    source = make_pictures(tmp_path / "pictures", 22, 16)
    made = converted(source, compression=compression)
    found = ran(SAME, asked(tmp_path, source, made))
    batches = [["float32", [None, 12, 10, 3]], ["int64", [None]]]
    assert found == ["keras.utils.image_dataset_from_directory", True, 22, batches, 5]


@pytest.mark.parametrize(("label", "seed"), [("kind", 3), ("id", None), ("", None)])
def test_converted_rows_are_those_of_make_csv_dataset(
    tmp_path: Path, label: str, seed: int | None
) -> None:
    source = table(tmp_path)
    made = converted(source, label=label, shuffle_seed=seed, shards=3)
    found = ran(SAME, asked(tmp_path, source, made))
    assert found[:3] == ["tf.data.experimental.make_csv_dataset", True, 23]


def test_pixels_are_read_without_decoding_and_differ_by_rounding_alone(tmp_path: Path) -> None:
    source = make_pictures(tmp_path / "pictures", 8, 16)
    made = converted(source, image_size=(12, 10))
    code = SAME.partition("original, name")[0] + (
        "def pixels(data):\n"
        "    flat = [images.numpy().reshape(len(images), -1) for images, _ in data]\n"
        "    return np.sort(np.concatenate(flat), axis=0)\n"
        "before = pixels(measure._original(request)[0])\n"
        "after = pixels(measure._converted(request))\n"
        "worst = float(np.abs(before - after).max())\n"
        "print(json.dumps([worst, str(after.dtype), len(after)]))\n"
    )
    worst, dtype, count = ran(code, asked(tmp_path, source, made))
    assert 0 < worst <= 0.5  # sorting keeps the distance
    assert (dtype, count) == ("float32", 8)


def test_both_are_read_in_turns(tmp_path: Path) -> None:
    source = make_pictures(tmp_path / "pictures", 22, 16)
    made = converted(source)
    found = handled(COMPARE_READING, asked(tmp_path, source, made), tmp_path)
    assert found["whole_epochs"] is True  # 22 images take no 3 s
    assert len(found["before_per_s"]) == len(found["after_per_s"])
    assert 2 <= len(found["before_per_s"]) <= 4
    assert all(rate > 22 for rate in (*found["before_per_s"], *found["after_per_s"]))


def test_a_source_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    source = make_pictures(tmp_path / "pictures", 6, 16)
    made = converted(source)
    next(source.rglob("*.png")).write_bytes(b"")
    found = handled(COMPARE_READING, asked(tmp_path, source, made), tmp_path)
    assert found["exit_code"] == 3
    assert found["refused"].startswith("the data could not be read: ")
