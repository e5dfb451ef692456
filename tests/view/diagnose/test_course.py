"""The course of steps in marks and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view.diagnoses import STALLS, TIMELINE

from tfdyno.core.measure.bottleneck import StageSpeed
from tfdyno.core.measure.step_facts import StallFacts, TimelineFacts
from tfdyno.view.diagnose.course import (
    KINDS,
    MARKS,
    bytes_rate_words,
    highs,
    longest_stalls,
    range_words,
    rate_words,
    sparkline,
    stall_kind,
    stall_words,
    step_count,
    told_stages,
)


def test_a_mark_is_as_high_as_its_value() -> None:
    assert (
        sparkline([0.0, 1.0, 2.0, 4.0, 8.0], 9) == "▁▂▃▅█"
    )  # one mark a value where there is room
    assert sparkline([1.0, 1.0, 8.0, 1.0], 2) == "▂█"  # the greatest of two stands for both
    assert sparkline([], 9) == sparkline([1.0], 0) == ""
    assert sparkline([0.0, 0.0], 2) == "▁▁"


@given(st.lists(st.floats(0.0, 1e3), min_size=1, max_size=300), st.integers(1, 120))
def test_a_line_of_marks_never_runs_over_and_shows_the_greatest(
    values: list[float], columns: int
) -> None:
    marks = sparkline(values, columns)
    assert len(marks) == min(len(values), columns)
    assert set(marks) <= set(MARKS)
    if max(values) > 0:
        assert MARKS[-1] in marks


def test_what_a_stall_was_is_named_by_what_took_most() -> None:
    assert [stall_kind(one) for one in STALLS] == [
        "validation", "callbacks", "tracing", "start of an epoch", "nothing that was timed",
    ]  # fmt: skip
    assert set(map(stall_kind, STALLS)) <= set(KINDS)


def test_a_stall_is_told_with_its_parts_the_longest_first() -> None:
    assert (
        stall_words(STALLS[0]) == "step 21 took 1.31 s: validation 800 ms and the first of an epoch"
    )
    both = StallFacts(step=1_041, whole_s=1.0, callback_s=0.3, retrace_s=0.4, input_s=0.05)
    assert stall_words(both) == "step 1,041 took 1.00 s: tracing 400 ms and callbacks 300 ms"
    assert stall_words(STALLS[3]) == "step 45 took 800 ms: the first of an epoch"
    many = StallFacts(step=45, steps=5, whole_s=0.3, is_first_of_epoch=True)
    assert stall_words(many) == "steps 41–45 took 300 ms each: the first of an epoch"
    assert stall_words(STALLS[4]) == "step 52 took 720 ms: not known why"


def test_the_longest_come_first() -> None:
    assert [one.step for one in longest_stalls(TIMELINE)] == [41, 21, 33]
    assert [one.step for one in longest_stalls(TIMELINE, 1)] == [41]


def test_steps_and_their_range_hold_what_is_told_by_itself() -> None:
    assert step_count(TIMELINE) == 60
    assert range_words(TIMELINE) == "60 steps of 407 ms to 1.60 s (after warm-up)"
    even = TimelineFacts(whole_s=(0.1, 0.1), steps_each=(30, 12))
    assert range_words(even) == "42 steps of 100 ms"


def test_a_stall_raises_the_sample_that_holds_it() -> None:
    long = {11: 0.5, 30: 0.2, 31: 0.3}
    stalls = tuple(StallFacts(step=step, whole_s=whole_s) for step, whole_s in long.items())
    joined = TimelineFacts(whole_s=(0.1, 0.1, 0.1), steps_each=(10, 10, 10), stalls=stalls)
    assert highs(joined) == [0.1, 0.5, 0.3]  # the last one sticks to the end


def test_stages_that_cannot_be_told_are_left_out() -> None:
    slow = StageSpeed(title="map", batch_s=0.1, samples_per_s=640.0)
    assert told_stages((slow, StageSpeed(title="take", batch_s=0.0, samples_per_s=0.0))) == [slow]


@pytest.mark.parametrize(
    ("value", "words"), [(12_345_678.0, "12.3 MB/s"), (0.0, ""), (1.5e9, "1,500 MB/s")]
)
def test_rates_have_their_unit(value: float, words: str) -> None:
    assert bytes_rate_words(value) == words
    assert rate_words(1066.7) == "1,070 samples/s"
