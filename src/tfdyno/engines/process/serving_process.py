"""A process that serves: it takes commands and tells events as lines of JSON, and has a log."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.messages.serve import EVENTS, Said
from tfdyno.core.messages.wire import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEPT_LINES = 40
TOLD_LINES = 3
SHOWN_CHARACTERS = 300
_ERROR = re.compile(r"\w*(Error|Exception)\b: |\b(error|failed)\b|^E\d{4} ", re.IGNORECASE)
SHARED_MEMORY = Path("/dev/shm")
LEFT_S = 0.5
"""The time after a kill for what watches the process to put away what it shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that a process said, or its end."""

    process: ServingProcess
    said: Said | None
    """What it said; None: it has ended."""


@dataclass(slots=True, kw_only=True, eq=False)
class ServingProcess:
    """A started process. Threads behind it write ``lines``."""

    name: str
    """The name in messages: ``version 3``, ``the front``."""
    popen: subprocess.Popen[str]
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    """The last of its log."""

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None

    def send(self, content: object) -> None:
        """Give it one line; a process that has ended takes none."""
        assert self.popen.stdin
        with contextlib.suppress(OSError, ValueError):
            self.popen.stdin.write(encode(content) + "\n")
            self.popen.stdin.flush()

    def terminate(self) -> None:
        """Ask it to end after what is in flight."""
        with contextlib.suppress(ProcessLookupError):
            self.popen.send_signal(signal.SIGTERM)

    def end(self, within_s: float) -> None:
        """Wait for its end so long, then kill it and all that it started; nothing of it is left."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(max(0.0, within_s))
        self.kill()

    def kill(self) -> None:
        """End it and all that it started, and remove what they shared."""
        if self.runs:
            self.popen.kill()
        if self.popen.wait() != 0:
            # Python's own tracker of shared memory sees the end and puts the blocks away.
            time.sleep(LEFT_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            if self.popen.stdin:
                self.popen.stdin.close()
        for block in _shared_by(self.popen.pid):
            block.unlink(missing_ok=True)

    def last_words(self) -> str:
        """Return what its log says last that is an error, else its last lines; for a message."""
        lines = [line.strip()[:SHOWN_CHARACTERS] for line in self.lines if line.strip()]
        errors = [line for line in lines if _ERROR.search(line)]
        return " / ".join(errors[-1:] or lines[-TOLD_LINES:]) or "it printed nothing"


def start(
    words: tuple[str, ...],
    *,
    name: str,
    environment: Mapping[str, str],
    hear: Callable[[Event], object],
    log: Path | None,
) -> ServingProcess:
    """Start a process in a session of its own, where Ctrl-C of the terminal does not reach it.

    Args:
        words: The program and its arguments.
        name: In messages.
        environment: All of its variables.
        hear: Called from another thread with every event, at last with the end.
        log: File that its standard error is added to.

    Raises:
        ToolError: It cannot be started.
    """
    try:
        popen = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{name} cannot be started", why=str(error)) from None
    process = ServingProcess(name=name, popen=popen)
    logging = threading.Thread(target=_keep, args=(process, log), daemon=True)
    logging.start()
    threading.Thread(target=_listen, args=(process, hear, logging), daemon=True).start()
    return process


def _listen(
    process: ServingProcess, hear: Callable[[Event], object], logging: threading.Thread
) -> None:
    assert process.popen.stdout
    with process.popen.stdout as lines:
        for line in lines:
            said = _read(line)
            if said:
                hear(Event(process=process, said=said))
            else:
                process.lines.append(line.rstrip())
    process.popen.wait()
    logging.join(LEFT_S)
    hear(Event(process=process, said=None))


def _read(line: str) -> Said | None:
    """Return what a line says; None: it is none of ours, as what a user's model prints."""
    try:
        content = json.loads(line)
        return decode(content, EVENTS[content["event"]])
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _keep(process: ServingProcess, log: Path | None) -> None:
    """Keep the last lines and write all to the log; a full disk ends the log, not the server."""
    assert process.popen.stderr
    file = _opened(log)
    with process.popen.stderr as lines:
        for line in lines:
            process.lines.append(line.rstrip())
            if file:
                try:
                    file.write(f"[{process.name}] {line}")
                    file.flush()
                except OSError:
                    file = None
    if file:
        file.close()


def _opened(log: Path | None) -> IO[str] | None:
    with contextlib.suppress(OSError):
        return log.open("a", encoding="utf-8") if log else None
    return None


def _shared_by(pid: int) -> list[Path]:
    """Return shared memory of Triton's Python, which PyTriton names by the process."""
    with contextlib.suppress(OSError):
        return list(SHARED_MEMORY.glob(f"pytrtion{pid}-*"))
    return []
