"""Steps one by one and several in a call: what a call takes, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.bottleneck.steps import facts

from tfdyno.core.measure.step_facts import CallFacts, StepFacts
from tfdyno.rules.bottleneck.calls import of_calls, saved_by_calls
from tfdyno.rules.bottleneck.split import split_of


def turns(*together_s: float, steps: int = 8) -> StepFacts:
    """A step takes 10 ms by itself."""
    calls = CallFacts(steps=steps, single_s=(0.010,) * len(together_s), together_s=together_s)
    return facts(calls=calls)


def test_a_call_takes_more_than_what_is_seen_to_go() -> None:
    # of 8 calls 7 are gone, and with them 35 % of the step: one takes 40 %
    assert of_calls(turns(*(0.0065,) * 9)) == pytest.approx(0.4)


def test_what_goes_has_the_range_of_what_was_seen() -> None:
    # 5 values have their range as interval: 4 to 8 ms of 10, and the median of 6
    assert saved_by_calls(turns(0.004, 0.005, 0.006, 0.007, 0.008)) == pytest.approx(
        (0.2, 0.4, 0.6)
    )


def test_steps_that_take_longer_together_have_calls_that_take_nothing() -> None:
    assert of_calls(turns(*(0.012,) * 9)) == 0.0


def test_where_nobody_looked_nothing_is_told() -> None:
    assert saved_by_calls(facts()) is None
    assert saved_by_calls(turns(0.01, steps=1)) is None
    assert of_calls(facts()) == 0.0


def test_calls_are_launch_and_the_parts_still_add_up() -> None:
    # 40 % of the 19.5 ms on a held batch; a profile of 18 ms has what is left
    split = split_of(turns(*(0.0065,) * 9))
    assert split.parts_s["launch"] == pytest.approx(0.4 * 0.0195)
    assert split.parts_s["compute"] == pytest.approx(0.6 * 0.0195)
    assert sum(split.parts_s.values()) == pytest.approx(split.step_s)


def test_the_call_of_a_step_that_runs_python_is_starting_and_no_computing() -> None:
    """Drawn by hypothesis: the saved part was given to computing, whose classes knew nothing."""
    found = split_of(replace(turns(*(0.0065,) * 9), python_steps=("f in train.py:3",)))
    assert found.calls_s == pytest.approx(found.parts_s["launch"])
    assert found.parts_s["launch"] > 0.0
    assert sum(found.compute_s.values()) == pytest.approx(found.parts_s["compute"])
