"""Where several workers of one training agree on the step at which all of them do something.

Each step is a joint operation: a worker that leaves alone lets the others wait for ever, and a
checkpoint is read together. A signal or a clock reaches them at different steps, so each tells its
wishes to all in an exchange of their own, between two steps: all have the same numbers then, and
do the same. Files would not do: on a network file system one may see them some steps later.
"""

from __future__ import annotations

import contextlib
import math
import time
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

Kind = Literal["nan", "stop", "save", "end"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COST_RATIO = 0.01
"""The share of the time of the steps that the exchange of wishes may take."""
MOST_CALLS = 32
"""The most calls of the train function between two exchanges, however short they are."""

LEFT, GONE = "left-", "gone-"
"""Files that say that a worker has done its part, and that it needs nobody any more."""
WAIT_S = 0.02
LEAVE_S = 90.0
"""A network file system may show a new file a minute later."""


class Consensus:
    """The agreement of one process with the others; alone it agrees with itself at once."""

    def __init__(self, folder: Path | None, *, rank: int, count: int) -> None:
        """Begin; who was at the end of an earlier session is forgotten.

        Args:
            folder: That all workers see, for the end; None: nobody waits there.
            rank: Of this worker.
            count: Workers.
        """
        self.is_joint = count > 1
        self.leads = rank == 0
        self._folder, self._rank, self._count = folder, rank, count
        self._table: Callable[[list[float]], Any] | None = None
        self._calls, self._every = 0, 1
        self._cost_s, self._met_s = math.inf, 0.0
        if folder and self.is_joint:
            folder.mkdir(parents=True, exist_ok=True)
            if rank == 0:
                for path in folder.iterdir():
                    path.unlink()

    def exchange_by(self, table: Callable[[list[float]], Any]) -> None:
        """Count the wishes of all from here on; a joint operation.

        Args:
            table: Returns the numbers of all workers, a row for each (``Ranks.table``).
        """
        self._table = table
        for _ in range(3):  # the first one is traced
            self._met()

    def agree(self, *, always: bool = False, **wishes: bool) -> frozenset[str]:
        """Agree on what is to be done now, by all; a joint operation.

        Args:
            always: Whether to ask though the last time was not long ago.
            wishes: What this process wants, of ``KINDS``.
        """
        if not self._table:
            return frozenset(kind for kind, wanted in wishes.items() if wanted)
        self._calls += 1
        if self._calls < self._every and not always:
            return frozenset()
        call_s = (time.perf_counter() - self._met_s) / self._calls
        own = [float(wishes.get(kind, False)) for kind in KINDS]
        rows = self._met(*own, self._cost_s, call_s)
        # Everybody waits for the last one, who waits for nobody.
        self._every = calls_between(min(rows[:, -2]), sum(rows[:, -1]) / self._count)
        return frozenset(kind for place, kind in enumerate(KINDS) if any(rows[:, place]))

    def _met(self, *numbers: float) -> Value:
        assert self._table
        began_s = time.perf_counter()
        rows = self._table([*numbers] or [0.0] * (len(KINDS) + 2))
        self._met_s, self._calls = time.perf_counter(), 0
        self._cost_s = min(self._cost_s, self._met_s - began_s)
        return rows

    def leave(self, limit_s: float = LEAVE_S) -> None:
        """Leave at the end: nobody goes before all have come, and worker 0 goes last.

        One that has its part of the last exchange would else end the connection on which another
        still receives; and it is worker 0 that all ask for news of the others.

        Args:
            limit_s: How long each of the two is waited for; then it goes alone.
        """
        if not self.is_joint or self._folder is None:
            return
        if not self._touch(f"{LEFT}{self._rank}"):
            return
        have_come = self._wait_for(LEFT, range(self._count), limit_s)
        if self._rank:
            self._touch(f"{GONE}{self._rank}")
        elif have_come:
            self._wait_for(GONE, range(1, self._count), limit_s)

    def _wait_for(self, name: str, ranks: range, limit_s: float) -> bool:
        """Return whether the files of all these workers were there in time."""
        assert self._folder
        until_s = time.monotonic() + limit_s
        paths = [self._folder / f"{name}{rank}" for rank in ranks]
        while not all(path.exists() for path in paths):
            if time.monotonic() >= until_s:
                return False
            time.sleep(WAIT_S)
        return True

    def _touch(self, name: str) -> bool:
        assert self._folder
        with contextlib.suppress(OSError):
            (self._folder / name).touch()
            return True
        return False


def calls_between(cost_s: float, call_s: float) -> int:
    """Return calls of the train function from one exchange of wishes to the next.

    Args:
        cost_s: Of an exchange.
        call_s: Of a call.
    """
    return max(1, min(MOST_CALLS, math.ceil(cost_s / (COST_RATIO * max(call_s, 1e-9)))))
