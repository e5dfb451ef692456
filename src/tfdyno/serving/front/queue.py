"""Which waiting requests go into the next call, and which are refused; no clock, no I/O."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from tfdyno.serving.front.table import Refused

NEWEST_CALL_RATIO = 0.2
"""Weight of the newest call in the running mean of call times and of their spread."""
SPREADS = 2
"""A promise is made for a call that takes this many mean deviations longer than the mean."""


SLOWEST_RATIO = 2.0
"""A call counts as this many times the running mean at most: one hiccup of the machine says little
of the next call, and a model that has become slower says so with every call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How requests are joined.

    Attributes:
        rows: Most rows of one call.
        delay_s: How long the first of a batch waits for others while a call is under way.
        calls: Most calls under way at once: while one is computed, the next is on its way.
        waiting_rows: Most rows that wait; a single request may always wait alone.
    """

    rows: int
    delay_s: float
    waiting_rows: int
    calls: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """Until when an answer is of use; times on the loop's clock.

    Attributes:
        client_s: The client waits so long: after it 504.
        own_s: The server lets a request wait so long: after it 503, as it was not computed.
        last_s: What is being computed by then may take so long: after it 504.
    """

    client_s: float = math.inf
    own_s: float = math.inf
    last_s: float = math.inf

    @property
    def useful_s(self) -> float:
        """Until when the model has to answer."""
        return min(self.client_s, self.own_s)


NO_DEADLINE = Deadline()


def deadline_of(begin_s: float, own_s: float, client_s: float, lag_s: float) -> Deadline:
    """Return the deadline of a request that was read at ``begin_s``; the rest are durations.

    ``lag_s`` is how late the process looks at what has come: the request has waited so long
    unread. As long to write the answer is not held back: ``last_s`` leaves room for it.
    """
    came_s = begin_s - lag_s
    return Deadline(
        client_s=begin_s + client_s,
        own_s=came_s + own_s,
        last_s=came_s + 2 * own_s,
    )


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """Rows that go into one call together.

    Attributes:
        key: Jobs with the same key can be joined (their rows have the same shapes).
        deadline_s: Until when the model has to answer, on the clock of ``arrived_s``.
        payload: The arrays, untouched here.
    """

    rows: int
    key: Hashable
    arrived_s: float
    deadline_s: float = math.inf
    payload: Any = None
    waits: bool = field(default=False, init=False)


class JobQueue:
    """The waiting jobs of one model and what is known of the speed of its calls."""

    def __init__(self, limits: Limits, *, call_s: float = 0.0) -> None:
        """Begin empty; ``call_s`` is what a call took before, 0.0 where nobody knows."""
        self.limits = limits
        self.waiting_rows = 0
        self.in_flight = 0
        self.call_s = call_s
        self.spread_s = 0.0
        self._lines: dict[Hashable, deque[Job]] = {}

    def refusal(self, rows: int, now_s: float, deadline_s: float) -> Refused | None:
        """Say why so many rows cannot be taken now: 429 full, 503 too late; or None."""
        if not self.waiting_rows and not self.in_flight:
            return None
        if self.waiting_rows and self.waiting_rows + rows > self.limits.waiting_rows:
            told = f"{self.waiting_rows} rows wait already; at most {self.limits.waiting_rows} may"
            return Refused(429, told, retry_after_s=self.retry_after_s())
        needed_s = self.answer_s(rows)
        if now_s + needed_s > deadline_s:
            left_ms = max(deadline_s - now_s, 0) * 1e3
            told = f"An answer takes {needed_s * 1e3:.0f} ms; the deadline is in {left_ms:.0f} ms"
            return Refused(503, told, retry_after_s=self.retry_after_s())
        return None

    def answer_s(self, rows: int) -> float:
        """Return the cautious time until rows arriving now are answered: calls before and theirs.

        ``call_s`` is measured with ``calls`` under way, so ``calls`` end in each ``call_s``.
        """
        calls = math.ceil((self.waiting_rows + rows) / self.limits.rows)
        free = max(self.limits.calls - self.in_flight, 0)
        one_s = self.call_s + SPREADS * self.spread_s
        return one_s * (max(calls - free, 0) / self.limits.calls + 1)

    def retry_after_s(self) -> int:
        """Return after how many whole seconds another attempt makes sense."""
        return max(1, math.ceil(self.answer_s(0)))

    def put(self, job: Job) -> None:
        """Let a job wait."""
        job.waits = True
        self.waiting_rows += job.rows
        self._lines.setdefault(job.key, deque()).append(job)

    def drop(self, job: Job) -> bool:
        """Take out a job that nobody waits for any more; False when it is under way or done."""
        if not job.waits:
            return False
        job.waits = False
        self.waiting_rows -= job.rows
        return True

    def hopeless(self, now_s: float) -> list[Job]:
        """Take out the oldest jobs that even a call that begins now answers too late.

        With no call under way one is kept: its call measures anew how long a call takes.
        """
        found: list[Job] = []
        while line := self._oldest_line():
            job, is_last = line[0], not self.in_flight and self.waiting_rows <= line[0].rows
            if is_last or now_s + self.call_s <= job.deadline_s:
                break
            self.drop(job)
            found.append(job)
        return found

    def take(self, now_s: float) -> list[Job]:
        """Return the jobs of the next call, oldest first, or none where it is better to wait.

        A free model starts at once. While a call is under way, the next one leaves when it is full
        or its first job has waited ``delay_s``.
        """
        line = self._oldest_line()
        if line is None or self.in_flight >= self.limits.calls:
            return []
        full = sum(job.rows for job in line if job.waits) >= self.limits.rows
        if self.in_flight and not full and now_s < line[0].arrived_s + self.limits.delay_s:
            return []
        batch: list[Job] = []
        rows = 0
        while line and (not line[0].waits or not batch or rows + line[0].rows <= self.limits.rows):
            job = line.popleft()
            if job.waits:
                self.drop(job)
                batch.append(job)
                rows += job.rows
        return batch

    def wake_s(self) -> float | None:
        """Return when ``take`` may give jobs by itself; None: something else has to happen."""
        line = self._oldest_line()
        if line is None or self.in_flight >= self.limits.calls:
            return None
        return line[0].arrived_s + self.limits.delay_s

    def started(self) -> None:
        """Count a call that begins."""
        self.in_flight += 1

    def finished(self, call_s: float | None) -> None:
        """Count a call that ends; ``call_s`` is None for one that failed."""
        self.in_flight -= 1
        if call_s is not None:
            known = self.call_s or call_s
            call_s = min(call_s, SLOWEST_RATIO * known)
            self.call_s = known + NEWEST_CALL_RATIO * (call_s - known)
            self.spread_s += NEWEST_CALL_RATIO * (abs(call_s - known) - self.spread_s)

    def empty(self) -> bool:
        """Return whether nothing waits and nothing is under way."""
        return not self.waiting_rows and not self.in_flight

    def _oldest_line(self) -> deque[Job] | None:
        for key in list(self._lines):
            line = self._lines[key]
            while line and not line[0].waits:
                line.popleft()
            if not line:
                del self._lines[key]
        return min(self._lines.values(), key=lambda line: line[0].arrived_s, default=None)
