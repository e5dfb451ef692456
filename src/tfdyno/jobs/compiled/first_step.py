"""The first step of a child, as its lines of progress show it: how long, and what it was told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tfdyno.core.recipe.retreat import FIRST_STEP, FIRST_STEP_XLA
from tfdyno.words.base.language import say

STAGES = (FIRST_STEP, FIRST_STEP_XLA)
"""What ``bench`` and ``diagnose`` say before it; ``train`` tells an event."""
BEGIN = "begin"
TOLD_S = 1.0
"""A first step that is shorter needs no words."""


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the first steps of one workload under one recipe."""

    title: str = ""
    compiled_s: float = 0.0
    """The time of the last that compiled all of its programs; 0: none is known."""
    kept_s: float = 0.0
    """The time of the last whose programs were all kept; 0: none is known."""
    programs: tuple[str, ...] = ()
    """Names of those that it used."""


@dataclass(slots=True, kw_only=True)
class FirstStep:
    """Hears the lines of a child; knows when its first step begins and ends."""

    title: str
    known: StepTimes
    has_all: bool
    """Whether all programs of the last such step are kept."""
    ended: Callable[[], None]
    """Called when it has ended."""
    now_s: Callable[[], float] = time.monotonic
    began_s: float = 0.0
    took_s: float = 0.0
    _by_event: bool = False

    def lines(self, line: str) -> tuple[str, ...]:
        """Return what is to be shown for a line of the child; notes the times."""
        if self.took_s:
            return (line,)
        event = _event(line)
        if not self.began_s:
            if event == BEGIN:
                self.began_s, self._by_event = self.now_s(), True
                return line, self.words
            if stage := next((one for one in STAGES if line.endswith(one)), ""):
                self.began_s = self.now_s()
                return (line.removesuffix(stage) + self.words,)
        elif event or not self._by_event:
            self.took_s = self.now_s() - self.began_s
            self.ended()
        return (line,)

    @property
    def words(self) -> str:
        """``compiling the step of train.py (about 17 s the last time)``."""
        known = self.known
        if self.has_all:
            last = say("about {seconds:.0f} s the last time; ", seconds=known.kept_s)
            return say(
                "first step of {title} ({last}its programs are kept, nothing to compile)",
                title=self.title,
                last=last if known.kept_s > TOLD_S else "",
            )
        last = say("about {seconds:.0f} s the last time", seconds=known.compiled_s)
        return say(
            "compiling the step of {title} ({last})",
            title=self.title,
            last=last if known.compiled_s else say("for the first time here"),
        )


def outcome_words(first: FirstStep, loaded: int, made: int) -> str:
    """Return what came of it, for the answer; empty where nothing was compiled or it took no time.

    Args:
        first: The step, which has ended.
        loaded: Programs that were taken from those kept.
        made: Programs that were compiled and are kept now.
    """
    seconds = f"{first.took_s:.1f} s"
    if not first.took_s or not loaded + made or max(first.took_s, first.known.compiled_s) < TOLD_S:
        return ""
    if loaded and not made:
        before = first.known.compiled_s
        earlier = f"; it took {before:.1f} s when they were compiled" if before else ""
        return (
            f"The first step took {seconds}: its compiled programs were kept from before{earlier}"
        )
    rest = f", {loaded} were kept from before" if loaded else ""
    return (
        f"The first step took {seconds} with compiling{rest}; "
        "the next start takes the programs from the cache"
    )


def times_after(first: FirstStep, loaded: frozenset[str], made: frozenset[str]) -> StepTimes | None:
    """Return what is to be known from now on; None where no step has ended."""
    if not first.took_s:
        return None
    known, programs = first.known, tuple(sorted(loaded | made))
    compiled_s = known.compiled_s if loaded else first.took_s
    kept_s = first.took_s if loaded and not made else known.kept_s
    return StepTimes(title=first.title, compiled_s=compiled_s, kept_s=kept_s, programs=programs)


def _event(line: str) -> str:
    if not line.startswith("{"):
        return ""
    try:
        found = json.loads(line)
    except ValueError:
        return ""
    return str(found.get("event", "")) if isinstance(found, dict) else ""
