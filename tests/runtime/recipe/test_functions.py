"""Keras calls our functions and tells us before and after the user's callbacks."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_parts", "functions")


def test_each_moment_comes_in_its_place() -> None:
    logs = "['loss', 'mae']"
    assert seen()["heard"] == [
        "user: train", "train", "epoch 0", "user: epoch", f"after {logs}", f"after {logs}",
        "test", "user: test", "before test", "tested", "ends", "user: end",
        "end 0 ['loss', 'mae', 'mine', 'val_loss', 'val_mae']", "before test", "before test",
    ]  # fmt: skip


def test_the_train_function_is_made_once() -> None:
    assert seen()["wrapped"] == 1


def test_the_numbers_of_an_evaluation_stay_as_they_are() -> None:
    assert seen()["evaluated"] == [True, True]


def test_nothing_is_left_behind_even_by_an_error() -> None:
    assert seen()["left"] == []
    assert seen()["after_the_block"] == 0
