"""A log in pieces, from a file, a pipe or standard input; a silent pipe is not waited for."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import time
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.probe.base.near import no_such

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BLOCK_BYTES = 1 << 20
SILENCE_S = 10.0
"""A pipe that gives nothing for so long is not waited for."""
PAUSE_S = 30.0
"""The same for one that gave something: TensorFlow is silent while it compiles a step."""
PIPE_LIMIT_S = 120.0
"""A pipe that goes on for ever is left after this; a gigabyte of a log takes less."""
BINARY_BYTES = 4096
_BLANK = b" \t\r\n\0\xff\xfe\xef\xbb\xbf"
"""Spaces, line ends and the marks of encodings."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_log(
    path: Path | None,
    *,
    progress: Callable[[int], None] | None = None,
    silence_s: float = SILENCE_S,
    pause_s: float = PAUSE_S,
    limit_s: float = PIPE_LIMIT_S,
) -> Iterator[bytes]:
    """Read a log's bytes in blocks.

    Args:
        path: A file or named pipe; None: standard input.
        progress: Called with the number of bytes read so far.
        silence_s: Limit for a pipe that gives nothing; a terminal may take its time.
        pause_s: Limit for a pipe that gave something and then no more.
        limit_s: Limit for reading a pipe in whole.

    Raises:
        UsageError: There is no such file, it may not be read, it is empty, no text, or a pipe that
            does not end.
    """
    name = str(path) if path else "standard input"
    count, is_blank = 0, True
    with _opened(path, name) as handle:
        for block in _blocks(handle, name, (silence_s, pause_s), limit_s):
            if count == 0:
                _check_text(block, name)
            count += len(block)
            is_blank = is_blank and not block.strip(_BLANK)
            if progress:
                progress(count)
            yield block
    if is_blank:
        raise UsageError(f"{name} is empty", remedy="give a log with at least one line")


@contextlib.contextmanager
def _opened(path: Path | None, name: str) -> Iterator[int]:
    if path is None:
        yield sys.stdin.fileno()
        return
    try:
        # Without O_NONBLOCK a named pipe that nobody writes to would hold us here for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        raise no_such(path) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or str(error)
        raise UsageError(f"cannot read {name}", why=why) from None
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise UsageError(f"{name} is a folder", remedy="give the log file in it")
        yield handle
    finally:
        os.close(handle)


def _blocks(
    handle: int, name: str, silences_s: tuple[float, float], limit_s: float
) -> Iterator[bytes]:
    silence_s, pause_s = silences_s
    is_pipe = not stat.S_ISREG(os.fstat(handle).st_mode) and not os.isatty(handle)
    until_s = time.monotonic() + limit_s
    while True:
        if is_pipe and not _ready(handle, silence_s):
            raise UsageError(
                f"{name} gave nothing for {silence_s:.0f} s and does not end",
                remedy="write the log to a file and give that",
            )
        if is_pipe and time.monotonic() > until_s:
            raise UsageError(
                f"{name} does not end", why=f"it was read for {limit_s:.0f} s",
                remedy="write a part of the log to a file and give that",
            )  # fmt: skip
        try:
            block = os.read(handle, BLOCK_BYTES)
        except BlockingIOError:
            continue
        except OSError as error:
            raise UsageError(f"cannot read {name}", why=error.strerror or "") from None
        if not block:
            return
        silence_s = pause_s
        yield block


def _ready(handle: int, silence_s: float) -> bool:
    if sys.platform == "win32":
        return True  # select knows sockets only there
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    events = waiting.poll(silence_s * 1000)
    return bool(events)


def _check_text(block: bytes, name: str) -> None:
    start = block[:BINARY_BYTES]
    if start.startswith(_UTF_16) or b"\0" not in start:
        return
    even, odd = start[::2].count(0), start[1::2].count(0)
    if max(even, odd) > 0.4 * len(start) / 2 and min(even, odd) < 0.1 * len(start) / 2:
        return  # UTF-16 without its mark
    raise UsageError(f"{name} is a binary file", remedy="give a log, which is text")
