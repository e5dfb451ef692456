"""Keras calls our functions for a step."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_parts", "functions")


def test_each_call_is_followed_or_led() -> None:
    after = "after ['loss', 'mae']"
    assert seen()["heard"] == [after, after, "before test", "before test", "before test"]


def test_the_train_function_is_made_once() -> None:
    assert seen()["wrapped"] == 1


def test_the_numbers_of_an_evaluation_stay_as_they_are() -> None:
    assert seen()["evaluated"] == [True, True]


def test_nothing_is_left_behind_even_by_an_error() -> None:
    assert seen()["left"] == []
    assert seen()["after_the_block"] == 0
