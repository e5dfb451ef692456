"""What sets the pace of a measured pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.feeds import DISK, feed, round_, stage

from tfdyno.model.measure.feed_law import law_of
from tfdyno.model.measure.feed_pace import (
    disk_per_s,
    pace,
    read_bytes_per_s,
    read_per_sample_bytes,
)

if TYPE_CHECKING:
    from tfdyno.core.measure.feed import Feed


def told(measured: Feed) -> str:
    return pace(measured, law_of(measured))


def test_the_disk_gives_its_rate_over_the_bytes_of_a_sample() -> None:
    # by hand: 100 kB in 0.1 s = 1 MB/s, a sample reads 1 kB: 1,000 samples/s
    assert read_per_sample_bytes(feed()) == pytest.approx(1000.0)
    assert disk_per_s(feed()) == pytest.approx(1000.0)


def test_a_full_cache_reads_nothing_and_is_not_held_by_the_disk() -> None:
    # by hand: the first pass reads 100 kB for 100 samples, the rounds after it nothing
    first = round_(100.0, 2.0, kind="first", cpu_s=0.2, disk_bytes=100_000)
    cached = feed(rounds=(first, round_(8000.0, 2.0, cpu_s=0.5, read_bytes=0)), looks=())
    assert read_per_sample_bytes(cached) == pytest.approx(1000.0)
    assert disk_per_s(cached) == pytest.approx(1000.0)
    assert read_bytes_per_s(cached) == 0.0
    assert told(cached) == "waiting"
    # by hand: with all CPUs 200 samples of 1 kB a second
    assert read_bytes_per_s(feed()) == pytest.approx(200_000.0)


def test_files_that_stayed_in_memory_say_nothing_of_the_disk() -> None:
    assert disk_per_s(feed(disk=replace(DISK, disk_bytes=40_000))) is None
    assert disk_per_s(feed(disk=None)) is None


def test_full_cpus_set_the_pace() -> None:
    assert told(feed()) == "cpu"


def test_one_thread_sets_the_pace_where_the_cpus_are_not_full() -> None:
    slow = (stage("from_tensor_slices", 0.1), stage("map(load)", 95.0))
    rounds = (round_(100.0, 2.0, cpu_s=1.0), round_(99.0, 1.0, cpu_s=1.0))
    assert told(feed(looks=(slow,), rounds=rounds)) == "thread"


def test_a_generator_is_held_by_python() -> None:
    assert told(feed(kind="generator", looks=())) == "python"


def test_python_in_a_map_is_held_where_more_cpus_do_not_help() -> None:
    load = stage("map(load)", 95.0, parallel_calls=-1, runs_python=True)
    rounds = (round_(100.0, 2.0, cpu_s=1.0), round_(99.0, 1.0, cpu_s=1.0))
    assert told(feed(looks=((load,),), rounds=rounds)) == "python"
    assert told(feed(looks=((load,),))) == "cpu"  # it does: 110 to 200 samples/s


def test_workers_that_are_processes_have_no_common_lock() -> None:
    rounds = (round_(100.0, 2.0, cpu_s=0.5), round_(99.0, 1.0, cpu_s=0.5))
    held = feed(kind="pydataset", workers=4, looks=(), rounds=rounds)
    assert told(held) == "python"
    free = feed(kind="pydataset", workers=4, uses_processes=True, looks=(), rounds=rounds)
    assert told(free) == "waiting"


def test_the_disk_sets_the_pace_where_all_comes_from_it_and_it_is_near() -> None:
    rounds = (round_(800.0, 2.0, cpu_s=0.5, disk_bytes=800_000),)
    looks = ((stage("map(load)", 5.0, parallel_calls=-1),),)
    assert told(feed(rounds=rounds, looks=looks)) == "disk"
    warm = (round_(800.0, 2.0, cpu_s=0.5),)
    assert told(feed(rounds=warm, looks=looks)) == "waiting"


def test_a_thread_beside_another_program_is_not_held_for_full_cpus() -> None:
    # by hand: one CPU each on a machine of two, and nothing waited for one
    slow = (stage("from_tensor_slices", 0.1), stage("map(load)", 95.0))
    rounds = (round_(100.0, 2.0, cpu_s=1.0, other_cpu_s=1.0),)
    assert told(feed(looks=(slow,), rounds=rounds)) == "thread"
    waits = (round_(100.0, 2.0, cpu_s=1.0, other_cpu_s=1.0, delay_s=2.0),)
    assert told(feed(rounds=waits)) == "cpu"
