"""Figures of a measured pipeline: rates, CPU time, the longest thread, what sets the pace."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.feeds import STAGES, feed, round_, stage

from tfdyno.model.measure.feed_law import (
    alone_per_s,
    busy_cpus,
    full,
    law_of,
    other_ratio,
    rounds_of,
    spread,
    stage_rates,
    standing,
)


def test_the_spread_is_that_of_the_mean() -> None:
    # by hand: logs 0 and 2, mean 1, deviation sqrt 2, over sqrt 2 = 1; t(0.95, 1) = 6.3138
    found = spread([1.0, math.e**2])
    assert found.best == pytest.approx(math.e)
    assert math.log(found.high) == pytest.approx(1 + 6.3138, abs=1e-3)
    assert math.log(found.low) == pytest.approx(1 - 6.3138, abs=1e-3)
    alone = spread([4.0])
    assert alone.low == alone.best == alone.high == pytest.approx(4.0)


def test_the_law_holds_the_rates_by_cpus_and_the_cpu_time_of_a_sample() -> None:
    # by hand: 2 CPUs for 200 samples: 10 ms
    found = law_of(feed())
    assert [point.cpus for point in found.points] == [1.0, 2.0]
    assert [point.rate_per_s.best for point in found.points] == pytest.approx([110.0, 200.0])
    assert found.sample_cpu_s.best == pytest.approx(0.010)
    assert busy_cpus(feed()) == pytest.approx(2.0)


def test_later_passes_stand_for_a_cached_pipeline_and_files_in_memory_for_any() -> None:
    rounds = (round_(50.0, kind="first"), round_(300.0), round_(20.0, kind="cold"))
    measured = feed(rounds=rounds)
    assert [one.samples for one in standing(measured)] == [300]
    assert [one.samples for one in rounds_of(measured, "cold")] == [20]
    only = feed(rounds=rounds[:1])
    assert [one.samples for one in standing(only)] == [50]


def test_only_rounds_with_all_cpus_are_full() -> None:
    assert [one.cpus for one in full(feed())] == [2.0, 2.0]


def test_a_feed_without_a_round_has_no_law() -> None:
    with pytest.raises(ValueError, match="need a round"):
        law_of(feed(rounds=()))


def test_stages_up_to_a_parallel_one_share_a_thread() -> None:
    # by hand: {slices 0.1 + shuffle 0.3} | map | {batch 4.6} | prefetch: 4.6 ms a batch of ten.
    # No thread waited for a CPU, so nothing is taken off.
    found = law_of(feed())
    assert found.serial_stages == ("batch",)
    assert found.serial_per_s is not None
    assert found.serial_per_s.best == pytest.approx(10 / 0.0046)


def test_a_thread_that_waits_for_a_cpu_is_not_held_for_slow() -> None:
    # by hand: threads take 20 ms a sample, 10 of them waiting for a CPU (2 s for 200 samples): the
    # longest run takes 9.2 ms a batch of ten with its waiting, half of that without
    waiting = tuple(stage(one.title, one.own_s * 2e3, parallel_calls=one.parallel_calls)
                    for one in STAGES)  # fmt: skip
    rounds = tuple(replace(one, delay_s=one.samples / 100) for one in feed().rounds)
    found = law_of(feed(looks=(waiting,), rounds=rounds)).serial_per_s
    assert found is not None
    assert (found.low, found.high) == pytest.approx((10 / 0.0092, 10 / 0.0046))


def test_a_thread_that_sleeps_is_slow_on_any_machine() -> None:
    # by hand: 50 ms a batch of ten with next to no CPU time, and no CPU was waited for
    asleep = (stage("map(fetch)", 50.0),)
    rounds = (round_(200.0, cpu_s=0.02),)
    found = law_of(feed(looks=(asleep,), rounds=rounds)).serial_per_s
    assert found is not None
    assert (found.low, found.high) == pytest.approx((200.0, 200.0))


@pytest.mark.parametrize(
    ("own_s", "other_s", "delay_s", "per_s"),
    [
        (2.0, 0.0, 3.0, 100.0),  # its own threads wait for each other: nothing was taken
        (1.0, 1.0, 5.0, 200.0),  # others took one of two CPUs: it would have both
        (1.0, 1.0, 0.5, 150.0),  # but it waited for half of one only
        (1.0, 1.0, 0.0, 100.0),  # one thread with a CPU of its own, beside another program
        (1.8, 1.0, 5.0, 2.0 / 1.8 * 100.0),  # no more than all CPUs
    ],
)
def test_what_others_took_while_it_waited_is_counted_as_its_own(
    own_s: float, other_s: float, delay_s: float, per_s: float
) -> None:
    seen = round_(100.0, cpu_s=own_s, other_cpu_s=other_s, delay_s=delay_s)
    assert alone_per_s(seen) == pytest.approx(per_s)


def test_the_share_of_others_is_over_all_rounds() -> None:
    # by hand: 0.5 s of two CPUs and 0.1 s of one in a second each: 0.6 of 3
    rounds = (round_(other_cpu_s=0.5), round_(cpus=1.0, other_cpu_s=0.1))
    assert other_ratio(feed(rounds=rounds)) == pytest.approx(0.2)


def test_what_was_measured_is_possible() -> None:
    # by hand: 95.1 ms a batch of ten is 105 samples/s, but 110 were seen
    slow = (stage("from_tensor_slices", 0.1), stage("map(load)", 95.0))
    found = law_of(feed(looks=(slow,), rounds=(round_(110.0, cpu_s=1.0),)))
    assert found.serial_per_s is not None
    assert found.serial_per_s.best == pytest.approx(110.0)
    assert found.serial_stages == ("map(load)",)


def test_a_stage_that_took_two_threads_is_parallel_however_it_is_written() -> None:
    # by hand: 9.5 ms a sample at 200 samples/s are 1.9 threads; one thread is left with 0.1 ms a
    # batch of ten
    slow = (stage("from_tensor_slices", 0.1), stage("map(load)", 95.0))
    seen = feed(looks=(slow,))
    found = law_of(seen)
    assert found.serial_stages == ("from_tensor_slices",)
    assert found.serial_per_s is not None
    assert found.serial_per_s.best == pytest.approx(100_000.0)
    load = stage_rates(seen, found)[1]
    assert load.facts.parallel_calls == -1
    assert load.most_per_s == pytest.approx(2 / 0.0095)


def test_without_times_nothing_is_said_of_threads() -> None:
    silent = tuple(stage(one.title, 0.0) for one in STAGES)
    assert law_of(feed(looks=(silent,))).serial_per_s is None
    assert law_of(feed(looks=())).serial_per_s is None


@pytest.mark.parametrize(
    ("kind", "workers", "is_held"),
    [("generator", 0, True), ("pydataset", 1, True), ("pydataset", 4, False)],
)
def test_python_in_one_thread_gives_what_it_gives(kind: str, workers: int, is_held: bool) -> None:
    found = law_of(feed(kind=kind, workers=workers, looks=()))
    assert (found.serial_per_s == found.points[-1].rate_per_s) is is_held


def test_each_stage_has_its_share_and_its_own_limit() -> None:
    # by hand: 20 batches/s; map takes 95 of 100 ms, 9.5 ms a sample, so two CPUs could give
    # 2 / 9.5 ms = 210.5/s; batch in one thread 1 / 0.46 ms = 2,174/s and gives 20 x 10 kB
    rates = {one.facts.title: one for one in stage_rates(feed(), law_of(feed()))}
    load, batch = rates["map(load)"], rates["batch"]
    assert load.share_ratio == pytest.approx(0.95)
    assert load.sample_s.best == pytest.approx(0.0095)
    assert load.most_per_s == pytest.approx(210.5, abs=0.1)
    assert load.elements_per_s == pytest.approx(200.0)
    assert batch.most_per_s == pytest.approx(2173.9, abs=0.1)
    assert batch.elements_per_s == pytest.approx(20.0)
    assert batch.output_bytes_per_s == pytest.approx(200_000.0)
    assert rates["prefetch"].most_per_s is None
