"""One process in a group of its own: what it says, how it ends, and the end it is given."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import IO

from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.engines.process.oom_kills import NOT_COUNTED, oom_kills

Hear = Callable[[str], object]
Ends = Callable[["Process"], object]
Log = FileIO | None
"""A log without a buffer: what was printed before a crash is in it."""

KEPT_LINES = 40
SHOWN_CHARACTERS = 300
LAST_OUTPUT_S = 1.0
"""How long the last lines are waited for: what the process has started may hold its output."""


class ChildCrash(ToolError):  # noqa: N818  (it is what happened)
    """A child ended without a result.

    Attributes:
        child_exit_code: As ``subprocess`` gives it, negative for a signal; None after a time-out.
    """

    child_exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One process to start."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    """All of its variables, not only those that are added."""
    purpose: str
    """What it is started for, in messages: ``training train.py``."""
    name: str = ""
    """Which of several processes it is: ``worker 1``; empty for the only one."""
    serves: bool = False
    """Whether it works for the others and never ends by itself."""
    log: Path | None = None
    """File that its output is added to, without its progress."""
    cwd: str = ""
    """Folder that it runs in; empty: that of this process."""


@dataclass(slots=True, kw_only=True, eq=False)
class Process:
    """A started command. The two threads behind it write the fields that change."""

    command: Command
    popen: subprocess.Popen[str]
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    """Its last lines that are no progress."""
    said: str = ""
    """Its last progress; empty until it has shown a first sign of life."""
    exit_code: int | None = None
    ended_s: float = math.inf
    """When it ended, on the monotonic clock."""
    trouble: Exception | None = None
    """What the listener to its lines raised."""
    threads: list[threading.Thread] = field(default_factory=list)
    oom_kills: int = NOT_COUNTED
    """The machine's count of such kills when it was started."""

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self.exit_code is None

    def send(self, line: str) -> None:
        """Write one line to its standard input; a process that has ended takes none."""
        assert self.popen.stdin
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.write(line + "\n")
            self.popen.stdin.flush()

    def terminate(self) -> None:
        """Ask it to end (SIGTERM); what it has started is not asked."""
        if self.runs:
            with contextlib.suppress(ProcessLookupError):
                self.popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and all that it has started and that is left."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)

    def close(self) -> None:
        """Wait, after ``kill``, until it is gone."""
        self.popen.wait()
        # Its output may still be read: by what has left the group, which nobody waits for.
        for thread in self.threads:
            thread.join(LAST_OUTPUT_S)
        with contextlib.suppress(OSError):
            _close(self.popen.stdin)

    def last_words(self, count: int = 1) -> str:
        """Return ``its last line was '…'``; empty for a process that printed nothing."""
        kept = [repr(_short(line)) for line in list(self.lines)[-count:]]
        if not kept:
            return ""
        return f"its last line{'s were' if len(kept) > 1 else ' was'} {', '.join(kept)}"


def start(command: Command, *, mark: str, progress: Hear, output: Hear, ended: Ends) -> Process:
    """Start a process; two threads listen to it and wait for its end.

    Args:
        command: What to start.
        mark: What a line of progress begins with; empty when there are none.
        progress: Called with every such line, without the mark.
        output: Called with every other line that is not empty.
        ended: Called once when it has ended, and when a listener has raised: ``trouble`` tells.

    Raises:
        UsageError: There is no such program, or it may not be run.
        ToolError: The log cannot be written.
    """
    log, kills = _opened(command), oom_kills()
    try:
        popen = subprocess.Popen(
            command.words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=dict(command.environment),
            cwd=command.cwd or None,
            start_new_session=True,
        )
    except OSError as error:
        _close(log)
        if command.cwd and not Path(command.cwd).is_dir():
            what = f"{command.purpose} cannot run in {command.cwd}"
            raise UsageError(what, why="there is no such folder", remedy="check it") from None
        what = f"cannot run {command.words[0]} for {command.purpose}"
        raise UsageError(what, why=str(error), remedy="check --python") from None
    process = Process(command=command, popen=popen, oom_kills=kills)

    def hear(line: str) -> None:
        if mark and line.startswith(mark):
            process.said = line[len(mark) :].strip()
            progress(process.said)
        elif line.strip():
            process.lines.append(line.rstrip())
            output(line.rstrip())

    def to_log(line: str) -> bool:
        return not (mark and line.startswith(mark))  # a run of a week has a million of these

    reader = threading.Thread(target=_read, args=(process, log, to_log, hear, ended), daemon=True)
    waiter = threading.Thread(target=_wait, args=(process, reader, ended), daemon=True)
    process.threads += [reader, waiter]
    for thread in process.threads:
        thread.start()
    return process


def _read(
    process: Process,
    log: Log,
    to_log: Callable[[str], bool],
    hear: Hear,
    ended: Ends,
) -> None:
    """Hear every line; a listener that fails is told of, and the process is not held up by it."""
    assert process.popen.stdout
    with process.popen.stdout as lines:
        for line in lines:
            log = _logged(line, log) if to_log(line) else log
            if process.trouble is None:
                try:
                    hear(line)
                except Exception as error:
                    process.trouble = error
                    ended(process)
    _close(log)


def _wait(process: Process, reader: threading.Thread, ended: Ends) -> None:
    code = process.popen.wait()
    process.ended_s = time.monotonic()
    reader.join(LAST_OUTPUT_S)
    process.exit_code = code
    ended(process)


def _opened(command: Command) -> Log:
    """Return the log, with a line that tells this run from those before it."""
    if command.log is None:
        return None
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    line = f"# {now}: {command.purpose}{f' as {command.name}' * bool(command.name)}\n"
    with contextlib.ExitStack() as stack:
        with OSErrorsAs(ToolError, f"cannot write {command.log}"):
            command.log.parent.mkdir(parents=True, exist_ok=True)
            log = stack.enter_context(command.log.open("ab", buffering=0))
            log.write(line.encode())
        stack.pop_all()
    return log


def _logged(line: str, log: Log) -> Log:
    """Return the log with one more line, or None: a full disk ends the log and not the run."""
    if log is None:
        return None
    try:
        log.write(line.encode(errors="replace"))
    except OSError:
        log.close()
        return None
    return log


def _short(line: str) -> str:
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def _close(file: IO[str] | Log) -> None:
    if file:
        file.close()
