"""Which CPUs a process may use: numbers from recorded machines, fewer of them on this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtime.feed_looks import found

from tfdyno.process.cpu_sets import by_core, counts, cpu_kind, siblings, usable_cpus

if TYPE_CHECKING:
    from pathlib import Path


def machine(root: Path, cores: dict[int, str], *, flags: str = "fpu sse") -> Path:
    """A ``/sys`` and ``/proc`` with the threads of each CPU's core."""
    for cpu, text in cores.items():
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{text}\n")
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"flags\t\t: {flags}\n")
    return root


@pytest.mark.parametrize(
    ("usable", "most", "expected"),
    [
        (1.0, 6, (1.0,)),
        (2.0, 6, (2.0, 1.0)),
        (2.5, 6, (2.5, 2.0, 1.0)),
        (0.5, 6, (0.5,)),
        (6.0, 6, (6.0, 4.0, 2.0, 1.0)),
        (96.0, 4, (96.0, 64.0, 2.0, 1.0)),
    ],
)
def test_the_numbers_tried_are_all_and_powers_of_two(
    usable: float, most: int, expected: tuple[float, ...]
) -> None:
    assert counts(usable, most) == expected


def test_threads_of_a_core_stand_side_by_side(tmp_path: Path) -> None:
    root = machine(tmp_path, {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"})
    assert by_core((0, 1, 2, 3), root) == (0, 2, 1, 3)
    assert siblings(3, root) == (1, 3)


def test_a_range_of_threads_is_read(tmp_path: Path) -> None:
    assert siblings(5, machine(tmp_path, {5: "4-6,9"})) == (4, 5, 6, 9)


def test_without_a_topology_each_cpu_stands_alone(tmp_path: Path) -> None:
    assert by_core((3, 1), tmp_path) == (1, 3)


@pytest.mark.parametrize(
    ("cores", "flags", "kind"),
    [
        ({0: "0-1", 1: "0-1"}, "fpu hypervisor", "thread"),
        ({0: "0", 1: "1"}, "fpu sse", "core"),
        ({0: "0", 1: "1"}, "fpu hypervisor sse", "unknown"),
        ({}, "fpu", "unknown"),
    ],
)
def test_what_a_cpu_is(cores: dict[int, str], flags: str, kind: str, tmp_path: Path) -> None:
    assert cpu_kind((0, 1), machine(tmp_path, cores, flags=flags)) == kind


def test_a_container_may_allow_less(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text("150000 100000\n")
    assert usable_cpus((0, 1, 2, 3), tmp_path) == 1.5
    (group / "cpu.max").write_text("max 100000\n")
    assert usable_cpus((0, 1, 2, 3), tmp_path) == 4.0


@pytest.mark.tf
def test_threads_that_run_already_get_fewer_cpus_and_then_all_again() -> None:
    assert found()["pinned"] == [True] * 4
