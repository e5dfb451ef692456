"""Who hears of what while a project runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfdyno.core.project.project import StepRun


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReporter:
    """What is called, each time with what there is to be told."""

    begun: Callable[[StepRun, int, int], object] = lambda _step, _number, _count: None
    """A step that runs, its place and how many there are."""
    reads: Callable[[str], object] = lambda _file: None
    """A large file that is read, to see whether it is as it was."""
    said: Callable[[str], None] = lambda _line: None
    """The last line of the log of the step that runs."""
    waits: Callable[[str], object] = lambda _why: None
    """Why it takes a while to end, once it was asked to."""
    ended: Callable[[StepRun], object] = lambda _step: None
