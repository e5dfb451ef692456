"""Which lines of the user's own Python a training spends its time in, by looking at it often."""

from __future__ import annotations

import contextlib
import linecache
import random
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from tfdyno.process.own_lines import own_file, place_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_LOOPS = ("fit", "evaluate")
"""Functions of Keras that the user's own line has called, but that work for themselves."""
EVERY_S = 0.01
"""A look takes some microseconds, and Python's lock for so long."""


class LineSampler:
    """Looks at the thread that made it, from another one, and at what others of Python's do."""

    def __init__(self, counts: Callable[[], bool], every_s: float = EVERY_S) -> None:
        """Wait for the start.

        Args:
            counts: Whether what the thread does right now is told.
            every_s: Seconds from one look to the next, on average.
        """
        self._counts, self._every_s = counts, every_s
        self._thread = threading.get_ident()
        self._ended = threading.Event()
        self._looker: threading.Thread | None = None
        self.texts: dict[str, str] = {}
        """After the end: the lines as they are written."""
        self._seen: dict[tuple[str, int], float] = {}
        self._others: dict[int, Counter[tuple[str, int]]] = {}
        self._cpu_s: dict[int, float] = {}
        self._began = self._ended_at = 0.0

    def start(self) -> None:
        """Begin to look."""
        self._began, self._cpu_s = time.perf_counter(), _cpu_s()
        self._looker = threading.Thread(target=self._look, daemon=True)
        self._looker.start()

    def stop(self) -> dict[str, float]:
        """Stop; returns seconds by line, ``train.py:31``: the user's own innermost one counts."""
        self._ended.set()
        self._ended_at = time.perf_counter()
        spent_s = {ident: s - self._cpu_s.get(ident, 0.0) for ident, s in _cpu_s().items()}
        self._cpu_s = {ident: spent_s.get(ident, 0.0) for ident in self._others}
        if self._looker is not None:
            self._looker.join(timeout=1.0)
        self.texts = {place_of(*at): linecache.getline(*at).strip() for at in self._seen}
        return {place_of(*place): s for place, s in self._seen.items()}

    @property
    def threads(self) -> tuple[tuple[str, float], ...]:
        """After the end: other threads of the user's own, the busiest first.

        Each by the line that it was seen at most often, with the CPUs that it kept busy.
        """
        wall_s = max(self._ended_at - self._began, self._every_s)
        found = [
            (place_of(*places.most_common(1)[0][0]), self._cpu_s.get(ident, 0.0) / wall_s)
            for ident, places in self._others.items()
        ]
        return tuple(sorted(found, key=lambda one: -one[1]))

    def _look(self) -> None:
        last, chance = time.perf_counter(), random.Random(0)
        # Uneven, or steps that take half as long would show the same line each time.
        while not self._ended.wait(self._every_s * chance.uniform(0.5, 1.5)):
            here = time.perf_counter()
            spent, last = here - last, here
            frames = sys._current_frames()
            frame = frames.pop(self._thread, None)
            for ident, other in frames.items():
                if own_file(other.f_code.co_filename):  # not one that waits in a library
                    counted = self._others.setdefault(ident, Counter())
                    counted[(other.f_code.co_filename, other.f_lineno)] += 1
            if frame is None or not self._counts():
                continue
            place = _own_place(frame)
            if place is not None:
                self._seen[place] = self._seen.get(place, 0.0) + spent


def _cpu_s() -> dict[int, float]:
    """Return CPU seconds of each thread that Python started, so far."""
    found = {}
    for one in threading.enumerate():
        if one.ident is None or isinstance(one, threading._DummyThread):
            continue
        with contextlib.suppress(OSError, AttributeError):  # it has ended; not on macOS
            found[one.ident] = time.clock_gettime(time.pthread_getcpuclockid(one.ident))
    return found


def _own_place(frame: FrameType | None) -> tuple[str, int] | None:
    """Return the user's own running line; none where it is Keras' loop, not a callback of it."""
    while frame is not None:
        if own_file(frame.f_code.co_filename):  # also of a ``fit`` of the user's own
            return frame.f_code.co_filename, frame.f_lineno
        if frame.f_code.co_name in _LOOPS:
            return None
        frame = frame.f_back
    return None
