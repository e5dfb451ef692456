"""The clock of a look, on a clock that the test turns itself."""

from __future__ import annotations

import pytest

from tfdyno.core.messages.diagnose import Limits
from tfdyno.runtime.diagnose.clock import (
    StepTimes,
    holds_epochs,
    own_steps,
    rare,
    seen_steps,
)

LIMITS = Limits(own_s=1.0, most_s=2.0, least_steps=5, warm_s=0.2, warm_steps=2, most_warm_s=0.5)


class Hand:
    """A clock that stands until it is turned."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def _times(hand: Hand, limits: Limits = LIMITS) -> StepTimes:
    return StepTimes(limits=limits, now=hand)


def _step(times: StepTimes, hand: Hand, *, call_s: float = 0.1, before_s: float = 0.0) -> bool:
    hand.s += before_s
    times.begin()
    hand.s += call_s
    return times.end()


def test_the_first_step_and_warm_up_do_not_count() -> None:
    hand = Hand()
    times = _times(hand)
    _step(times, hand, call_s=3.0)  # compiles
    for _ in range(2):
        _step(times, hand, call_s=0.3)
    while not _step(times, hand, call_s=0.125):
        pass
    assert times.own_from == 3
    assert own_steps(times).step_s == (0.125,) * 8  # they make 1 s
    assert times.step_count == 11


def test_few_long_steps_are_enough_after_the_longest_time() -> None:
    hand = Hand()
    times = _times(hand)
    while not _step(times, hand, call_s=1.5):
        pass
    # The first, one of warm-up (1.5 s > 0.5 s), and two that count: the fewest that are told.
    assert times.step_count == 4
    assert own_steps(times).step_s == pytest.approx((1.5, 1.5))


def test_a_step_is_split_into_call_callbacks_reading_and_python() -> None:
    hand = Hand()
    times = _times(hand)
    for _ in range(40):
        times.called_back(0.02)
        times.waited(0.03)
        times.begin()
        times.waited(0.01)  # inside of the call: a part of it
        hand.s += 0.1
        if times.end():
            break
        hand.s += 0.02 + 0.03 + 0.05
    own = own_steps(times)
    assert own.callback_s == pytest.approx(0.02)
    assert own.waits_s == pytest.approx(0.04)
    # By hand: 0.2 - 0.1 - 0.02 - 0.03 = 0.05.
    assert own.python_s == pytest.approx(0.05)
    assert own.step_s == pytest.approx([0.2] * len(own.step_s))


def test_the_first_step_of_an_epoch_is_left_out() -> None:
    hand = Hand()
    times = _times(hand)
    for number in range(40):
        if number and number % 5 == 0:
            times.epoch()
        if _step(times, hand, before_s=0.4 if number % 5 == 0 else 0.0):
            break
    own = own_steps(times)
    assert own.step_s == pytest.approx([0.1] * len(own.step_s))


def test_what_a_loop_does_now_and_then_is_in_no_usual_step() -> None:
    hand = Hand()
    times = _times(hand)
    for number in range(40):
        if number % 5 == 0:
            times.functioned("check", 0.3)
            hand.s += 0.4
        if _step(times, hand):
            break
    assert rare(seen_steps(times)) == {"check"}
    own = own_steps(times)
    assert own.step_s == pytest.approx([0.1] * len(own.step_s))
    assert own.python_s == pytest.approx(0.0)


@pytest.mark.parametrize("count", [30, 31, 32, 33])
def test_what_is_done_at_each_second_step_is_usual_and_at_each_third_is_not(count: int) -> None:
    def done(every: int) -> set[str]:
        hand = Hand()
        times = _times(hand)
        for number in range(count):
            if number % every == every - 1:
                times.beside("predict", 0.1, as_callback=False)
            _step(times, hand)
        times.own_from = 0
        return rare(seen_steps(times))

    assert done(2) == set()
    assert done(3) == {"predict"}


def test_steps_hold_their_epochs_where_each_is_one() -> None:
    def held(steps: int) -> bool:
        hand = Hand()
        times = _times(hand)
        for number in range(20):
            if number % steps == 0:
                times.epoch()
            _step(times, hand)
        return holds_epochs(times)

    assert held(1)
    assert not held(2)


def test_another_function_in_each_step_is_a_part_of_it_and_no_python() -> None:
    hand = Hand()
    times = _times(hand)
    for _ in range(40):
        times.functioned("second", 0.3)
        if _step(times, hand, before_s=0.35):
            break
    assert rare(seen_steps(times)) == set()
    own = own_steps(times)
    assert own.step_s == pytest.approx([0.45] * len(own.step_s))
    # By hand: 0.35 between the calls, of which 0.3 in the other function.
    assert own.python_s == pytest.approx(0.05)


def test_a_call_that_found_no_data_is_no_step_and_the_next_one_has_its_time() -> None:
    hand = Hand()
    times = _times(hand)
    _step(times, hand)
    times.begin()
    hand.s += 0.2
    times.drop()
    assert not times.inside
    _step(times, hand)
    assert [round(step.whole_s, 6) for step in times.steps] == [0.1, 0.3]
    assert [round(step.call_s, 6) for step in times.steps] == [0.1, 0.1]


def test_what_is_looked_at_after_a_step_counts_as_inside_of_it() -> None:
    hand = Hand()
    times = _times(hand)
    seen: list[bool] = []
    times.stepped = lambda: seen.append(times.inside)
    while not _step(times, hand, call_s=0.3):
        pass
    assert seen
    assert all(seen)
    assert not times.inside


def test_steps_that_a_card_works_on_behind_the_host_take_their_mean() -> None:
    hand = Hand()
    work: list[float] = []

    def sync() -> None:
        hand.s += sum(work)
        work.clear()

    times = StepTimes(limits=LIMITS, now=hand, sync=sync)
    for _ in range(500):
        times.begin()
        hand.s += 0.01  # to start the work
        work.append(0.03)
        if times.end():
            break
    own = own_steps(times)
    # A wait after each 0.05 s of starting: each step takes 0.01 s to start and 0.03 s of work.
    assert sum(own.step_s) / len(own.step_s) == pytest.approx(0.04, rel=0.05)
    assert max(own.step_s) < 0.05


def test_several_updates_in_a_call_are_told_one_by_one() -> None:
    hand = Hand()
    times = _times(hand)
    done = False
    while not done:
        times.begin()
        hand.s += 0.3
        done = times.end(3)
    assert own_steps(times).step_s[0] == pytest.approx(0.1)


def test_a_training_that_ends_early_is_told_from_all_but_its_first_step() -> None:
    hand = Hand()
    times = _times(hand)
    for seconds_s in (2.0, 0.1, 0.1):
        _step(times, hand, call_s=seconds_s)
    own = own_steps(times)
    assert not own.is_warm
    assert own.step_s == pytest.approx((0.1, 0.1))


def test_a_single_step_is_told_too() -> None:
    hand = Hand()
    times = _times(hand)
    _step(times, hand, call_s=2.0)
    assert own_steps(times).step_s == pytest.approx((2.0,))


def test_a_step_that_is_no_call_has_no_python_of_its_own() -> None:
    hand = Hand()
    times = _times(hand)
    for _ in range(40):
        hand.s += 0.1
        times.waited(0.04)
        if times.end():
            break
    own = own_steps(times)
    assert own.python_s == 0.0
    assert own.waits_s == pytest.approx(0.04)


def test_what_is_done_at_the_end_of_warm_up_and_between_steps_is_not_timed() -> None:
    hand, seen = Hand(), []
    times = _times(hand)

    def slow() -> None:
        seen.append(times.done)
        hand.s += 5.0

    times.opening = times.stepped = slow
    while not _step(times, hand):
        pass
    assert own_steps(times).step_s == pytest.approx([0.1] * (len(times.steps) - times.own_from))
    assert seen[-1]  # told after the last step, when it is known to be the last
    assert not any(seen[:-1])
