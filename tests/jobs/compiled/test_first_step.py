"""The first step of a child, heard from its lines of progress."""

from __future__ import annotations

import pytest

from tfdyno.core.recipe.retreat import FIRST_STEP, FIRST_STEP_XLA
from tfdyno.jobs.compiled.first_step import FirstStep, StepTimes, outcome_words, times_after

BEGIN = '{"event": "begin", "model": "m"}'
STEPS = '{"event": "steps", "step": 1}'


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def first(known: StepTimes | None = None, *, has_all: bool = False) -> tuple[FirstStep, Clock]:
    clock = Clock()
    found = FirstStep(
        title="train.py", known=known or StepTimes(), has_all=has_all, ended=lambda: None,
        now_s=clock,
    )  # fmt: skip
    return found, clock


def ran(step: FirstStep, clock: Clock, seconds: float) -> FirstStep:
    step.lines(BEGIN)
    clock.s += seconds
    step.lines(STEPS)
    return step


def test_a_training_tells_words_after_its_begin_and_its_first_step_ends_with_an_event() -> None:
    step, clock = first()
    assert step.lines("building train.py") == ("building train.py",)
    assert step.lines(BEGIN) == (
        BEGIN, "compiling the step of train.py (for the first time here)",
    )  # fmt: skip
    clock.s += 5.0
    assert step.lines("checking the layout") == ("checking the layout",)
    assert not step.took_s
    clock.s += 2.0
    assert step.lines(STEPS) == (STEPS,)
    assert step.took_s == 7.0
    clock.s += 50.0
    assert step.lines(STEPS) == (STEPS,)
    assert step.took_s == 7.0


@pytest.mark.parametrize("stage", [FIRST_STEP, FIRST_STEP_XLA])
def test_a_bench_tells_words_in_place_of_its_stage_and_ends_with_the_next(stage: str) -> None:
    step, clock = first(StepTimes(compiled_s=17.4))
    assert step.lines(f"run 1 of 5: {stage}") == (
        "run 1 of 5: compiling the step of train.py (about 17 s the last time)",
    )
    clock.s += 16.0
    assert step.lines("run 1 of 5: measuring") == ("run 1 of 5: measuring",)
    assert step.took_s == 16.0


def test_where_all_programs_are_kept_there_is_nothing_to_compile() -> None:
    step, _ = first(StepTimes(compiled_s=17.4, kept_s=3.7, programs=("a",)), has_all=True)
    assert step.words == (
        "first step of train.py (about 4 s the last time; "
        "its programs are kept, nothing to compile)"
    )


def test_the_end_is_called_once() -> None:
    calls: list[int] = []
    step, clock = first()
    step.ended = lambda: calls.append(1)
    ran(step, clock, 1.0)
    step.lines(STEPS)
    assert calls == [1]


def test_the_answer_says_whether_it_was_compiled_or_kept() -> None:
    assert outcome_words(ran(*first(), 17.44), loaded=0, made=2) == (
        "The first step took 17.4 s with compiling; "
        "the next start takes the programs from the cache"
    )
    known = StepTimes(compiled_s=17.44)
    assert outcome_words(ran(*first(known), 3.7), loaded=2, made=0) == (
        "The first step took 3.7 s: its compiled programs were kept from before; "
        "it took 17.4 s when they were compiled"
    )
    assert "with compiling, 2 were kept" in outcome_words(ran(*first(), 9.0), loaded=2, made=1)


def test_nothing_is_said_of_what_compiled_nothing_or_took_no_time() -> None:
    assert outcome_words(ran(*first(), 9.0), loaded=0, made=0) == ""
    assert outcome_words(ran(*first(), 0.2), loaded=0, made=1) == ""
    assert outcome_words(first()[0], loaded=0, made=1) == ""


def test_times_are_kept_apart_for_what_was_compiled_and_what_was_kept() -> None:
    compiled = times_after(ran(*first(), 17.0), frozenset(), frozenset({"b", "a"}))
    assert compiled == StepTimes(title="train.py", compiled_s=17.0, programs=("a", "b"))
    kept = times_after(ran(*first(compiled), 4.0), frozenset({"a", "b"}), frozenset())
    assert kept == StepTimes(title="train.py", compiled_s=17.0, kept_s=4.0, programs=("a", "b"))
    part = times_after(ran(*first(kept), 9.0), frozenset({"a"}), frozenset({"c"}))
    assert part == StepTimes(title="train.py", compiled_s=17.0, kept_s=4.0, programs=("a", "c"))
    assert times_after(first()[0], frozenset(), frozenset()) is None


def test_a_line_that_only_looks_like_an_event_is_passed_on() -> None:
    step, _ = first()
    assert step.lines("{not json") == ("{not json",)
    assert step.lines("{}") == ("{}",)
    assert not step.began_s
