"""The clock of a look at a training: warm-up, then single steps with what lies between them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.model.statistics import mean
from tfdyno.model.steady import steady_from

if TYPE_CHECKING:
    from collections.abc import Sequence

SYNC_S = 0.05
"""A device that works on behind the host's back is waited for so often: that costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long the user's own steps, and then the parts of a training, are looked at."""

    own_s: float = 6.0
    """Enough where there are ``least_steps`` too."""
    most_s: float = 10.0
    """Enough however few steps there are, but for ``FEWEST``."""
    least_steps: int = 30
    warm_s: float = 1.0
    """Before that, from the end of the first step on: buffers fill, threads find their number."""
    warm_steps: int = 5
    most_warm_s: float = 3.0
    held_s: float = 2.0
    """Of steps on one batch that is held."""
    alone_s: float = 3.0
    """Of the input by itself, as TensorFlow runs it."""
    stages_s: float = 2.0
    """Of the input exactly as it is written, for the time of each stage."""


FEWEST = 2
"""Of steps that take longer than all limits, so many are waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From the end of the call before to the end of this one."""

    whole_s: float
    call_s: float
    """0.0: the step is no call of one function."""
    callback_s: float
    wait_s: float
    """In reading data, wherever that happened."""
    wait_outside_s: float
    """The part of it outside of the call."""
    count: int
    """Steps in one call."""
    is_first_of_epoch: bool
    group: int
    """Steps of a device that was not waited for between them."""


@dataclass(slots=True)
class _Open:
    """What has happened since the last step ended."""

    began: float = 0.0
    callback_s: float = 0.0
    wait_s: float = 0.0
    wait_outside_s: float = 0.0
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
    now: Callable[[], float] = time.perf_counter
    steps: list[Step] = field(default_factory=list)
    """All of them, the first one and the warm-up included."""
    own_from: int = -1
    """Index of the first that counts; -1: warm-up is not over."""
    done: bool = False
    inside: bool = False
    """Whether a call of the step is under way."""
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

    def begin(self) -> None:
        """A call of the step begins."""
        self._open.began = self.now()
        self._last_end = self._last_end or self._open.began
        self.inside = True

    def end(self, count: int = 1) -> bool:
        """The call has ended; returns whether enough was seen."""
        self.inside = False
        waits = self.sync is not None and self.now() - self._synced >= SYNC_S
        if self.sync is not None and waits:
            self.sync()
        ended, opened = self.now(), self._open
        self._last_end = self._last_end or ended
        self.steps.append(
            Step(
                whole_s=ended - self._last_end,
                call_s=ended - opened.began if opened.began else 0.0,
                callback_s=opened.callback_s,
                wait_s=opened.wait_s,
                wait_outside_s=opened.wait_outside_s,
                count=count,
                is_first_of_epoch=opened.is_first_of_epoch,
                group=self._group,
            )
        )
        if waits or self.sync is None:
            self._group, self._synced = self._group + 1, ended
        self._settle(ended)
        self._open = _Open()
        self._last_end = self.now()
        return self.done

    def first(self, seconds_s: float) -> None:
        """The first step took so long and has just ended: for one that was known only then."""
        self._open.began = self._last_end = self.now() - seconds_s
        self.end()

    def called_back(self, seconds_s: float) -> None:
        """A callback of the user's took so long between two steps."""
        self._open.callback_s += seconds_s

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
    epoch_start_s: float
    """What the first step of an epoch takes beyond a usual one, callbacks left out; 0.0: not
    seen."""
    is_warm: bool
    """False: the training ended before warm-up was over, and all steps but the first are told."""


def own_steps(times: StepTimes) -> OwnSteps:
    """Reduce what was timed to the steady steps.

    The first step of each epoch is left out: it holds validation and a new iterator. Steps of a
    device that was not waited for between them take their mean each.
    """
    is_warm = times.own_from >= 0 and len(times.steps) > times.own_from
    seen = times.steps[times.own_from :] if is_warm else (times.steps[1:] or times.steps)
    usual = [step for step in seen if not step.is_first_of_epoch] or list(seen)
    whole_s = _even(usual)
    start = _steady(whole_s)
    usual, whole_s = usual[start:], whole_s[start:]
    count = max(1, sum(step.count for step in usual))
    firsts = [
        step.whole_s - step.callback_s
        for step in times.steps[max(1, times.own_from) :]
        if step.is_first_of_epoch
    ]
    typical = sorted(step.whole_s - step.callback_s for step in usual)
    extra_s = mean(firsts) - typical[len(typical) // 2] if firsts and typical else 0.0
    return OwnSteps(
        step_s=tuple(s / step.count for s, step in zip(whole_s, usual, strict=True)),
        callback_s=math.fsum(step.callback_s for step in usual) / count,
        python_s=math.fsum(_python_s(step) for step in usual) / count,
        waits_s=math.fsum(step.wait_s for step in usual) / count,
        epoch_start_s=max(0.0, extra_s),
        is_warm=is_warm,
    )


def _python_s(step: Step) -> float:
    """What is neither the call, nor a callback, nor reading; a step without a call has none."""
    if not step.call_s:
        return 0.0
    rest = step.whole_s - step.call_s - step.callback_s - step.wait_outside_s
    return max(0.0, rest)


def _even(steps: Sequence[Step]) -> list[float]:
    groups: dict[int, list[float]] = {}
    for step in steps:
        groups.setdefault(step.group, []).append(step.whole_s)
    return [mean(groups[step.group]) for step in steps]


def _steady(whole_s: Sequence[float]) -> int:
    """Where the steady state begins; 0 where too little would be left of the steps."""
    if any(seconds <= 0 for seconds in whole_s):
        return 0
    start = steady_from(whole_s)
    return start if start <= len(whole_s) // 2 else 0
