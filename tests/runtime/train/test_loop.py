"""On one device a training is Keras' own ``fit`` to the last bit, stopped and resumed or not."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

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
