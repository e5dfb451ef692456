"""Watch a child process, the machine around it and the cards, twice a second, from outside.

A side thread of the parent asks: the child's own steps are not disturbed. It slows down rather
than take more than ``COST_RATIO`` of one CPU.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.process_limits import allowed
from tfdyno.probe.base import processors
from tfdyno.probe.base.host import this_host
from tfdyno.probe.cards import cards
from tfdyno.probe.telemetry.telemetry_points import CardPoint, Point, assemble, foreign_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.base.untyped import Library, Value
    from tfdyno.core.measure.measurement import Telemetry

INTERVAL_S = 0.5
COST_RATIO = 0.004
"""CPU time of the sampling over the time that it runs, at most."""
STOP_LIMIT_S = 2.0
"""A driver may hang with a lost card; its thread is then left behind."""
LISTING_SHARE = 1 / 500
"""The share of the time, at most, that goes to listing the machine's processes: the dearest
question."""
LEAST_LISTING_S = 2.0


class Sampler:
    """Telemetry of one child process, as a context manager.

    with Sampler() as sampler:
        run_child(..., started=sampler.watch)
    sampler.telemetry()

    Nothing raises: where there is no card, no NVML, no permission or no such process, there are
    fewer numbers. It stops by itself when the child ends.
    """

    def __init__(
        self,
        pid: int = 0,
        *,
        interval_s: float = INTERVAL_S,
        visible: str | None = None,
    ) -> None:
        """Prepare.

        Args:
            pid: The child, where it runs already; otherwise ``watch`` tells.
            interval_s: Time between two points, at least.
            visible: The child's ``CUDA_VISIBLE_DEVICES``; this process's own when None.
        """
        self._pid, self._interval_s = pid, interval_s
        self._visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
        self._points: list[Point] = []
        self._cost = (0.0, 0.0)
        self._began_s = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        """Load what is needed, before the child runs; start if the child is known."""
        import psutil  # noqa: F401

        cards.bindings()
        if self._pid:
            self.watch(self._pid)
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop."""
        self._stop.set()
        if self._thread:
            self._thread.join(STOP_LIMIT_S)

    def watch(self, pid: int) -> None:
        """Start the thread, now that the child has started; a second call does nothing."""
        if self._thread is None:
            self._began_s = time.monotonic()
            self._thread = threading.Thread(
                target=self._run, args=(pid,), name="tfdyno telemetry", daemon=True
            )
            self._thread.start()

    def telemetry(self, began_s: float = -math.inf, ended_s: float = math.inf) -> Telemetry:
        """Return all points so far, or those between two moments of ``time.monotonic``."""
        cpu_s, wall_s = self._cost
        low_s, high_s = began_s - self._began_s, ended_s - self._began_s
        return assemble(
            tuple(one for one in tuple(self._points) if low_s <= one.at_s <= high_s),
            interval_s=self._interval_s,
            cost_ratio=cpu_s / wall_s if wall_s else 0.0,
        )

    def load(self) -> dict[str, Any]:
        """Return what was busy at the newest point; what could not be read is left out."""
        if not self._points:
            return {}
        point = self._points[-1]
        cards = [
            {
                "index": one.index,
                "utilisation_ratio": one.reading.utilisation_ratio,
                "memory_bytes": one.reading.memory_bytes,
                "power_w": one.reading.power_w,
            }
            for one in point.cards
        ]
        own = {"cpu_ratio": point.cpu_ratio, "memory_bytes": point.memory_bytes, "cards": cards}
        return {name: value for name, value in own.items() if value is not None}

    def _run(self, pid: int) -> None:
        """Take points until the child ends; what goes wrong ends the sampling, nothing else."""
        with contextlib.suppress(Exception), cards.opened() as library:
            source = _Source(pid, library, self._visible)
            due_s, used_s = time.monotonic(), 0.0
            while True:
                due_s = max(due_s + self._interval_s, time.monotonic() + used_s / COST_RATIO)
                if self._stop.wait(due_s - time.monotonic()):
                    return
                before_s = time.thread_time()
                point = source.point(time.monotonic() - self._began_s)
                if point is None:
                    return
                self._points.append(point)
                total_s = time.thread_time()
                used_s = total_s - before_s
                self._cost = (total_s, time.monotonic() - self._began_s)


class _Source:
    """Where points come from: remembers the counters of the point before."""

    def __init__(self, pid: int, library: Library, visible: str | None) -> None:
        self._tree = Tree(pid)
        self._library = library
        self._handles = cards.handles(library, visible) if library else ()
        first = [cards.reading(library, handle) for _, handle in self._handles]
        self._before = [frozenset(pid for pid, _ in one.processes or ()) for one in first]
        host = this_host()
        self._usable = processors.usable(host)
        self._allowed = allowed()
        self._usage = self._tree.usage()
        self._busy_s = processors.busy_s(self._allowed)
        self._at_s = time.monotonic()

    def point(self, at_s: float) -> Point | None:
        """Return the next point; None once the child is gone."""
        usage = self._tree.usage()
        if usage is None:
            return None
        now_s, busy_s = time.monotonic(), processors.busy_s(self._allowed)
        own_s = _since(self._usage, usage)
        wall_s = max(now_s - self._at_s, 1e-9)
        other = None
        if busy_s is not None and self._busy_s is not None:
            other = (busy_s - self._busy_s - own_s) / (wall_s * len(self._allowed))
        self._usage, self._busy_s, self._at_s = usage, busy_s, now_s
        return Point(
            at_s=at_s,
            cpu_ratio=_share(own_s / (wall_s * self._usable)),
            other_cpu_ratio=None if other is None else _share(other),
            memory_bytes=usage.memory_bytes,
            disk_read_bytes=usage.read_bytes,
            disk_write_bytes=usage.write_bytes,
            cards=tuple(map(self._card, self._handles, self._before)),
        )

    def _card(self, numbered: tuple[int, Any], before: frozenset[int]) -> CardPoint:
        index, handle = numbered
        reading = cards.reading(self._library, handle)
        foreign = foreign_bytes(reading.processes, self._tree.pids, before)
        return CardPoint(index=index, reading=reading, other_memory_bytes=foreign)


def _since(before: Usage | None, now: Usage) -> float:
    """Return CPU seconds between two looks; a member that ended uncounted takes none away."""
    return max(0.0, now.cpu_s - before.cpu_s) if before else 0.0


def _share(ratio: float) -> float:
    return min(1.0, max(0.0, ratio))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Of all processes of a tree together; None: not permitted, or unknown on this system."""

    cpu_s: float
    """The time since their start, those that ended included."""
    memory_bytes: int
    read_bytes: int | None = None
    write_bytes: int | None = None


class Tree:
    """A process and its descendants."""

    def __init__(self, pid: int) -> None:
        import psutil

        self._psutil: Any = psutil
        self._members: dict[int, Any] = {}
        self._list_at_s = 0.0
        self._root: Any = None
        try:
            self._root = psutil.Process(pid)
            self._members[pid] = self._root
        except psutil.Error:
            pass

    @property
    def pids(self) -> frozenset[int]:
        """Those that are known to belong to it."""
        return frozenset(self._members)

    def usage(self) -> Usage | None:
        """Return what it uses now; None once the process is gone, whatever it left behind."""
        if self._root is None or not self._is_alive():
            return None
        self._list()
        parts = [part for one in self._members.values() if (part := self._of(one))]
        return Usage(
            cpu_s=sum(part.cpu_s for part in parts),
            memory_bytes=sum(part.memory_bytes for part in parts),
            read_bytes=_sum(part.read_bytes for part in parts),
            write_bytes=_sum(part.write_bytes for part in parts),
        )

    def _is_alive(self) -> bool:
        try:
            return bool(self._root.status() != self._psutil.STATUS_ZOMBIE)
        except self._psutil.Error:
            return False

    def _list(self) -> None:
        """Find the descendants anew, as often as its cost allows."""
        now = time.monotonic()
        if now < self._list_at_s:
            return
        began = time.thread_time()
        try:
            found = self._root.children(recursive=True)
        except self._psutil.Error:
            found = []
        self._members = {one.pid: one for one in (self._root, *found)}
        cost_s = time.thread_time() - began
        self._list_at_s = now + max(LEAST_LISTING_S, cost_s / LISTING_SHARE)

    def _of(self, process: Value) -> Usage | None:
        """Return the usage of one member; None where it has just ended."""
        try:
            with process.oneshot():
                times = process.cpu_times()
                memory_bytes = int(process.memory_info().rss)
        except self._psutil.Error:
            return None
        ended = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        read, written = self._disk(process)
        return Usage(
            cpu_s=times.user + times.system + ended,
            memory_bytes=memory_bytes,
            read_bytes=read,
            write_bytes=written,
        )

    def _disk(self, process: Value) -> tuple[int | None, int | None]:
        """Return bytes that reached the disk, or came from it; macOS has no such counters."""
        try:
            counters = process.io_counters()
        except (AttributeError, self._psutil.Error):
            return None, None
        return int(counters.read_bytes), int(counters.write_bytes)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
