"""Which CPUs a process and what it started may use: fewer for a while, to see what that costs."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.process_limits import quotas
from tfdyno.process.control_groups import text_of, texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.measure.feed import CpuKind

_TOPOLOGY = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_PARENT = 1
"""Column of ``ppid`` in ``/proc/PID/stat`` behind the name (man 5 proc)."""


def usable_cpus(cpus: Sequence[int], root: Path = Path("/")) -> float:
    """Return how many of them can be busy: all, or the container's limit if that is less."""
    return min([float(len(cpus)), *quotas(texts(root))])


def counts(usable: float, most: int) -> tuple[float, ...]:
    """Return numbers of CPUs to try, most first: what is usable, and the powers of two below it.

    Args:
        usable: Of ``usable_cpus``; a container may allow 2.5.
        most: As many numbers at most; the ones left out lie in the middle.
    """
    powers = [2.0**power for power in range(12) if 2.0**power < usable]
    found = [*powers, usable]
    while len(found) > most:
        del found[len(found) // 2]
    return tuple(reversed(found))


def by_core(cpus: Sequence[int], root: Path = Path("/")) -> tuple[int, ...]:
    """Return the CPUs with the threads of a core side by side, as a cloud hands them out."""
    cores = {cpu: siblings(cpu, root) for cpu in cpus}
    return tuple(sorted(cpus, key=lambda cpu: (min(cores[cpu]), cpu)))


def siblings(cpu: int, root: Path = Path("/")) -> tuple[int, ...]:
    """List the hardware threads of a CPU's core, itself included; itself where nobody tells."""
    found: list[int] = []
    for part in text_of(root / _TOPOLOGY.format(cpu)).strip().split(","):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if ends:
            found += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    return tuple(found) or (cpu,)


def cpu_kind(cpus: Sequence[int], root: Path = Path("/")) -> CpuKind:
    """Return what a CPU is: a thread of a core, a core, or not known.

    A virtual machine that shows one thread a core may run on threads of its host all the same.
    """
    if any(len(siblings(cpu, root)) > 1 for cpu in cpus):
        return "thread"
    if not text_of(root / _TOPOLOGY.format(cpus[0])):
        return "unknown"
    is_virtual = re.search(r"^flags\s*:.*\bhypervisor\b", text_of(root / "proc/cpuinfo"), re.M)
    return "unknown" if is_virtual else "core"


@contextlib.contextmanager
def few_cpus(cpus: Sequence[int]) -> Iterator[None]:
    """Let this process, its threads and the processes it started use these CPUs alone.

    What is started meanwhile inherits them; at the end all have what they had.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = frozenset(os.sched_getaffinity(0))
    _pin(frozenset(cpus))
    try:
        yield
    finally:
        _pin(before)


def _pin(cpus: frozenset[int]) -> None:
    for process in (os.getpid(), *started()):
        for task in Path(f"/proc/{process}/task").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # a thread that has just ended
                os.sched_setaffinity(int(task.name), cpus)


def delay_s() -> float:
    """Return seconds that this process's threads, and of those it started, waited for a CPU.

    0.0 where the system does not tell. Source: second number of ``/proc/PID/task/TID/schedstat``,
    nanoseconds on a run queue (``Documentation/scheduler/sched-stats`` of Linux).
    """
    waited_ns = 0
    for process in (os.getpid(), *started()):
        for task in Path(f"/proc/{process}/task").glob("[0-9]*"):
            row = text_of(task / "schedstat").split()
            waited_ns += int(row[1]) if len(row) == 3 else 0
    return waited_ns * 1e-9


def started() -> list[int]:
    """Return processes that this one has started, and those that they have."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # A name may hold blanks and brackets: the last bracket ends it.
        row = text_of(folder / "stat").rpartition(")")[2].split()
        if len(row) > _PARENT:
            children.setdefault(int(row[_PARENT]), []).append(int(folder.name))
    found, waiting = [], list(children.get(os.getpid(), []))
    while waiting:
        number = waiting.pop()
        found.append(number)
        waiting += children.get(number, [])
    return found
