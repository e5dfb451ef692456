"""LiteRT answers for any number of samples, in real values, under the model's own names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.litert.run import MOST_ROWS, LiteRT

DATA = Path(__file__).parents[1].parent / "data" / "litert"
IMAGES = np.random.default_rng(0).random((MOST_ROWS + 3, 28, 28, 1), dtype=np.float32)


def test_every_batch_gives_the_answers_of_single_samples() -> None:
    model = LiteRT(DATA / "cnn.tflite")
    many = model.outputs({"image": IMAGES})
    assert list(many) == ["classes", "other"]
    assert many["classes"].shape == (MOST_ROWS + 3, 10)
    assert np.allclose(many["classes"].sum(axis=1), 1.0, atol=1e-5)
    for place in (0, MOST_ROWS - 1, MOST_ROWS + 2):
        alone = model.outputs({"image": IMAGES[place : place + 1]})
        for name, array in many.items():
            assert np.allclose(array[place], alone[name][0], atol=1e-6)


def test_a_model_for_one_sample_runs_them_one_by_one() -> None:
    model = LiteRT(DATA / "rnn.tflite")
    rows = np.random.default_rng(1).random((5, 12, 4), dtype=np.float32)
    many = model.outputs({"seq": rows})["output_0"]
    assert many.shape == (5, 2)
    assert np.array_equal(many[3:4], model.outputs({"seq": rows[3:4]})["output_0"])


def test_integer_ports_take_and_give_real_values() -> None:
    integers = LiteRT(DATA / "cnn-integers.tflite").outputs({"image": IMAGES[:9]})
    floats = LiteRT(DATA / "cnn-int8.tflite").outputs({"image": IMAGES[:9]})
    for name in floats:
        assert integers[name].dtype == np.float32
        assert np.allclose(integers[name], floats[name], atol=0.01)


def test_the_single_input_may_have_any_name() -> None:
    model = LiteRT(DATA / "cnn.tflite")
    by_name, by_place = (model.outputs({n: IMAGES[:2]})["other"] for n in ("image", "x"))
    assert np.array_equal(by_name, by_place)


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (IMAGES[0], r"the input image has the shape \[28, 28, 1\]: the model takes \[any, 28"),
        (IMAGES[:, :27], r"has the shape \[67, 27, 28, 1\]"),
        (IMAGES[:0], "there is no sample to run"),
        (np.full((1, 28, 28, 1), "a"), "the input image is <U1: the model takes float32"),
    ],
)
def test_wrong_inputs_are_named(array: np.ndarray, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        LiteRT(DATA / "cnn.tflite").outputs({"image": array})


def test_times_are_of_single_calls() -> None:
    model = LiteRT(DATA / "cnn.tflite", threads=2)
    found = model.latency_s(model.example(), 0.05)
    assert len(found) > 20
    assert all(0.0 < one < 1.0 for one in found)
    assert sum(found) <= 0.2
