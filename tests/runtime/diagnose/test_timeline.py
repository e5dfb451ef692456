"""The course of a look: every step in its order, what made some long, few enough points."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfdyno.runtime.diagnose.clock import StepTimes, TimedStep
from tfdyno.runtime.diagnose.timeline import timeline_of


def step(whole_s: float, *, group: int = 0, **changed: float) -> TimedStep:
    base = {"call_s": whole_s, "callback_s": 0.0, "wait_s": 0.0, "wait_outside_s": 0.0,
            "count": 1, "is_first_of_epoch": False} | changed  # fmt: skip
    return TimedStep(whole_s=whole_s, group=group, **base)  # type: ignore[arg-type]


def times_of(*steps: TimedStep, own_from: int = 0) -> StepTimes:
    """A clock that has seen these, each of them waited for."""
    apart = [s if s.group else _in_group(s, at + 1) for at, s in enumerate(steps)]
    return StepTimes(steps=apart, own_from=own_from)


def _in_group(one: TimedStep, group: int) -> TimedStep:
    return replace(one, group=group)


def test_a_long_step_is_told_with_what_was_in_it() -> None:
    usual = [step(0.1)] * 4
    slow = step(1.0, callback_s=0.2, validation_s=0.5, is_first_of_epoch=True)
    found = timeline_of(times_of(step(9.0), *usual, slow, own_from=1), {4: 0.25})
    assert found.whole_s == pytest.approx((0.1, 0.1, 0.1, 0.1, 1.0))  # the first is warm-up
    assert found.what == "after warm-up"
    (stall,) = found.stalls
    assert (stall.step, stall.whole_s, stall.is_first_of_epoch) == (5, 1.0, True)
    assert (stall.callback_s, stall.validation_s, stall.retrace_s) == (0.2, 0.5, 0.25)


def test_saving_is_told_apart_from_other_callbacks() -> None:
    usual = [step(0.1)] * 4
    found = timeline_of(times_of(*usual, step(1.0, callback_s=0.8, checkpoint_s=0.5)), {})
    assert found.stalls[0].checkpoint_s == pytest.approx(0.5)
    assert found.stalls[0].callback_s == pytest.approx(0.3)
    # a loop's own validation and saving are beside its steps, where they count as callbacks
    beside = {"validation (evaluate)": 0.5, "checkpoint (save)": 0.3}
    slow = replace(step(1.0, callback_s=0.8, checkpoint_s=0.3, validation_s=0.5), beside_s=beside)
    found = timeline_of(times_of(*usual, slow), {})
    assert (found.stalls[0].validation_s, found.stalls[0].checkpoint_s) == (0.5, 0.3)
    assert found.stalls[0].callback_s == pytest.approx(0.0)


def test_of_a_training_that_ends_in_warm_up_all_steps_but_the_first_are_told() -> None:
    found = timeline_of(times_of(step(9.0), step(0.1), step(0.2), own_from=-1), {0: 5.0})
    assert found.whole_s == pytest.approx((0.1, 0.2))
    assert found.what == ""
    assert all(one.retrace_s == 0.0 for one in found.stalls)  # nobody watched for it then


def test_steps_that_a_card_works_on_behind_the_host_take_their_mean() -> None:
    # 0, 0 and 0.3 s of the host are three steps of 0.1 s of the card
    steps = [step(0.0, group=1), step(0.0, group=1), step(0.3, group=1)]
    found = timeline_of(StepTimes(steps=steps, own_from=0), {})
    assert found.whole_s == pytest.approx((0.1, 0.1, 0.1))
    assert found.stalls == ()


def test_a_known_reason_is_no_work_of_the_card() -> None:
    steps = [*[step(0.1, group=at) for at in (1, 2, 3, 4)], step(0.0, group=5),
             step(1.0, group=5, validation_s=0.9)]  # fmt: skip
    (stall,) = [one for one in timeline_of(StepTimes(steps=steps, own_from=0), {}).stalls
                if one.validation_s]  # fmt: skip
    assert (stall.step, stall.whole_s) == (6, 1.0)


def test_calls_of_several_steps_are_told_by_the_step() -> None:
    slow = step(4.0, callback_s=2.0, count=4)
    found = timeline_of(times_of(*[step(0.4, count=4)] * 3, slow), {})
    assert found.steps_each == (4, 4, 4, 4)
    assert found.whole_s == pytest.approx((0.1, 0.1, 0.1, 1.0))
    assert (found.stalls[0].step, found.stalls[0].callback_s) == (13, 0.5)
