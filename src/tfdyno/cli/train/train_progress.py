"""A training on stderr: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from typing import TYPE_CHECKING, Protocol

from tfdyno.cli.progress import PATIENCE_S, bar, progress_line
from tfdyno.view.base.text import terminal_width
from tfdyno.view.train.layout_text import layout_text, read_layout
from tfdyno.view.train.progress import (
    eta_words,
    line_words,
    metric_words,
    place_words,
    read_event,
    speed_words,
    step_words,
)
from tfdyno.words.base.language import say
from tfdyno.words.train.notes import stage_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

    from tfdyno.view.train.progress import TrainEvent

NOISE = re.compile(
    r"WARNING: All log messages before absl|[IW]\d{4} \d\d:\d\d:|\d{4}-.*: I |\[Gloo\] Rank "
    r"|\d+ is connected to \d+ peer ranks"  # its other half, where two threads print at once
    r"|E\d{4} .*(?:text-format tensorflow\.XlaSerializedCacheEntry"
    r"|Target machine feature \+prefer-no-(?:gather|scatter) is not)"  # of kept programs
    r"|cuda_plugin_extension is not found|JAX detected proxy variable"
)
"""Greetings of TensorFlow and of JAX, which stand in the log of the run."""


class Shown(Protocol):
    """Where a training is shown."""

    def progress(self, line: str) -> None:
        """Take a stage, or an event as JSON."""

    def output(self, line: str) -> None:
        """Take a line that the user's code printed."""


@contextlib.contextmanager
def train_progress(*, quiet: bool, verbose: bool) -> Iterator[Shown]:
    """Show a training until the block ends; a bar is gone then, lines stay.

    Args:
        quiet: Show nothing.
        verbose: Show every event as a line, and TensorFlow's own greetings.
    """
    if quiet:
        yield _Silent()
    elif sys.stderr.isatty() and not verbose:
        with bar() as drawn:
            yield _Bar(drawn)
    else:
        with progress_line(quiet=False, verbose=verbose) as stage:
            yield _Lines(stage, verbose=verbose)


class _Silent:
    def progress(self, line: str) -> None:
        pass

    def output(self, line: str) -> None:
        pass


class _Lines:
    """Every epoch a line, and one within an epoch that takes long."""

    def __init__(self, stage: Callable[[str], None], *, verbose: bool) -> None:
        self._stage, self._verbose = stage, verbose
        self._began_s = self._told_s = time.monotonic()

    def progress(self, line: str) -> None:
        if layout := read_layout(line):
            self._stage("")
            print(layout_text(layout, width=terminal_width()), file=sys.stderr, flush=True)
            return
        event = read_event(line)
        if event is None:
            self._stage(stage_words(line))
            return
        self._stage("")  # no stage is waited for any more
        now_s = time.monotonic()
        due = now_s - self._told_s >= PATIENCE_S
        if event.kind == "begin":
            self._told_s = now_s
        elif event.kind == "epoch" or due or self._verbose:
            self._told_s = now_s
            past = f"{now_s - self._began_s:6.1f} s  "
            print(past + line_words(event), file=sys.stderr, flush=True)

    def output(self, line: str) -> None:
        if self._verbose or not NOISE.match(line):
            print(line, file=sys.stderr, flush=True)


class _Bar:
    """A bar for the epoch that runs; lines of the user's code and ended epochs scroll above it."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task(say("starting"), total=None, told="")

    def progress(self, line: str) -> None:
        if layout := read_layout(line):
            self._print(layout_text(layout, width=terminal_width()))
            return
        event = read_event(line)
        if event is None:
            self._bar.update(self._task, description=stage_words(line), total=None, told="")
            return
        if event.kind == "epoch":
            self._print(line_words(event))
        self._update(event)

    def output(self, line: str) -> None:
        if not NOISE.match(line):
            self._print(line)

    def _update(self, event: TrainEvent) -> None:
        parts = (step_words(event), metric_words(event), speed_words(event), eta_words(event))
        self._bar.update(
            self._task,
            description=place_words(event),
            completed=event.step,
            total=event.steps or None,
            told="  ".join(filter(None, parts)),
        )

    def _print(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)
