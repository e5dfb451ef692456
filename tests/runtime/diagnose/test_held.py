"""A batch that is held, and steps on it."""

from __future__ import annotations

import pytest
from tests.runtime.pipeline_looks import facts

pytestmark = pytest.mark.tf


def test_a_held_batch_keeps_the_shapes_that_the_step_was_traced_for() -> None:
    held, own = facts()["held_spec"]
    assert held == own == "(None, 3)"
    assert facts()["pair"] == "(None, 3)"


def test_a_held_batch_comes_again_and_again() -> None:
    assert facts()["held"] == [12, 12, 12]


def test_the_batch_size_is_the_first_dimension() -> None:
    assert facts()["leading"] == [4, 0, 0]


def test_the_batch_size_of_composite_tensors_is_the_number_of_their_rows() -> None:
    assert facts()["rows"] == [3, 4]


def test_steps_are_timed_one_by_one_after_a_warm_up() -> None:
    least_s, warm = facts()["taken"]
    assert least_s > 0.001  # 2 ms for two steps
    assert warm == 3
