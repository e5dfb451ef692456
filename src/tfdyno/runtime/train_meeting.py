"""Where several workers of one training agree on the step at which all of them do something.

Each step is a joint operation: a worker that leaves alone lets the others wait for ever, and a
checkpoint is read together. A signal or a clock reaches them at different steps, so worker 0 names
a step that nobody has reached yet, in a file of the folder that they share.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["stop", "save", "nan"]
MARGIN_CALLS = 2
"""On CPUs a worker is at most one call of the train function ahead: it takes part in every
exchange before."""
MARGIN_CALLS_GPU = 50
"""A GPU is given calls ahead; so many are never under way."""

LEFT, GONE = "left-", "gone-"
"""Files that say that a worker has done its part, and that it needs nobody any more."""
WAIT_S = 0.02
LEAVE_S = 90.0
"""A network file system may show a new file a minute later."""


class Meeting:
    """The agreement of one process with the others; alone it agrees with itself at once."""

    def __init__(
        self, folder: Path | None, *, rank: int, count: int, has_gpu: bool, steps_per_call: int = 1
    ) -> None:
        """Begin; what an earlier sitting agreed upon is forgotten.

        Args:
            folder: That all workers see; None: nothing can be agreed upon.
            rank: 0 for the worker that decides.
            count: Workers.
            has_gpu: Whether steps run ahead of the host.
            steps_per_call: At most, of the train function.
        """
        self.is_joint = count > 1
        self._folder, self._rank, self._count = folder, rank, count
        self._margin = (MARGIN_CALLS_GPU if has_gpu else MARGIN_CALLS) * steps_per_call
        self._agreed: dict[Kind, int] = {}
        if folder and self.is_joint:
            folder.mkdir(parents=True, exist_ok=True)
            if rank == 0:
                for path in folder.iterdir():
                    path.unlink()

    def agreed(self, kind: Kind, step: int, wanted: bool) -> bool:
        """Whether this is the step to do it.

        Args:
            kind: What is to be done.
            step: Steps done.
            wanted: Whether this process wants it.
        """
        if not self.is_joint:
            return wanted
        if self._folder is None:
            return False
        if wanted and kind not in self._agreed:
            self._touch(f"{kind}.asked")
        if self._rank == 0 and kind not in self._agreed and self._is_asked(kind):
            self._agreed[kind] = step + self._margin
            part = self._folder / f"{kind}.part"
            part.write_text(str(step + self._margin))
            part.replace(self._folder / kind)
        elif kind not in self._agreed:
            with contextlib.suppress(OSError, ValueError):
                self._agreed[kind] = int((self._folder / kind).read_text())
        if step < self._agreed.get(kind, step + 1):
            return False
        del self._agreed[kind]
        if self._rank == 0:
            for name in (kind, f"{kind}.asked"):
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink()
        return True

    def leave(self, limit_s: float = LEAVE_S) -> None:
        """At the end: nobody goes before all have come, and worker 0 goes last.

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
        """Whether the files of all these workers were there in time."""
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

    def _is_asked(self, kind: Kind) -> bool:
        assert self._folder
        return (self._folder / f"{kind}.asked").exists()
