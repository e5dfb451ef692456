"""A conversion on stderr: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from tfdyno.cli.progress import PATIENCE_S, bar, progress_line
from tfdyno.view.data.convert_progress import pace_words, place_words, read_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def convert_progress(*, quiet: bool, verbose: bool) -> Iterator[Callable[[str], None]]:
    """Show a conversion until the block ends; the bar is gone then.

    Args:
        quiet: Show nothing.
        verbose: Show every stage and shard as a line.
    """
    if quiet or verbose or not sys.stderr.isatty():
        with progress_line(quiet=quiet, verbose=verbose) as stage:
            yield stage if quiet else _Lines(stage, verbose=verbose).hear
        return
    with bar() as drawn:
        task = drawn.add_task("starting", total=None, told="")
        clock = _Clock()

        def hear(line: str) -> None:
            event = read_event(line)
            if event is None:
                drawn.update(task, description=line, total=None, completed=0, told="")
                return
            drawn.update(
                task,
                description=place_words(event),
                total=event.of_records,
                completed=event.records,
                told=pace_words(event, clock.past_s()),
            )

        yield hear


class _Clock:
    """Seconds since the first record was written."""

    def __init__(self) -> None:
        self._began_s = 0.0

    def past_s(self) -> float:
        self._began_s = self._began_s or time.monotonic()
        return time.monotonic() - self._began_s


class _Lines:
    """A line per stage, and one where records are written for long."""

    def __init__(self, stage: Callable[[str], None], *, verbose: bool) -> None:
        self._stage, self._verbose = stage, verbose
        self._clock, self._told_s, self._shard = _Clock(), time.monotonic(), 0

    def hear(self, line: str) -> None:
        """Take a line of progress."""
        event = read_event(line)
        if event is None:
            self._stage(line)
            return
        now_s, past_s = time.monotonic(), self._clock.past_s()
        is_next = self._verbose and event.shard != self._shard
        if not self._shard:
            self._stage("")  # no stage is waited for any more
        self._shard = event.shard
        if is_next or now_s - self._told_s >= PATIENCE_S:
            self._told_s = now_s
            told = f"{place_words(event)}: {pace_words(event, past_s)}"
            print(f"{past_s:6.1f} s  {told}", file=sys.stderr, flush=True)
