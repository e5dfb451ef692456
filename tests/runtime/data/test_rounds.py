"""Batches one after the other, pass after pass, and the rounds that are timed."""

from __future__ import annotations

import pytest
from tests.runtime.feed_looks import found

pytestmark = pytest.mark.tf


def test_a_flow_begins_with_its_first_batch_and_goes_on_after_the_end() -> None:
    assert found()["opened"] == [True, True, 4]
    assert found()["goes_on"] == [False, 26]  # of ten batches


def test_one_pass_ends() -> None:
    assert found()["once"] == [True, 36, "first", 9]  # 40 without the first batch


def test_passes_of_python_are_opened_and_closed() -> None:
    # five batches of passes of two: the third pass is closed by the end
    assert found()["passes"] == ["in", "out"] * 3


def test_a_round_has_a_batch_however_short_it_is() -> None:
    assert found()["brief"] == 1


def test_nothing_is_told_as_the_end() -> None:
    assert found()["nothing"] == [False, True]


def test_sets_of_cpus_take_turns() -> None:
    turns = found()["turns"]
    assert turns == [turns[0], 1.0] * 2
    assert all(seconds >= 0.1 for seconds in found()["rounds_s"])
