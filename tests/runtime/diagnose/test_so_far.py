"""A look that ends before its time: what it hands over, without any TensorFlow in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.view.diagnoses import FACTS

from tfdyno.core.base.errors import Failure, ToolError, UsageError
from tfdyno.core.messages.diagnose import Limits, SeenSteps
from tfdyno.process.stop_asked import StopAsked
from tfdyno.runtime.diagnose.clock import StepTimes
from tfdyno.runtime.diagnose.so_far import SoFar, steps_words

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import StepFacts

FAILED = UsageError("train.py failed at step 9", why="line 3: KeyError: 'x'", remedy="look there")


class Hand:
    """A clock that stands until it is turned."""

    s = 100.0

    def __call__(self) -> float:
        return self.s


def ran(*seconds_s: float, warm_steps: int = 2) -> StepTimes:
    """Steps that took so long, the first one compiling."""
    hand = Hand()
    times = StepTimes(limits=Limits(warm_s=0.0, warm_steps=warm_steps), now=hand)
    for each in seconds_s:
        times.begin()
        hand.s += each
        times.end()
    return times


def look(times: StepTimes) -> SoFar:
    """One whose facts say why it ended."""

    def facts(end: str) -> StepFacts:
        return replace(FACTS, notes=(end,))

    so_far = SoFar()
    so_far.begin(times, facts)
    return so_far


def test_few_steps_are_told_in_words() -> None:
    assert steps_words(ran(1.25)) == "1 step ran: it took 1.25 s with compiling"
    assert steps_words(ran(1.25, 0.04)) == (
        "2 steps ran: the first took 1.25 s with compiling, the other one 40 ms"
    )
    assert steps_words(ran(1.25, 0.04, 0.06)) == (
        "3 steps ran: the first took 1.25 s with compiling, the others 50 ms each"
    )


def test_before_the_first_step_there_is_nothing_to_tell() -> None:
    for so_far in (SoFar(), look(ran())):
        assert so_far.stopped("SIGTERM") is None
        assert so_far.failed(FAILED) is None
        assert so_far.with_steps(FAILED) is FAILED


def test_before_warm_up_is_over_a_failure_says_what_ran_before_it() -> None:
    so_far = look(ran(1.0, 0.05))
    assert so_far.failed(FAILED) is None
    told = so_far.with_steps(FAILED)
    assert str(told) == (
        "train.py failed at step 9: line 3: KeyError: 'x'; look there; before that 2 steps ran: "
        "the first took 1 s with compiling, the other one 50 ms."
    )
    assert so_far.stopped("SIGTERM") == SeenSteps(
        stopped="SIGTERM",
        seen="2 steps ran: the first took 1 s with compiling, the other one 50 ms",
    )


@pytest.mark.parametrize(
    ("error", "kind"), [(FAILED, "usage"), (ToolError("the card is full"), "tool")]
)
def test_a_failure_in_steady_steps_has_what_was_seen_and_itself(
    error: UsageError | ToolError, kind: str
) -> None:
    told = look(ran(1.0, *[0.05] * 9)).failed(error)
    assert told
    assert told.failed == Failure(kind=kind, what=error.what, why=error.why, remedy=error.remedy)
    assert told.facts
    assert told.facts.notes == ("It failed",)


def test_a_stop_in_steady_steps_has_what_was_seen() -> None:
    told = look(ran(1.0, *[0.05] * 9)).stopped("SIGTERM")
    assert told == SeenSteps(stopped="SIGTERM", facts=replace(FACTS, notes=("It was stopped",)))


def test_facts_that_cannot_be_told_any_more_hide_no_failure() -> None:
    def broken(_end: str) -> StepFacts:
        raise RuntimeError("its variables are gone")

    so_far, times = SoFar(), ran(1.0, *[0.05] * 9)
    so_far.begin(times, broken)
    assert so_far.failed(FAILED) is None
    assert "10 steps ran" in str(so_far.with_steps(FAILED))
    stopped = so_far.stopped("SIGTERM")
    assert stopped
    assert "10 steps ran" in stopped.seen


def test_a_stop_that_the_users_code_swallowed_is_heeded_after_it() -> None:
    so_far = SoFar()
    so_far.heed()
    so_far.stop = StopAsked("SIGTERM")
    with pytest.raises(StopAsked):
        so_far.heed()
