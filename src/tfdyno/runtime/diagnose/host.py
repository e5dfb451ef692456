"""What the host gave to a training: its CPUs, the container's limit, threads, other processes.

Everything is read from ``/proc`` and ``/sys`` twice, at the begin and at the end: nothing runs in
between. No package is needed, for the user's own Python may have none but TensorFlow.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.process_limits import allowed, quotas
from tfdyno.core.measure.step_facts import HostFacts
from tfdyno.process.control_groups import (
    Throttling,
    room_bytes,
    rooms_bytes,
    text_of,
    texts,
    throttling,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_IDLE = (3, 4)
"""Columns of ``/proc/stat`` that are idle time: ``idle`` and ``iowait`` (man 5 proc)."""
_COUNTED = 8
"""The columns behind ``steal`` are a guest's time, which its user time holds already."""
_CPU_COLUMNS = slice(11, 15)
"""``utime stime cutime cstime`` of ``/proc/PID/stat`` after the name (man 5 proc)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostInspection:
    """Counters at one moment."""

    at_s: float
    own_s: float
    """CPU seconds of this process."""
    children_s: float = 0.0
    """The time of all processes that it started."""
    busy_s: float
    """CPU seconds that the allowed CPUs were busy with anything."""
    throttling: Throttling


class HostWatch:
    """Counters between ``begin`` and ``end``."""

    def __init__(self, root: Path = Path("/"), offered: int = 0) -> None:
        """Prepare.

        Args:
            root: Folder that holds ``proc`` and ``sys``; another one is a recorded machine.
            offered: CPUs that were allowed before the script ran; 0: as this module was loaded.
        """
        self._root, self._offered = root, offered or OFFERED
        self._begin: HostInspection | None = None

    def begin(self) -> None:
        """Note the counters, before the first whole step."""
        self._begin = self.look()

    def end(self) -> HostFacts:
        """Return what was given since ``begin``.

        Raises:
            ValueError: ``begin`` was not called.
        """
        if self._begin is None:
            raise ValueError("need begin() before end()")
        intra, inter = tensorflow_threads(os.environ)
        limits = tuple(quotas(texts(self._root)))
        found = facts(
            self._begin, self.look(), cpus=os.cpu_count() or 1, allowed=len(allowed()),
            quotas=limits, threads=(intra, inter),
        )  # fmt: skip
        return replace(
            found,
            offered_cpus=min([float(self._offered), *limits]),
            memory_free_bytes=memory_free_bytes(self._root),
        )

    def look(self) -> HostInspection:
        """Return the counters now."""
        own_s, children_s = tree_s(self._root)
        return HostInspection(
            at_s=time.monotonic(),
            own_s=own_s,
            children_s=children_s,
            busy_s=_busy_s(self._root, allowed()),
            throttling=throttling(self._root),
        )


def facts(
    before: HostInspection, after: HostInspection, *, cpus: int, allowed: int,
    quotas: tuple[float, ...], threads: tuple[int, int],
) -> HostFacts:  # fmt: skip
    """Return what lies between two looks.

    The limit counts as having held the training back for the share of its periods that ended with
    nothing left, or for the time that it stood still if that is less: the counter of time adds up
    over CPUs. What others took holds what the script's own children took.
    """
    wall_s = max(after.at_s - before.at_s, 1e-9)
    usable = min([float(allowed), *quotas])
    own_s = max(0.0, after.own_s - before.own_s)
    children_s = max(0.0, after.children_s - before.children_s)
    other_s = max(0.0, after.busy_s - before.busy_s - own_s)
    periods = after.throttling.periods - before.throttling.periods
    held = after.throttling.held_periods - before.throttling.held_periods
    held_s = after.throttling.held_s - before.throttling.held_s
    return HostFacts(
        cpus=cpus,
        usable_cpus=usable,
        threads_intra=threads[0],
        threads_inter=threads[1],
        cpu_ratio=_share(own_s / (wall_s * usable)),
        children_cpu_ratio=_share(children_s / (wall_s * usable)),
        other_cpu_ratio=_share(other_s / (wall_s * allowed)),
        throttled_ratio=_share(min(held / periods, held_s / wall_s)) if periods > 0 else 0.0,
    )


def tensorflow_threads(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return TensorFlow's threads within one operation, and operations at once.

    A limit of 0 means one per CPU that the process may use (``MaxParallelism`` in
    ``tsl/platform/cpu_info``), unless the environment says otherwise
    (``core/common_runtime/process_util.cc``).
    """
    import tensorflow as tf

    known = tf.config.threading
    intra = known.get_intra_op_parallelism_threads()
    inter = known.get_inter_op_parallelism_threads()
    every = len(allowed())
    return (
        intra or _number(environment, "TF_NUM_INTRAOP_THREADS") or every,
        inter or _number(environment, "TF_NUM_INTEROP_THREADS") or every,
    )


def _busy_s(root: Path, cpus: Sequence[int]) -> float:
    """Return seconds that these CPUs were busy since the start; a hypervisor's share counts."""
    ticks = 0
    for number, row in re.findall(r"^cpu(\d+) (.*)$", text_of(root / "proc/stat"), re.MULTILINE):
        if int(number) in cpus:
            columns = [int(each) for each in row.split()[:_COUNTED]]
            ticks += sum(columns) - sum(columns[each] for each in _IDLE if each < len(columns))
    return ticks / _ticks_per_s()


def tree_s(root: Path) -> tuple[float, float]:
    """Return CPU seconds of this process and its descendants, those that ended included."""
    rows = {}
    parents: dict[int, list[int]] = {}
    for folder in (root / "proc").glob("[0-9]*"):
        # A name may hold blanks and brackets: the last bracket ends it.
        row = text_of(folder / "stat").rpartition(")")[2].split()
        if len(row) > _CPU_COLUMNS.stop:
            rows[int(folder.name)] = [int(each) for each in row[_CPU_COLUMNS]]
            parents.setdefault(int(row[1]), []).append(int(folder.name))
    own = _own_number(root)
    user, system, *ended = rows.get(own, [0, 0])
    waiting, ticks = parents.get(own, []), sum(ended)
    while waiting:
        number = waiting.pop()
        ticks += sum(rows[number])
        waiting += parents.get(number, [])
    return (user + system) / _ticks_per_s(), ticks / _ticks_per_s()


def memory_free_bytes(root: Path) -> int:
    """Return what the machine has left for more, or the container if that is less; 0: not known."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text_of(root / "proc/meminfo"), re.MULTILINE)
    return min([int(found[1]) * 1024, *room_bytes(root)]) if found else 0


def memory_used_bytes(root: Path) -> tuple[int, int]:
    """Return bytes in use and in all: of the machine, or of a container of it that has less left.

    Returns:
        0, 0 where that cannot be read.
    """
    rows = re.findall(
        r"^(MemAvailable|MemTotal):\s+(\d+) kB", text_of(root / "proc/meminfo"), re.MULTILINE
    )
    machine = {name: 1024 * int(size) for name, size in rows}
    if len(machine) < 2:
        return 0, 0
    free, limit = min([(machine["MemAvailable"], machine["MemTotal"]), *rooms_bytes(root)])
    return limit - free, limit


def _own_number(root: Path) -> int:
    if root == Path("/"):
        return os.getpid()
    first = text_of(root / "proc/self/stat").split()[:1]
    return int(first[0]) if first else 0


def _ticks_per_s() -> int:
    return os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


OFFERED = len(allowed())
"""CPUs that were allowed when this module was loaded: before the user's script ran."""


def _number(environment: Mapping[str, str], name: str) -> int:
    value = environment.get(name, "").strip()
    return int(value) if value.isdecimal() else 0


def _share(ratio: float) -> float:
    return min(1.0, max(0.0, ratio))
