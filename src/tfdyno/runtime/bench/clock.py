"""The clock of a bench: the first step alone, then blocks of steps until the state is steady."""

from __future__ import annotations

import gc
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.model.measure.steady import steady_from

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK_S = 0.05
"""A sample is at least so long: reading the clock and waiting for the device then cost nothing."""
_GROWTH = 8
"""A block of steps grows at most so many times at once."""
_PROGRESS_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What was timed; see the fields of the same names in ``core.measure.measurement.BenchRun``."""

    samples_s: tuple[float, ...]
    steps_per_sample: tuple[int, ...]
    excluded: tuple[int, ...]
    beside_s: tuple[float, ...]
    beside_places: tuple[int, ...]
    steady_from: int
    first_step_s: float
    step_count: int


class StepClock:
    """Times steps that something else runs: call ``start``, then ``steps`` after each of them."""

    def __init__(
        self,
        *,
        least_samples: int,
        most_s: float,
        least_s: float = 0.0,
        endless: bool = False,
        progress: Callable[[str], None] = lambda _message: None,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Set the rules; nothing is timed yet.

        Args:
            least_samples: How many samples the steady state must hold.
            most_s: Limit from the end of the first step on, in seconds.
            least_s: How long the steady state must be, in seconds.
            endless: Whether somebody else decides when the steps end (whole epochs).
            progress: Called about once a second with a line that says how far it is.
            now: A clock in seconds.
        """
        self.least_samples, self.most_s, self.endless = least_samples, most_s, endless
        self.least_s = least_s
        self.sync: Callable[[], None] = lambda: None
        """Waits until the device has done all that it was asked for."""
        self.opening: Callable[[], None] = lambda: None
        """Called once before the first step; not timed."""
        self.between: Callable[[], None] = lambda: None
        """Called once between the first step and the others; not timed."""
        self.beside: Callable[[float], float] = lambda _budget_s: 0.0
        """Called between two samples every ``beside_every_s``, with ``beside_ratio`` of the time
        since it was called last; returns seconds; not timed."""
        self.beside_every_s, self.beside_ratio = math.inf, 0.0
        self.alone = 0
        """So many steps are samples of their own: for steps that may end at any time."""
        self.first_step_s = 0.0
        self.done = False
        self._progress, self._now = progress, now
        self._samples: list[tuple[float, int]] = []
        self._beside: list[tuple[int, float]] = []
        self._beside_at = -math.inf
        self._excluded: list[int] = []
        self._steady = 0
        self._block, self._limit, self._count, self._ended = 1, 1, 0, 0
        self._tainted = False
        self._first_began = self._began = self._first_end = self._told = self._aside_s = 0.0
        self._next_check = least_samples

    @property
    def started(self) -> bool:
        """Whether the first step has begun."""
        return self._first_began > 0.0

    @property
    def running_s(self) -> float:
        """Seconds since the first step began, without ``between`` and ``beside``; 0.0 before it."""
        return self._now() - self._first_began - self._aside_s if self.started else 0.0

    @property
    def step_count(self) -> int:
        """Steps that have ended."""
        return self._ended + self._count

    @property
    def sample_count(self) -> int:
        """Samples so far, warm-up included."""
        return len(self._samples)

    def start(self) -> None:
        """The first step begins now."""
        self.opening()
        gc.collect()
        gc.freeze()  # what was built so far is not searched again while steps are timed
        self._first_began = self._began = self._now()

    def first(self, seconds_s: float) -> None:
        """The first step took so long and has just ended: for one that was known only then."""
        self.opening()
        self._first_began = self._began = self._now() - seconds_s
        self._count = 1
        self._close()

    def steps(self, count: int = 1) -> bool:
        """Count steps that have just ended; returns whether enough was measured."""
        self._count += count
        if self._count < self._limit:
            return False
        return self._close()

    def epoch(self) -> None:
        """An epoch begins: the next step holds more than a step, and is a sample of its own."""
        self._tainted, self._limit = bool(self.first_step_s), self._count + 1

    def cut(self) -> None:
        """An epoch has ended: the sample in progress ends with its last step."""
        if self._count:
            self._close()

    def timed(self) -> Timed:
        """Return all that was timed so far."""
        self._check()
        return Timed(
            samples_s=tuple(seconds for seconds, _ in self._samples),
            steps_per_sample=tuple(steps for _, steps in self._samples),
            excluded=tuple(self._excluded),
            beside_s=tuple(seconds for _, seconds in self._beside),
            beside_places=tuple(place for place, _ in self._beside),
            steady_from=self._steady,
            first_step_s=self.first_step_s,
            step_count=self.step_count,
        )

    def _close(self) -> bool:
        self.sync()
        seconds_s, count = self._now() - self._began, self._count
        self._ended += count
        self._count = 0
        if self.first_step_s:
            self._add(seconds_s, count)
        else:
            self.first_step_s = seconds_s
            self._block = count
            self._set_aside()
        self._tell()
        self.done = not self.endless and bool(self._samples) and self._enough()
        self._limit = self._block
        if self._samples:
            self._look_beside()
        self._began = self._now()
        return self.done

    def _look_beside(self) -> None:
        began = self._now()
        since_s = began - max(self._beside_at, self._first_end)
        if since_s >= self.beside_every_s:
            self._beside.append((len(self._samples), self.beside(self.beside_ratio * since_s)))
            self._beside_at = self._now()
            self._aside_s += self._beside_at - began

    def _set_aside(self) -> None:
        ended = self._now()
        self.between()
        gc.collect()
        gc.freeze()
        self._first_end = self._now()
        self._aside_s = self._first_end - ended

    def _add(self, seconds_s: float, count: int) -> None:
        if self._tainted:
            self._excluded.append(len(self._samples))
            self._tainted = False
        self._samples.append((seconds_s / count, count))
        if self._ended > self.alone and seconds_s < BLOCK_S and count >= self._block:
            wanted = math.ceil(1.1 * count * BLOCK_S / max(seconds_s, 1e-9))
            self._block = min(wanted, _GROWTH * count)

    def _enough(self) -> bool:
        if self._now() - self._first_end >= self.most_s:
            return True
        counted = len(self._samples) - len(self._excluded)
        if counted < self._next_check:
            return False
        missing = self.least_samples - self._check()
        self._next_check = counted + max(5, missing)
        return missing <= 0 and self._steady_s() >= self.least_s

    def _steady_s(self) -> float:
        """Return seconds of the samples in the steady state that was found last."""
        return math.fsum(seconds * steps for seconds, steps in self._samples[self._steady :])

    def _check(self) -> int:
        """Find the steady state; returns how many samples it has that count."""
        left_out = set(self._excluded)
        counted = [number for number in range(len(self._samples)) if number not in left_out]
        first = steady_from([self._samples[number][0] for number in counted])
        found = first < len(counted)
        self._steady = counted[first] if found else len(self._samples)
        return len(counted) - first

    def _tell(self) -> None:
        now = self._now()
        if now - self._told >= _PROGRESS_S:
            self._told = now
            spent_s = now - self._first_end
            self._progress(f"measuring: {self.step_count} steps, {spent_s:.1f} s")
