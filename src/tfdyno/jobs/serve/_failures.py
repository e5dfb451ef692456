"""How often the processes of a server may fail, and how long it waits before the next try."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError

if TYPE_CHECKING:
    from tfdyno.core.base.errors import TfdynoError

MOST_FAILURES = 5
WITHIN_S = 60.0
"""So many failures in such a time, and it is given up."""
MOST_AT_START = 3
"""So many before it has ever answered."""
LONGEST_PAUSE_S = 4.0


@dataclass(slots=True)
class Failures:
    """Counts what went wrong of late, and says how long to wait before the next try."""

    times_s: deque[float] = field(default_factory=deque)
    try_at_s: float = 0.0
    in_all: int = 0

    def add(self, error: TfdynoError, *, at_start: bool) -> None:
        """Count one more; raises ``ToolError`` when there are too many."""
        now_s = time.monotonic()
        self.times_s.append(now_s)
        while self.times_s and self.times_s[0] < now_s - WITHIN_S:
            self.times_s.popleft()
        self.in_all += 1
        if len(self.times_s) >= MOST_FAILURES or (at_start and self.in_all >= MOST_AT_START):
            why = f"{self.in_all} failures, at last: {error}"
            raise ToolError("the server is given up", why=why)
        pause_s = 0.0 if len(self.times_s) == 1 else 2.0 ** (len(self.times_s) - 2)
        self.try_at_s = now_s + min(pause_s, LONGEST_PAUSE_S)

    @property
    def is_time(self) -> bool:
        """Whether the next try may begin."""
        return time.monotonic() >= self.try_at_s
