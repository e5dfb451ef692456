"""A request to end passes through what catches exceptions."""

from __future__ import annotations

import signal

import pytest
from tests.runtime.loaded import facts

from tfdyno.process.stop_asked import StopAsked, asked_to_stop, stop_delayed


@pytest.mark.tf
def test_the_users_except_does_not_swallow_it() -> None:
    assert facts()["stop"] == "SIGTERM"


@pytest.mark.tf
def test_signals_are_told_by_name_while_the_block_lasts() -> None:
    assert facts()["asked"] == ["SIGTERM", "Ctrl-C"]
    assert facts()["handlers"] == [True, True]


@pytest.mark.tf
def test_another_thread_leaves_the_signals_as_they_are() -> None:
    assert facts()["elsewhere"] == "no signals here"


def _stopped_in_blocks(ended: list[str]) -> None:
    with asked_to_stop(), stop_delayed():
        signal.raise_signal(signal.SIGTERM)
        with stop_delayed():
            signal.raise_signal(signal.SIGINT)
            ended.append("inner")
        ended.append("outer")


def test_a_stop_waits_for_what_must_come_to_its_end() -> None:
    ended: list[str] = []
    with pytest.raises(StopAsked):
        _stopped_in_blocks(ended)
    assert ended == ["inner", "outer"]


def test_a_block_within_that_met_no_stop_leaves_that_of_the_outer_one() -> None:
    with asked_to_stop(), pytest.raises(StopAsked), stop_delayed():  # noqa: PT012
        with stop_delayed():
            pass
        signal.raise_signal(signal.SIGTERM)


def test_a_stop_after_such_a_block_comes_at_once() -> None:
    with asked_to_stop():
        with stop_delayed():
            pass
        with pytest.raises(StopAsked):
            signal.raise_signal(signal.SIGTERM)
