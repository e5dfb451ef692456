"""Training, evaluating and saving, held back while the user's code builds a model."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf


def test_a_held_fit_returns_zeros_and_predict_runs() -> None:
    assert facts()["held_fit"] == [0.0, 0.0, 0.0]
    assert facts()["held_predict"] == [2, 1]


def test_what_was_held_is_counted_and_named_and_nothing_is_saved() -> None:
    assert facts()["held"] == [1, "Left out of the script: fit, save.", False]


def test_keras_has_its_own_methods_again() -> None:
    assert facts()["restored"] is True
