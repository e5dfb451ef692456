"""The events of a training while it runs: lines of JSON in its folder, few enough to be kept.

A reader takes whole lines only, so it may read while they are written, and after a crash.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

EVENTS_FILE = "events.jsonl"
EVENT_S = 1.0
"""Events of steps and of ends of epochs are at least so far apart."""
MOST_EVENTS = 2_000
"""After so many they come half as often, and after as many again once more."""
MOST_BYTES = 2**20
"""Of events that are read at a time."""


class RunEvents:
    """Keeps the events among the lines of progress of one session, as a context manager.

    What cannot be written is not: a full disk ends the record, not the training.
    """

    def __init__(
        self,
        folder: Path,
        load: Callable[[], dict[str, Any]],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Prepare.

        Args:
            folder: Of the run, which exists.
            load: Says what keeps the machine busy at this moment.
            now: A clock in seconds since 1970.
        """
        self._path, self._load, self._now = folder / EVENTS_FILE, load, now
        self._file = -1
        self._every_s, self._count = EVENT_S, 0
        self._due_s: dict[str, float] = {}

    def __enter__(self) -> Self:
        """Open the file; an earlier session's last line is ended where a kill cut it."""
        with contextlib.suppress(OSError):
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            if self._path.stat().st_size and self._path.read_bytes()[-1:] != b"\n":
                self._write(b"\n")
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)
        self._file = -1

    def take(self, line: str) -> None:
        """Keep a line of progress where it is an event and one is due."""
        if self._file < 0 or not line.startswith("{"):
            return
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict) or "event" not in event:
            return
        now_s, kind = self._now(), str(event["event"])
        is_rare = kind == "begin" or _is_last(event)
        if not is_rare and now_s < self._due_s.get(kind, 0.0):
            return
        self._due_s[kind] = now_s + self._every_s
        self._count += 1
        if self._count % MOST_EVENTS == 0:
            self._every_s *= 2.0
        self._write(to_json({**event, "at": round(now_s, 3), "load": self._load()}) + b"\n")

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._file, line)
        except OSError:
            self.__exit__()


def _is_last(event: dict[str, Any]) -> bool:
    return event["event"] == "epoch" and event.get("epoch") == event.get("epochs")


def read_events(folder: Path, start: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return the events behind a place in the file, and the place behind them.

    Args:
        folder: Of the run.
        start: In bytes. Where the file is shorter than that it is another one: it is read anew.

    Raises:
        OSError: There are none.
    """
    with (folder / EVENTS_FILE).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = start if start <= size else 0
        file.seek(start)
        data = file.read(MOST_BYTES)
    end = data.rfind(b"\n") + 1
    if not end and len(data) == MOST_BYTES:  # no line of ours
        end = len(data)
    found = []
    for line in data[:end].splitlines():
        with contextlib.suppress(UsageError):
            found.append(from_json(line, dict[str, Any], where=EVENTS_FILE))
    return [one for one in found if isinstance(one.get("event"), str)], start + end
