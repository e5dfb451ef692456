"""Which lines of the user's own Python a training spends its time in, by looking at it often."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.runtime.failure import is_own

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_LOOPS = ("fit", "evaluate")
"""Functions of Keras that the user's own line has called, but that work for themselves."""
EVERY_S = 0.01
"""A look takes some microseconds, and Python's lock for so long."""


class LineSampler:
    """Looks at the thread that made it, from another one."""

    def __init__(self, counts: Callable[[], bool], every_s: float = EVERY_S) -> None:
        """Wait for the start.

        Args:
            counts: Whether what the thread does right now is told.
            every_s: Seconds from one look to the next.
        """
        self._counts, self._every_s = counts, every_s
        self._thread = threading.get_ident()
        self._ended = threading.Event()
        self._looker: threading.Thread | None = None
        self._seen: dict[tuple[str, int], float] = {}

    def start(self) -> None:
        """Begin to look."""
        self._looker = threading.Thread(target=self._look, daemon=True)
        self._looker.start()

    def stop(self) -> dict[str, float]:
        """Seconds by line, ``train.py:31``: the innermost one of the user's own counts."""
        self._ended.set()
        if self._looker is not None:
            self._looker.join(timeout=1.0)
        return {f"{Path(file).name}:{line}": s for (file, line), s in self._seen.items()}

    def _look(self) -> None:
        last = time.perf_counter()
        while not self._ended.wait(self._every_s):
            here = time.perf_counter()
            spent, last = here - last, here
            frame = sys._current_frames().get(self._thread)
            if frame is None or not self._counts():
                continue
            place = _own_place(frame)
            if place is not None:
                self._seen[place] = self._seen.get(place, 0.0) + spent


def _own_place(frame: FrameType | None) -> tuple[str, int] | None:
    """The user's own line that is running; none where it is Keras' loop, not a callback of it."""
    while frame is not None and frame.f_code.co_name not in _LOOPS:
        if is_own(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None
