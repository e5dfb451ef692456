"""Run a command in a process group of its own, for so long; its output is in files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LOOK_S = 0.1
STOP_GRACE_S = 8.0
"""After Ctrl-C, for a command to hand over what it has until then."""
TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended, by itself or not."""

    words: tuple[str, ...]
    code: int
    seconds_s: float
    output: Path
    log: Path
    cut: bool = False
    """Whether its time was up."""

    @property
    def text(self) -> str:
        """What it printed."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def document(self) -> dict[str, Any]:
        """What it printed as JSON; empty where it did not."""
        for text in (self.text, self.text.strip().rpartition("\n")[2]):
            with contextlib.suppress(ValueError):
                found = json.loads(text)
                return found if isinstance(found, dict) else {}
        return {}

    @property
    def last_words(self) -> str:
        """The last line that it wrote to standard error; empty: none."""
        with self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class Running:
    """A command that runs; it and all it started end with the block."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        place: Path,
        environment: Mapping[str, str],
        cwd: Path,
        stopped: Event | None = None,
    ) -> None:
        """Start it.

        Args:
            words: The command.
            place: Where its files go, without their endings.
            environment: All of its variables.
            cwd: Where it runs.
            stopped: Set by who waits for nothing any more: ``wait`` raises ``KeyboardInterrupt``.
        """
        self.words, self.stopped = tuple(words), stopped or Event()
        self.output, self.log = Path(f"{place}.out"), Path(f"{place}.err")
        self.began_s = time.monotonic()
        with self.output.open("wb") as output, self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=output, stderr=log,
                env=dict(environment), cwd=cwd, start_new_session=True,
            )  # fmt: skip

    def __enter__(self) -> Running:
        """Nothing more than the command."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Kill what is left of its group."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to it and to all it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def wait(self, limit_s: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Wait for its end, or for something else, for so long; whether one of both came."""
        end_s = time.monotonic() + limit_s
        while self.process.poll() is None and not until():
            if time.monotonic() >= end_s:
                return False
            if self.stopped.wait(LOOK_S):
                raise KeyboardInterrupt
        return True

    def done(self, *, cut: bool = False) -> Done:
        """What came of it, once it has ended."""
        code = self.process.wait()
        return Done(words=self.words, code=code, seconds_s=time.monotonic() - self.began_s,
                    output=self.output, log=self.log, cut=cut)  # fmt: skip


def run(
    words: Sequence[str],
    *,
    place: Path,
    environment: Mapping[str, str],
    cwd: Path,
    limit_s: float,
    stopped: Event | None = None,
) -> Done:
    """Run a command to its end; after its time it is asked to stop as by Ctrl-C, then killed.

    Args:
        words: The command.
        place: Of its output (``.out``) and its log (``.err``), without the endings.
        environment: All of its variables.
        cwd: Where it runs.
        limit_s: How long it may take.
        stopped: Ends it at once, by ``KeyboardInterrupt``.
    """
    with Running(words, place=place, environment=environment, cwd=cwd, stopped=stopped) as running:
        in_time = running.wait(limit_s)
        if not in_time:
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.process.pid, signal.SIGINT)
            if not running.wait(STOP_GRACE_S):
                running.signal(signal.SIGKILL)
        return running.done(cut=not in_time)
