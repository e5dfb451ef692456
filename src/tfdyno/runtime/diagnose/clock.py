"""The clock of a look at a training: warm-up, then single steps with what lies between them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.core.messages.diagnose import Limits
from tfdyno.model.measure.statistics import mean
from tfdyno.model.measure.steady import steady_from

if TYPE_CHECKING:
    from collections.abc import Sequence

SYNC_S = 0.05
"""A device that works on behind the host's back is waited for so often: that costs nothing."""
_STALLED_RATIO = 0.05
_STALL_FACTOR = 10.0
RARE_RATIO = 0.4
"""The share of the steps beside which a thing is done now and then. A loop does things at every
second or third of its steps: with 1/2 or 1/3 a step more or less would decide."""
FEWEST = 2
"""The fewest of steps that take longer than all limits: so many are waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStep:
    """From the end of the call before to the end of this one."""

    whole_s: float
    call_s: float
    """0.0: the step is no call of one function."""
    callback_s: float
    wait_s: float
    """The time in reading data, wherever that happened."""
    wait_outside_s: float
    """The part of it outside of the call."""
    count: int
    """Steps in one call."""
    is_first_of_epoch: bool
    group: int
    """Steps of a device that was not waited for between them."""
    validation_s: float = 0.0
    """The time in the validation of the epoch before."""
    checkpoint_s: float = 0.0
    """The time in saving, which is time of callbacks too."""
    function_s: float = 0.0
    """The time in other functions of TensorFlow's that a loop calls between two steps."""
    beside_s: Mapping[str, float] = field(default_factory=dict)
    """The time in what a loop does beside its steps, by name."""


@dataclass(slots=True)
class _Open:
    """What has happened since the last step ended."""

    began: float = 0.0
    callback_s: float = 0.0
    wait_s: float = 0.0
    wait_outside_s: float = 0.0
    validation_s: float = 0.0
    checkpoint_s: float = 0.0
    function_s: float = 0.0
    beside_s: dict[str, float] = field(default_factory=dict)
    is_first_of_epoch: bool = False


@dataclass(slots=True)
class StepTimes:
    """Call ``begin`` and ``end`` around each call of the step, the others between them."""

    limits: Limits = field(default_factory=Limits)
    sync: Callable[[], None] | None = None
    """Waits for the device; None: a call returns when its work is done."""
    opening: Callable[[], None] = lambda: None
    """Called once when warm-up is over; not timed."""
    stepped: Callable[[], None] = lambda: None
    """Called after each step of those that count; not timed."""
    is_sure: Callable[[], bool] = lambda: True
    """Asked after each step of those that count, where it goes on until one is sure; not timed."""
    heed: Callable[[], None] = lambda: None
    """Called when a step has ended and is counted; raises where a stop was asked for."""
    now: Callable[[], float] = time.perf_counter
    steps: list[TimedStep] = field(default_factory=list)
    """All of them, the first one and the warm-up included."""
    own_from: int = -1
    """Index of the first that counts; -1: warm-up is not over."""
    slowed_from: int = 0
    """Index of the first that the look itself slows down; 0: none."""
    done: bool = False
    inside: bool = False
    """Whether a call of the step is under way."""
    callback: str = ""
    """The user's callback that runs; empty: none."""
    _open: _Open = field(default_factory=_Open)
    _last_end: float = 0.0
    _first_end: float = 0.0
    _own_began: float = 0.0
    _synced: float = 0.0
    _group: int = 0

    @property
    def step_count(self) -> int:
        """Steps that have ended."""
        return sum(step.count for step in self.steps)

    @property
    def own_span_s(self) -> tuple[float, float]:
        """When the steps that count began and the last of them ended, by ``now``; zeros: none."""
        return (self._own_began, self._last_end) if self.own_from >= 0 else (0.0, 0.0)

    def begin(self) -> None:
        """A call of the step begins."""
        self._open.began = self.now()
        self._last_end = self._last_end or self._open.began
        self.inside = True

    def end(self, count: int = 1) -> bool:
        """The call has ended; returns whether enough was seen."""
        self.inside = True  # until this returns: what is done here is no Python of the user's
        waits = self.sync is not None and self.now() - self._synced >= SYNC_S
        if self.sync is not None and waits:
            self.sync()
        ended, opened = self.now(), self._open
        self._last_end = self._last_end or ended
        self.steps.append(
            TimedStep(
                whole_s=ended - self._last_end,
                call_s=ended - opened.began if opened.began else 0.0,
                callback_s=opened.callback_s,
                wait_s=opened.wait_s,
                wait_outside_s=opened.wait_outside_s,
                count=count,
                is_first_of_epoch=opened.is_first_of_epoch,
                group=self._group,
                validation_s=opened.validation_s,
                checkpoint_s=opened.checkpoint_s,
                function_s=opened.function_s,
                beside_s=opened.beside_s,
            )
        )
        if waits or self.sync is None:
            self._group, self._synced = self._group + 1, ended
        self._settle(ended)
        self._open = _Open()
        self.inside = False
        self._last_end = self.now()
        self.heed()
        return self.done

    def drop(self) -> None:
        """The call has failed, or found no data: it was no step."""
        self.inside, self._open.began = False, 0.0

    def first(self, seconds_s: float) -> None:
        """The first step took so long and has just ended: for one that was known only then."""
        self._open.began = self._last_end = self.now() - seconds_s
        self.end()

    def called_back(self, seconds_s: float) -> None:
        """A callback of the user's took so long between two steps."""
        self._open.callback_s += seconds_s

    def beside(self, name: str, seconds_s: float, *, as_callback: bool = True) -> None:
        """A loop of the user's own did something beside its steps, which took so long.

        Args:
            name: Of what it did.
            seconds_s: What that took.
            as_callback: Whether it is time of a callback; else it is the loop's own Python.
        """
        self._open.callback_s += seconds_s if as_callback else 0.0
        self._open.beside_s[name] = self._open.beside_s.get(name, 0.0) + seconds_s

    def functioned(self, name: str, seconds_s: float) -> None:
        """It called another function of TensorFlow's; without a name that is as usual."""
        self._open.function_s += seconds_s
        if name:
            self._open.beside_s[name] = self._open.beside_s.get(name, 0.0) + seconds_s

    def validated(self, seconds_s: float) -> None:
        """A validation took so long between two steps."""
        self._open.validation_s += seconds_s

    def saved(self, seconds_s: float) -> None:
        """So much of what was told of a callback, or beside the steps, was saving."""
        self._open.checkpoint_s += seconds_s

    def waited(self, seconds_s: float) -> None:
        """Reading data took so long."""
        self._open.wait_s += seconds_s
        if not self.inside:
            self._open.wait_outside_s += seconds_s

    def epoch(self) -> None:
        """An epoch begins: the next step holds more than a step."""
        self._open.is_first_of_epoch = bool(self.steps)

    def _settle(self, ended: float) -> None:
        limits = self.limits
        if len(self.steps) == 1:
            self._first_end = ended
        if self.own_from >= 0:
            spent, seen = ended - self._own_began, len(self.steps) - self.own_from
            enough = spent >= limits.own_s and seen >= limits.least_steps
            if limits.until_sure:
                enough = self.is_sure() and enough
            self.done = enough or (spent >= limits.most_s and seen >= FEWEST)
            self.stepped()
            return
        warm, spent = len(self.steps) - 1, ended - self._first_end
        if (warm >= limits.warm_steps and spent >= limits.warm_s) or (
            warm >= 1 and spent >= limits.most_warm_s
        ):
            self.own_from = len(self.steps)
            self.opening()
            self._own_began = self.now()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSteps:
    """What the steady steps took, each one of one update."""

    step_s: tuple[float, ...]
    callback_s: float
    python_s: float
    waits_s: float
    is_warm: bool
    """False: the training ended before warm-up was over, and all steps but the first are told."""


def own_steps(times: StepTimes) -> OwnSteps:
    """Reduce what was timed to the steady steps.

    The first step of each epoch is left out: it holds validation and a new iterator. So are those
    before which a loop does what it does now and then. Steps of a device that was not waited for
    between them take their mean each.
    """
    seen = seen_steps(times)
    now_and_then = rare(seen)
    usual = [
        step for step in seen
        if not step.is_first_of_epoch and not now_and_then & step.beside_s.keys()
    ] or list(seen)  # fmt: skip
    whole_s = even(usual)
    start = _steady(whole_s)
    usual, whole_s = usual[start:], whole_s[start:]
    count = max(1, sum(step.count for step in usual))
    even_ones = _without_stalls(usual)
    even_count = max(1, sum(step.count for step in even_ones))
    return OwnSteps(
        step_s=tuple(s / step.count for s, step in zip(whole_s, usual, strict=True)),
        callback_s=math.fsum(step.callback_s for step in usual) / count,
        python_s=math.fsum(_python_s(step) for step in even_ones) / even_count,
        waits_s=math.fsum(step.wait_s for step in even_ones) / even_count,
        is_warm=_is_warm(times),
    )


def _without_stalls(steps: Sequence[TimedStep]) -> list[TimedStep]:
    """Drop the few that took many times as long: what they waited for is in no typical step.

    A loop of the script's own opens its data anew at each of its epochs, which nothing marks.
    """
    ordered = sorted(steps, key=lambda step: step.whole_s)
    few = int(_STALLED_RATIO * len(ordered))
    rest = ordered[: len(ordered) - few]
    most_s = _STALL_FACTOR * mean([step.whole_s for step in rest]) if few else math.inf
    return [step for step in steps if step.whole_s <= most_s]


def seen_steps(times: StepTimes) -> Sequence[TimedStep]:
    """Return those after warm-up; of a training that ended before, all but the first."""
    if not _is_warm(times):
        return times.steps[1:] or times.steps
    return times.steps[times.own_from : times.slowed_from or len(times.steps)]


def holds_epochs(times: StepTimes) -> bool:
    """Return whether each step is the first of its epoch: then it holds all that an epoch costs."""
    return all(step.is_first_of_epoch for step in seen_steps(times))


def _is_warm(times: StepTimes) -> bool:
    return 0 <= times.own_from < len(times.steps)


def rare(steps: Sequence[TimedStep]) -> set[str]:
    """Return what is done beside a few of the steps."""
    counts = Counter(name for step in steps for name in step.beside_s)
    return {name for name, count in counts.items() if count < RARE_RATIO * len(steps)}


def _python_s(step: TimedStep) -> float:
    """Return what is no call, callback, or reading; a step without a call has none."""
    if not step.call_s:
        return 0.0
    named_s = step.call_s + step.function_s + step.callback_s + step.wait_outside_s
    rest = step.whole_s - named_s
    return max(0.0, rest)


def even(steps: Sequence[TimedStep]) -> list[float]:
    """Return what each took; steps of a device not waited for between them take their mean."""
    groups: dict[int, list[float]] = {}
    for step in steps:
        groups.setdefault(step.group, []).append(step.whole_s)
    return [mean(groups[step.group]) for step in steps]


def _steady(whole_s: Sequence[float]) -> int:
    """Return where the steady state begins; 0 where too little would be left of the steps."""
    if any(seconds <= 0 for seconds in whole_s):
        return 0
    start = steady_from(whole_s)
    return start if start <= len(whole_s) // 2 else 0
