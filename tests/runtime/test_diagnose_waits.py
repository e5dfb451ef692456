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


def test_a_stage_remembers_the_line_that_made_it() -> None:
    assert facts()["made_at"] == ["train.py:2", "", "train.py:1", ""]
