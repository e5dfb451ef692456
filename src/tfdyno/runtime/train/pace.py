"""How fast the steps of a training came: few enough samples to be kept, however long it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tfdyno.core.train.training import Pace

MOST_SAMPLES = 2_000
"""The most samples: with more of them every two neighbours become one."""
SAMPLE_S = 0.5
"""A sample is at least so long, until there are too many."""


@dataclass(slots=True)
class PaceRecord:
    """Told of steps a few times a second, of ends of epochs, of checkpoints and of validations."""

    samples: list[tuple[float, int]] = field(default_factory=list)
    """Seconds and steps of each."""
    firsts: list[int] = field(default_factory=list)
    """Places of samples that begin an epoch."""
    epoch_end_s: list[float] = field(default_factory=list)
    validation_s: float = 0.0
    callback_s: float | None = None
    save_s: float = 0.0
    saves: int = 0
    _least_s: float = SAMPLE_S
    _from: tuple[float, int] | None = None
    """When the open sample began, and after how many steps; None: no step has ended."""

    def steps(self, now: float, done: int, *, is_last: bool = False) -> None:
        """So many steps of this epoch are done; a sample ends where it is long enough."""
        if self._from is None:
            self._from = (now, done)
            return
        began, before = self._from
        if done <= before or (now - began < self._least_s and not is_last):
            return
        self.samples.append((now - began, done - before))
        self._from = (now, done)
        if len(self.samples) > MOST_SAMPLES:
            self._halve()

    def epoch(self, last_step: float, done: int, now: float) -> None:
        """An epoch has ended.

        Args:
            last_step: When its last step had ended.
            done: Steps of it.
            now: When its validation and callbacks had ended too.
        """
        if self._from is None or not done:
            return
        self.steps(last_step, done, is_last=True)
        self.epoch_end_s.append(now - last_step)
        self.firsts.append(len(self.samples))
        self._from = (now, 0)

    def saved(self, seconds_s: float) -> None:
        """The training waited so long for a checkpoint."""
        self.saves, self.save_s = self.saves + 1, self.save_s + seconds_s

    def pace(self) -> Pace:
        """Return all of it."""
        count = len(self.samples)
        return Pace(
            samples_s=tuple(seconds_s / steps for seconds_s, steps in self.samples),
            steps_per_sample=tuple(steps for _, steps in self.samples),
            firsts=tuple(place for place in dict.fromkeys(self.firsts) if place < count),
            epochs=len(self.epoch_end_s),
            epoch_end_s=math.fsum(self.epoch_end_s),
            validation_s=self.validation_s,
            callback_s=self.callback_s,
            save_s=self.save_s,
            saves=self.saves,
        )

    def _halve(self) -> None:
        pairs = [self.samples[at : at + 2] for at in range(0, len(self.samples), 2)]
        self.samples = [(math.fsum(s for s, _ in pair), sum(n for _, n in pair)) for pair in pairs]
        self.firsts = [place // 2 for place in self.firsts]
        self._least_s *= 2.0
