"""The clock of a bench, on a time that the test makes."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from tfdyno.runtime.bench.clock import StepClock

if TYPE_CHECKING:
    from collections.abc import Iterator


class Time:
    """A clock that stands still but for ``pass_s``."""

    def __init__(self) -> None:
        """Start anywhere but at 0."""
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def pass_s(self, seconds_s: float) -> None:
        self.now_s += seconds_s


def clock(time: Time, **rules: float) -> StepClock:
    usual = {"least_samples": 10, "most_s": 60.0}
    return StepClock(**{**usual, **rules}, now=time)  # type: ignore[arg-type]


def run(it: StepClock, time: Time, steps_s: Iterator[float], count: int = 10_000) -> int:
    for number in range(count):
        time.pass_s(next(steps_s))
        if it.steps():
            return number + 1
    return count


def test_the_first_step_is_timed_alone() -> None:
    time = Time()
    it = clock(time)
    it.start()
    time.pass_s(7.0)
    it.steps()
    time.pass_s(0.1)
    it.steps()
    assert it.timed().first_step_s == pytest.approx(7.0)
    assert it.timed().samples_s == pytest.approx([0.1])


def test_what_is_done_between_the_first_step_and_the_others_is_not_timed() -> None:
    time = Time()
    it = clock(time)
    it.between = lambda: time.pass_s(5.0)
    it.start()
    run(it, time, cycle([0.1]), count=2)
    assert it.timed().samples_s == pytest.approx([0.1])
    assert it.running_s == pytest.approx(0.2)


def test_long_steps_are_samples_of_their_own_and_end_when_there_are_enough() -> None:
    time = Time()
    it = clock(time)
    it.start()
    assert run(it, time, cycle([0.1])) == 11
    assert it.timed().steps_per_sample == (1,) * 10
    assert it.timed().steady_from == 0


def test_short_steps_are_timed_in_blocks_of_a_twentieth_of_a_second() -> None:
    time = Time()
    it = clock(time)
    it.start()
    run(it, time, cycle([0.001]))
    timed = it.timed()
    # 1, then at most 8 times as many, then 1.1 x 50 ms / 1 ms.
    assert timed.steps_per_sample[:4] == (1, 8, 55, 55)
    assert timed.samples_s == pytest.approx([0.001] * len(timed.samples_s))


def test_the_device_is_waited_for_once_a_block_and_that_time_counts() -> None:
    time = Time()
    it, waits = clock(time), []

    def sync() -> None:
        waits.append(0)
        time.pass_s(0.06)

    it.sync = sync
    it.start()
    run(it, time, cycle([0.0]))
    assert len(waits) == 11
    assert it.timed().samples_s == pytest.approx([0.06] * 10)


def test_a_slow_start_is_told_from_the_steady_state() -> None:
    time = Time()
    it = clock(time, least_samples=30)
    it.start()
    run(it, time, iter([1.0] + [0.3] * 12 + [0.1, 0.101] * 50))
    timed = it.timed()
    assert timed.steady_from == 12
    assert len(timed.samples_s) >= 42


def test_time_that_is_over_ends_it_with_what_there_is() -> None:
    time = Time()
    it = clock(time, most_s=5.0)
    it.start()
    assert run(it, time, cycle([2.0])) == 4  # the first, and 2, 4, 6 s after it
    assert it.timed().steady_from == 3  # too few to tell


def test_the_first_step_of_an_epoch_is_a_sample_that_does_not_count() -> None:
    time = Time()
    it = clock(time)
    it.start()
    run(it, time, cycle([0.02]), count=9)  # the first step, samples of 1, 3, 3, and one more
    it.cut()
    it.epoch()
    time.pass_s(1.0)
    run(it, time, cycle([0.02]), count=4)
    timed = it.timed()
    assert timed.steps_per_sample == (1, 3, 3, 1, 1, 3)
    assert timed.excluded == (4,)
    assert timed.samples_s == pytest.approx([0.02, 0.02, 0.02, 0.02, 1.02, 0.02])


def test_an_endless_clock_never_has_enough() -> None:
    time = Time()
    it = StepClock(least_samples=10, most_s=1.0, endless=True, now=time)
    it.start()
    assert run(it, time, cycle([0.1]), count=500) == 500
    assert not it.done


def test_steps_that_ended_are_counted_though_their_sample_has_not() -> None:
    time = Time()
    it = clock(time)
    it.start()
    run(it, time, cycle([0.001]), count=15)
    assert it.step_count == 15


def test_steps_that_may_end_at_any_time_are_samples_of_their_own() -> None:
    time = Time()
    it = clock(time, least_samples=1000)
    it.alone = 20
    it.start()
    run(it, time, cycle([0.001]), count=30)
    assert it.timed().steps_per_sample[:20] == (1,) * 20
    assert max(it.timed().steps_per_sample, default=0) > 1


def test_the_machine_is_asked_between_samples_and_that_is_not_timed() -> None:
    time = Time()
    it = clock(time, least_samples=1000)

    def beside(budget_s: float) -> float:
        time.pass_s(0.5)
        budgets_s.append(budget_s)
        return 0.004

    budgets_s: list[float] = []
    it.beside, it.beside_every_s, it.beside_ratio = beside, 0.95, 0.1
    it.start()
    run(it, time, cycle([0.1]), count=21)
    timed = it.timed()
    assert timed.samples_s == pytest.approx([0.1] * 20)
    assert timed.beside_places == (10, 20)
    assert timed.beside_s == (0.004, 0.004)
    assert budgets_s == pytest.approx([0.1, 0.1])
    assert it.running_s == pytest.approx(2.1), "the time to a target is that of the steps"


def test_the_steady_state_lasts_as_long_as_the_protocol_says() -> None:
    time = Time()
    it = clock(time, least_s=4.0)
    it.start()
    run(it, time, cycle([0.1]))
    assert 4.0 <= sum(it.timed().samples_s) <= 5.0
