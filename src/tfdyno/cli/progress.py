"""Progress on stderr: one line that is rewritten on a terminal, nothing otherwise."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLEAR = "\r\x1b[2K"


@contextlib.contextmanager
def progress_line(*, quiet: bool, verbose: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows a stage; the line is gone when the block ends.

    Args:
        quiet: Show nothing.
        verbose: Keep every stage as a line of its own with the seconds since the start, also
            where stderr is no terminal.
    """
    began_s = time.monotonic()
    live = sys.stderr.isatty() and not quiet and not verbose

    def show(stage: str) -> None:
        if verbose and not quiet:
            print(f"{time.monotonic() - began_s:6.1f} s  {stage}", file=sys.stderr, flush=True)
        elif live:
            print(f"{CLEAR}{stage[:78]}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if live:
            print(CLEAR, end="", file=sys.stderr, flush=True)
