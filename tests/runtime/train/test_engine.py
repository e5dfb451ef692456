"""What runs the steps: Keras' own function, built early where something needs it."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_around", "engine")


def test_variables_are_made_early_only_where_a_checkpoint_needs_them() -> None:
    assert seen()["built"] == [False, True]


def test_on_one_device_keras_compiles_and_accumulates() -> None:
    assert seen()["compiled"]
    assert seen()["batches"] == 5
    assert seen()["per_iteration"] == 1


def test_a_table_of_words_runs_in_front_of_the_compiled_step_and_is_named() -> None:
    steps, reported, notes = seen()["text"]
    assert steps == 2
    assert reported == ["xla"]
    assert 'StringLookup "words" runs in the input pipeline on the CPU.' in notes


def test_a_layer_that_is_not_there_cannot_be_recomputed() -> None:
    assert "no_such_layer" in seen()["refused"]


def test_what_is_recomputed_ends_with_the_fit_and_is_planned_anew_in_the_next() -> None:
    first, second = seen()["recomputed"]
    assert first == second
    assert any(note.startswith("remat recomputes dense") for note in first)
    assert seen()["left"] == []
