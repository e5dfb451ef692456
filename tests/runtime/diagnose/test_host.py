"""CPUs, limits and neighbours of a training, read from recorded folders and from a real run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.runtime.benches import in_tensorflow

from tfdyno.process.control_groups import Throttling
from tfdyno.runtime.diagnose.host import (
    HostInspection,
    HostWatch,
    facts,
    memory_free_bytes,
    memory_used_bytes,
    tree_s,
)

if TYPE_CHECKING:
    from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _written(root: Path, **files: str) -> Path:
    for name, text in files.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def _look(at_s: float, own_s: float, busy_s: float, **held: float) -> HostInspection:
    return HostInspection(at_s=at_s, own_s=own_s, busy_s=busy_s, throttling=Throttling(**held))  # type: ignore[arg-type]


def test_ratios_match_the_hand_calculation() -> None:
    # 10 s, 4 CPUs allowed, a limit of 2: own 15 of 20 s; others 25 - 15 = 10 of 40 s.
    # The limit was hit in 30 of 100 periods, for 4 of 10 s: the lesser, 0.3.
    before = _look(0.0, 1.0, 5.0)
    after = _look(10.0, 16.0, 30.0, periods=100, held_periods=30, held_s=4.0)
    found = facts(before, after, cpus=8, allowed=4, quotas=(2.0, 3.0), threads=(4, 2))
    assert (found.cpus, found.usable_cpus) == (8, 2.0)
    assert (found.threads_intra, found.threads_inter) == (4, 2)
    assert found.cpu_ratio == pytest.approx(0.75)
    assert found.other_cpu_ratio == pytest.approx(0.25)
    assert found.throttled_ratio == pytest.approx(0.3)
    assert found.children_cpu_ratio == 0.0


def test_a_process_that_ended_uncounted_makes_nothing_negative() -> None:
    found = facts(_look(0, 9, 9), _look(1, 1, 1), cpus=1, allowed=1, quotas=(), threads=(1, 1))
    assert (found.cpu_ratio, found.other_cpu_ratio, found.throttled_ratio) == (0.0, 0.0, 0.0)


def test_cpu_time_of_children_counts_and_that_of_strangers_does_not(tmp_path: Path) -> None:
    def row(number: int, parent: int, name: str, user: int) -> str:
        return f"{number} ({name}) S {parent} " + "0 " * 9 + f"{user} {TICKS} 0 0 20 0 1 0\n"

    _written(
        tmp_path,
        proc__self__stat=row(7, 1, "python", TICKS),
        proc__7__stat=row(7, 1, "python", TICKS),
        proc__8__stat=row(8, 7, "a worker) (x", 2 * TICKS),
        proc__9__stat=row(9, 1, "stranger", 50 * TICKS),
    )
    assert tree_s(tmp_path) == (2.0, 3.0)


def test_children_are_told_apart_and_count_as_others_too() -> None:
    # 10 s on 2 CPUs: own 5, children 8, strangers 2 of 20 s.
    before = HostInspection(at_s=0, own_s=0, children_s=0, busy_s=0, throttling=Throttling())
    after = HostInspection(at_s=10, own_s=5, children_s=8, busy_s=15, throttling=Throttling())
    found = facts(before, after, cpus=2, allowed=2, quotas=(), threads=(2, 2))
    assert (found.cpu_ratio, found.children_cpu_ratio) == (0.25, 0.4)
    assert found.other_cpu_ratio == 0.5


def test_free_memory_is_that_of_the_machine_or_of_the_container(tmp_path: Path) -> None:
    assert memory_free_bytes(tmp_path) == 0
    _written(tmp_path, proc__meminfo="MemTotal: 9 kB\nMemAvailable:    2000 kB\n")
    assert memory_free_bytes(tmp_path) == 2_048_000
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    for name, text in (("max", "5000\n"), ("current", "4000\n"), ("stat", "inactive_file 300\n")):
        (tmp_path / f"sys/fs/cgroup/memory.{name}").write_text(text)
    _written(tmp_path, proc__self__cgroup="0::/\n")
    assert memory_free_bytes(tmp_path) == 1300


def test_used_memory_is_that_of_the_place_with_less_left(tmp_path: Path) -> None:
    assert memory_used_bytes(tmp_path) == (0, 0)
    _written(tmp_path, proc__meminfo="MemTotal:    8000 kB\nMemAvailable:    2000 kB\n")
    # By hand: 6000 of 8000 KiB.
    assert memory_used_bytes(tmp_path) == (6000 * 1024, 8000 * 1024)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    for name, text in (("max", "5000\n"), ("current", "4000\n"), ("stat", "inactive_file 300\n")):
        (tmp_path / f"sys/fs/cgroup/memory.{name}").write_text(text)
    _written(tmp_path, proc__self__cgroup="0::/\n")
    assert memory_used_bytes(tmp_path) == (3700, 5000)


def test_end_needs_begin() -> None:
    with pytest.raises(ValueError, match="begin"):
        HostWatch().end()


@pytest.mark.tf
def test_a_busy_loop_on_one_cpu_is_seen_and_threads_are_those_set() -> None:
    code = """
import os, time
import tensorflow as tf
from tfdyno.process.control_groups import Throttling
from tfdyno.runtime.diagnose.host import HostWatch
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["TF_NUM_INTEROP_THREADS"] = "3"
tf.config.threading.set_intra_op_parallelism_threads(5)
watch = HostWatch()
watch.begin()
until = time.process_time() + 0.5
while time.process_time() < until:
    pass
found = watch.end()
result = [found.usable_cpus, found.threads_intra, found.threads_inter, found.cpu_ratio,
          found.cpu_ratio + found.other_cpu_ratio,
          found.offered_cpus, found.memory_free_bytes]
"""
    usable, intra, inter, own, together, offered, free = in_tensorflow(code)
    assert (usable <= 1.0, intra, inter) == (True, 5, 3)
    assert 0.0 < own <= 1.0
    assert together > 0.5  # the loop itself, or whoever held the CPU instead
    assert offered >= usable  # the script has bound itself
    assert free > 1 << 20
