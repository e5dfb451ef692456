"""Progress on stderr: one line that is rewritten on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import errno
import sys
import threading
import time
from typing import TYPE_CHECKING

from tfdyno.core.base.lasting import Lasting
from tfdyno.core.base.wide_text import shown_width
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

CLEAR = "\r\x1b[2K"
PROGRESS = "progress: "
"""Begins each line for a program that watches."""
TICK_S = 1.0
"""How often a terminal shows the seconds."""
SHOWN_COLUMNS = 70
"""Of a stage, so that the line with its seconds stays one line."""
PATIENCE_S = 30.0
"""How often a stage that goes on is told where stderr is no terminal."""


def tell(text: str) -> None:
    """Write to stderr; a terminal that was closed takes no words, and stops no work by that."""
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def tell_program(line: str) -> None:
    """Write a line on stderr for a program that watches."""
    print(f"{PROGRESS}{line}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress_line(*, quiet: bool, verbose: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that shows a stage; the line is gone when the block ends.

    Args:
        quiet: Show nothing.
        verbose: Keep every stage as a line of its own with the seconds since the start, also
            where stderr is no terminal.
    """
    if quiet:
        yield lambda _stage: None
        return
    shown = _Shown(live=sys.stderr.isatty() and not verbose, verbose=verbose)
    ticking = threading.Thread(target=shown.tick, daemon=True)
    ticking.start()
    try:
        yield shown.stage
    finally:
        shown.over.set()
        ticking.join()
        if shown.live:
            tell(CLEAR)


@contextlib.contextmanager
def bar() -> Iterator[Progress]:
    """Draw a bar for tasks with the field ``told``, words behind it; gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[told]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with shown:
        yield shown


class _Shown:
    """The stage on show and since when; one thread sets it, another keeps the seconds going."""

    def __init__(self, *, live: bool, verbose: bool) -> None:
        self.live, self.verbose = live, verbose
        self.began_s = self.since_s = time.monotonic()
        self.text = ""
        self.over = threading.Event()

    def stage(self, text: str) -> None:
        if isinstance(text, Lasting):
            tell(f"{CLEAR if self.live else ''}tfdyno: {text}\n")
            return
        self.text, self.since_s = text, time.monotonic()
        if self.verbose and text:
            self._line(text)
        elif self.live:
            self._rewrite()

    def tick(self) -> None:
        while not self.over.wait(TICK_S if self.live else PATIENCE_S):
            if self.live:
                self._rewrite()
            elif self.text:
                past_s = time.monotonic() - self.since_s
                self._line(say("{stage}, for {seconds:.0f} s now", stage=self.text, seconds=past_s))

    def _line(self, text: str) -> None:
        past_s = time.monotonic() - self.began_s
        tell(f"{past_s:6.1f} s  {text}\n")

    def _rewrite(self) -> None:
        past_s = time.monotonic() - self.since_s
        seconds = f"  {past_s:.0f} s" if past_s >= 2 * TICK_S else ""
        text = self.text[:SHOWN_COLUMNS]
        while shown_width(text) > SHOWN_COLUMNS:
            text = text[:-1]
        tell(f"{CLEAR}{text}{seconds}")
