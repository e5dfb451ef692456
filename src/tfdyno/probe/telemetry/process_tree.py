"""What a child process and all that it started use, at little cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.base.untyped import Value

LISTING_SHARE = 1 / 500
"""The share of the time, at most, that goes to listing the machine's processes: the dearest
question."""
LEAST_LISTING_S = 2.0


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
