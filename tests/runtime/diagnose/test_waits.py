"""What Python waits for, and where datasets are made."""

from __future__ import annotations

import pytest
from tests.runtime.pipeline_looks import facts

pytestmark = pytest.mark.tf


def test_python_that_waits_for_data_is_timed_and_graphs_are_not() -> None:
    longest_s, before, after = facts()["waits"]
    assert longest_s > 0.010
    assert before == 4  # three batches, and the end
    assert after == before + 1
    assert facts()["read_last"]
    assert facts()["quiet"] == after


def test_the_data_of_a_step_are_those_that_it_waits_for_longest() -> None:
    # of a zip of two, with a validation on a third between two steps
    assert facts()["of_step"] == [True]


def test_what_keras_reads_for_itself_is_neither_timed_nor_the_step_s() -> None:
    assert facts()["apart"] == [0, None]


def test_a_stage_remembers_the_line_that_made_it() -> None:
    assert facts()["made_at"] == ["train.py:2", "", "train.py:1", ""]
