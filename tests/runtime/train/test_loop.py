"""On one device a training is Keras' own ``fit`` to the last bit, stopped and resumed or not."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.runtime.training_child import case

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Model

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_single")
SAME = {
    "scheduled": 30, "weighted": 16, "outputs": 27, "own_step": 30, "no_length": 30,
    "generator": 30, "sequence": 30, "part_of_epoch": 18, "recipe": 12,
}  # fmt: skip
"""Trainings, and how often the user's callback is called: after each batch and each epoch."""


@pytest.mark.parametrize("name", SAME)
def test_the_numbers_are_those_of_fit(name: str) -> None:
    found = seen(name)
    assert found["history"]
    assert found["apart"] == 0.0
    assert found["told"]
    assert found["calls"] == SAME[name]


def test_callbacks_of_the_user_stop_the_training_and_change_its_rate() -> None:
    found = seen("scheduled")
    assert found["epochs"] == 3  # of 6: patience was over
    assert "learning_rate" in found["names"]


def check_resumed(name: str, *words: str) -> None:
    found = seen(name, *words)
    stops = [value for value in found.values() if isinstance(value, dict)]
    assert stops
    for one in stops:
        assert one["stopped"] == "SIGTERM"
        assert one["from"]
        assert one["history"]
        assert one["apart"] == 0.0
        assert one["counts"]


def test_a_stop_in_a_step_or_in_a_validation_changes_no_bit() -> None:
    check_resumed("resumed")
    assert [seen("resumed")[n]["at"] for n in ("step", "validation")] == [14, 9]


def test_a_stop_between_executions_of_several_steps_changes_no_bit() -> None:
    check_resumed("resumed_several")
    # Nine batches, four at a time; 17 are no whole number of updates from three batches each.
    assert seen("resumed_several")["step"]["at"] == 17


def test_a_training_that_a_callback_ended_is_not_trained_on() -> None:
    found = seen("ended_early")
    assert found["epochs"] == 3  # of 6: patience was over
    assert found["history"]
    assert found["random"]
    assert found["apart"] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["last_steps", "resumed_accumulated"])
def test_a_stop_anywhere_else_changes_no_bit(name: str) -> None:
    check_resumed(name, "slow")


def dense(dtype: str, units: int = 3) -> Model:
    import keras

    layers = [keras.Input((4,)), keras.layers.Dense(units, dtype=dtype),
              keras.layers.BatchNormalization(dtype=dtype),
              keras.layers.Dropout(0.5, dtype=dtype)]  # fmt: skip
    return keras.Sequential(layers)


@pytest.mark.parametrize(("dtype", "ratio"), [("float32", 1e-6), ("bfloat16", 1e-2)])
def test_the_first_makes_the_file_and_the_next_begins_with_it(
    tmp_path: Path, dtype: str, ratio: float
) -> None:
    from tfdyno.runtime.train.loop import begin_with

    file = tmp_path / "first.npz"
    first, second = dense("float64"), dense(dtype)
    kept = [np.array(one) for one in first.get_weights()]
    begin_with(first, file)
    begin_with(second, file)
    for a, b, own in zip(kept, second.get_weights(), first.get_weights(), strict=True):
        np.testing.assert_array_equal(a, own)
        np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=ratio, atol=1e-9)
    assert {str(one.dtype) for one in second.trainable_weights} == {dtype}


def test_a_model_of_other_shapes_begins_as_it_is(tmp_path: Path) -> None:
    from tfdyno.runtime.train.loop import begin_with

    begin_with(dense("float32"), tmp_path / "first.npz")
    other = dense("float32", units=5)
    before = [np.array(one) for one in other.get_weights()]
    begin_with(other, tmp_path / "first.npz")
    for a, b in zip(before, other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
