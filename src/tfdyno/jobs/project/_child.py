"""One child of a project's step: its answer in a file, its log beside it, its end in our hands."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from tfdyno.core.base.errors import OSErrorsAs, ToolError
from tfdyno.engines.process.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_S = 0.1
"""Between two looks at a child."""
GRACE_S = 660.0
"""That a child has for its checkpoint when it is told to end: more than a training gives its own
processes."""
SERVER_S = 120.0
"""That a server has to end that is needed no more."""
PATIENCE_S = 1.0
"""The time until somebody is told that a child has been told to end and takes its time."""
WAITS = "waiting for it to bring its work to safety (a checkpoint); a second Ctrl-C kills it"
TAIL_BYTES = 4096
_LIBRARY = re.compile(r"[IWEF]\d{4} |\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ")
_TIME = re.compile(r"^\s*\d+\.\d s\s+")
_HELD = ("/bin/sh", "-c", 'read -r _ && exec "$@"', "sh")
"""Holds a child until it is under guard: whoever dies before lets it end without having begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingPlace:
    """Where a child runs and writes."""

    cwd: Path
    environment: Mapping[str, str]
    answer: Path
    """Its standard output."""
    log: Path
    """Its standard error, added to what is there."""
    waits: Callable[[str], object] = lambda _why: None
    """Called where it is told to end and does not at once."""


def own_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Write a command of this program; ``-P``: no file of the project hides a module of Python."""
    return (sys.executable, "-P", "-m", "tfdyno", *words)


def ended(
    words: tuple[str, ...],
    place: WorkingPlace,
    *,
    said: Callable[[str], None],
) -> int:
    """Run a child to its end.

    Args:
        words: The program and its arguments.
        place: Where it runs and writes.
        said: Called with the last line of its log whenever that is another, without its time;
            lines that libraries write for their own authors are left out.

    Returns:
        Its exit code, negative for a signal.

    Raises:
        ToolError: It cannot be started.
    """
    with started(words, place) as child:
        line = ""
        while child.poll() is None:
            time.sleep(LOOK_S)
            now = last_lines(place.log, 1)
            if now and now[0] != line:
                line = now[0]
                if not _LIBRARY.match(line):
                    said(_TIME.sub("", line))
        return child.wait()


@contextlib.contextmanager
def started(words: tuple[str, ...], place: WorkingPlace) -> Iterator[subprocess.Popen[bytes]]:
    """Run a child while the block does, and no longer than this process.

    What ends the block ends the child the same way: Ctrl-C by SIGINT, all else by SIGTERM; a
    second Ctrl-C, or ``GRACE_S``, kills it.
    """
    with (
        guarded() as guard,
        _opened(place.answer, "wb") as answer,
        _opened(place.log, "ab") as log,
    ):
        try:
            child = subprocess.Popen(
                (*_HELD, *words), stdin=subprocess.PIPE, stdout=answer, stderr=log,
                cwd=place.cwd, env=dict(place.environment), start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:  # too long, or no words of a command line
            raise ToolError(f"cannot run {words[0]}", why=str(error)) from None
        try:
            guard(child.pid)
            assert child.stdin
            with contextlib.suppress(OSError), child.stdin as gate:
                gate.write(b"go\n")
            yield child
            end(child, signal.SIGTERM, SERVER_S)
        except BaseException as error:
            number = signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM
            end(child, number, GRACE_S, waits=place.waits)
            raise
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _opened(path: Path, mode: Literal["wb", "ab"]) -> BinaryIO:
    with OSErrorsAs(ToolError, f"cannot write {path}"):
        return path.open(mode)


def end(
    child: subprocess.Popen[bytes],
    number: signal.Signals,
    grace_s: float,
    *,
    waits: Callable[[str], object] = lambda _why: None,
) -> None:
    """Tell a child to end and wait for it; one that has ended is left alone.

    Args:
        child: The child.
        number: What tells it.
        grace_s: How long it is waited for.
        waits: Called with a sentence where it does not end at once.
    """
    if child.poll() is not None:
        return
    child.send_signal(number)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(PATIENCE_S)
        return
    waits(WAITS)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(grace_s - PATIENCE_S)


def last_lines(log: Path, count: int) -> tuple[str, ...]:
    """Return the last lines of a log that say something."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    lines = [line.strip() for line in text.replace("\r", "\n").splitlines()]
    return tuple([line for line in lines if line][-count:])
