"""Event files are written without TensorBoard, and read back without it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

CODE = """
import pathlib, sys, tempfile
import numpy as np, tensorflow as tf
from tfdyno.runtime.train.tensorboard import Board

folder = pathlib.Path(tempfile.mkdtemp())
board = Board(folder)
nothing = list(folder.iterdir())
board.texts({"precision": "mixed_float16", "command": "a | b\\nc"})
board.scalars({"norm": 2.5}, 7)
board.scalars({}, 8, "validation")
validation_before = (folder / "validation").exists()
board.epoch(0, {"loss": 0.5, "val_loss": 0.75}, learning_rate=0.01, samples_per_s=100.0)
board.epoch(1, {"loss": float("nan"), "val_loss": 0.7})
board.close()
again = Board(folder)
again.scalars({"norm": 3.5}, 9)
again.close()

found = {}
for path in sorted(folder.glob("*/events.out.tfevents.*")):
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        event = tf.compat.v1.Event.FromString(record)
        for value in event.summary.value:
            array = tf.make_ndarray(value.tensor)
            number = str(float(array)) if array.dtype == np.float32 else array.item().decode()
            kind = [value.metadata.plugin_data.plugin_name, value.metadata.data_class]
            found.setdefault(path.parent.name, []).append([value.tag, event.step, number, *kind])
result = {"found": found, "nothing": nothing == [], "validation_before": validation_before,
          "tensorboard": "tensorboard" in sys.modules}
"""


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return in_tensorflow(CODE)


pytestmark = pytest.mark.tf


def test_scalars_of_training_and_validation_are_one_figure(result: dict[str, Any]) -> None:
    scalar = ["scalars", 1]
    train = [row for row in result["found"]["train"] if row[3] == "scalars"]
    assert train == [
        ["norm", 7, "2.5", *scalar],
        ["epoch_loss", 0, "0.5", *scalar],
        ["epoch_learning_rate", 0, "0.009999999776482582", *scalar],
        ["epoch_samples_per_s", 0, "100.0", *scalar],
        ["epoch_loss", 1, "nan", *scalar],
        ["norm", 9, "3.5", *scalar],  # of a second session
    ]
    assert result["found"]["validation"] == [
        ["epoch_loss", 0, "0.75", *scalar],
        ["epoch_loss", 1, "0.699999988079071", *scalar],
    ]


def test_settings_are_a_table(result: dict[str, Any]) -> None:
    [text] = [row for row in result["found"]["train"] if row[3] == "text"]
    assert text == [
        "hyperparameters", 0,
        "| setting | value |\n| --- | --- |\n| precision | mixed_float16 |\n"
        "| command | a \\| b c |",
        "text", 2,
    ]  # fmt: skip


def test_no_file_before_there_is_something_to_write(result: dict[str, Any]) -> None:
    assert result["nothing"]
    assert not result["validation_before"]
    assert not result["tensorboard"]
