"""runtime/export_data: rows as the signature wants them, and nothing cut to fit."""

from __future__ import annotations

import numpy as np
import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


def test_integers_become_floats_and_training_rows_calibrate() -> None:
    assert facts()["fitted"] == [300, "float32", "300 rows of d.npz", "256 of x_train", 1.0]
    assert facts()["own_calibration"] == "5 of the rows that it is judged on"


def test_what_does_not_fit_is_told() -> None:
    shape, kind, length, name, output, empty = facts()["misfits"]
    assert "it has float64[5,3], the model takes float32[any,4]" in shape
    assert "does not fit the input 'row'" in kind
    assert "have 4 and 5 rows" in length
    assert "has no input 'row'" in name
    assert "has classes for 'b'; the model's outputs are a" in output
    assert "have 0 rows" in empty


def test_random_rows_are_the_same_each_time_and_numbers_stay_below_the_vocabulary() -> None:
    assert facts()["random"] == [64, True]
    assert facts()["numbers"] == [[64, 16], True, True]


def test_arrays_of_a_file_go_by_their_names_and_a_dataset_is_joined() -> None:
    assert facts()["file"] == [["a", "b"], True, True]
    assert facts()["dataset"] == [[397, 8, 8, 1], [397]]


def test_batches_go_to_the_last_row() -> None:
    assert facts()["batches"] == [[0, 2], [2, 2], [4, 1]]


def test_the_first_rows_are_told_as_such() -> None:
    from tfdyno.runtime.export.data import Data

    rows = {"x": np.arange(5)}
    data = Data(inputs=rows, classes={}, words="5 rows of a.npz", calibration=rows,
                calibration_words="")  # fmt: skip
    assert data.first_words(5) == "5 rows of a.npz"
    assert data.first_words(3) == "the first 3 of 5 rows of a.npz"
    assert data.first(3).rows == 3


def test_ranges_are_taken_from_all_of_data_that_is_sorted() -> None:
    import tensorflow as tf

    from tfdyno.runtime.export.data import CALIBRATION_ROWS, fitted

    rows = np.arange(1000, dtype="float32")[:, None]
    specs = (tf.TensorSpec((None, 1), tf.float32, name="x"),)
    for training, most in ((None, 999.0), (rows[:600], 599.0)):
        held = fitted((rows, None, training), specs, ("y",), "a.npz").calibration["x"]
        assert len(held) == CALIBRATION_ROWS == len(np.unique(held))
        assert (held[0, 0], held[-1, 0]) == (0.0, most)
    few = fitted((rows[:3], None, None), specs, ("y",), "a.npz").calibration["x"]
    assert few[:, 0].tolist() == [0.0, 1.0, 2.0]
