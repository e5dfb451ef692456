"""Watches a training run from beside it: how far, how fast, how long still, and whether it is lost.

``steps`` is called after every call of the train function and is nearly free: it keeps the logs of
a call, which may be numbers that the device has yet to compute, and reads them a second later, when
other calls are under way. The device is never waited for with nothing to do.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import NAN_LOSS, RunSettings
from tfdyno.runtime.train.pace import PaceRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.base.untyped import Model

EVENT_S = 0.5
"""Events of steps are at least so far apart."""
READ_S = 1.0
"""Logs are read when they are so old, and when another call followed."""
WINDOW_S = 5.0
"""The rate is that of the last so many seconds."""
DIGITS = 7


class NanLoss(Exception):  # noqa: N818  (what happened, not a fault of the tool)
    """A loss is not finite any more.

    Attributes:
        name: Of the loss, as Keras' logs have it.
        value: ``nan``, ``inf`` or ``-inf``.
        epoch: Counted from 1.
        step: Steps of that epoch that were done when the logs were kept.
        reason: Why the training ended, in the word of ``TrainOutcome.stopped``.
        seen_in: What showed it.
    """

    reason = NAN_LOSS
    seen_in = "the logs of the training"

    def __init__(self, name: str, value: float, *, epoch: int, step: int) -> None:
        self.name, self.value = name, value
        self.epoch, self.step = epoch, step
        super().__init__(f"{name} is {value} at step {step} of epoch {epoch}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAbout:
    """What the numbers of a run are relative to."""

    epochs: int
    steps: int = 0
    """The steps of an epoch; 0: not known before the first has ended."""
    samples_per_step: int = 0
    """Samples over all replicas; 0: not known, and no rate is told."""
    xla: bool = False
    """Whether XLA compiles the step."""
    first_epoch: int = 0
    """Epochs that were done before."""
    flops_per_step: float = 0.0
    """FLOPs of the whole step over all replicas."""
    peak_flops_per_s: float = 0.0
    """The peak of all devices together; 0: not known, and no MFU is told."""


class Watch:
    """Tells the progress of a run as lines of JSON, and raises ``NanLoss``.

    Its fields after the run are for the outcome: ``seconds_s``, ``samples_per_s``,
    ``memory_bytes`` and ``memory_kind``.
    """

    def __init__(
        self,
        progress: Callable[[str], None],
        *,
        memory: Callable[[], tuple[int, str]] | None = None,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Prepare.

        Args:
            progress: Takes one line.
            memory: Bytes at the peak and what they are of; ``PeakMemory`` of this process if None.
            now: A clock in seconds.
        """
        self._progress, self._memory, self._now = progress, memory, now
        self.memory_bytes, self.memory_kind = 0, "process"
        self.pace = PaceRecord()
        self._about = RunAbout(epochs=1)
        self._epoch = self._steps_of_epoch = self._last = 0
        self._due = 0.0
        self._began = self._ended = self._base_s = self._at = 0.0
        self._base = -1
        self._test_began = self._callbacks_began = 0.0
        self._trained_steps, self._trained_s, self._beside_s = 0, 0.0, 0.0
        self._marks: deque[tuple[float, int]] = deque()
        self._kept: deque[tuple[float, int, Mapping[str, Any]]] = deque()
        self._read: dict[str, float] = {}

    def begin(self, model: Model, about: RunAbout) -> None:
        """The first step comes next.

        Args:
            model: What is trained: its name and size are told.
            about: The size of the run.
        """
        if self._memory is None:
            from tfdyno.runtime.base.memory_counters import PeakMemory

            self._memory = PeakMemory().read
        self._about, self._epoch, self._steps_of_epoch = about, about.first_epoch, about.steps
        self._began = self._ended = self._now()
        event = {
            "event": "begin",
            "model": str(getattr(model, "name", "")),
            "epochs": about.epochs,
            "epoch": about.first_epoch + 1,
            "steps": about.steps,
            "samples_per_step": about.samples_per_step,
            "xla": about.xla,
        }
        self._tell(event)

    def steps(self, done: int, logs: Mapping[str, Any]) -> bool:
        """A call of the train function has returned.

        Args:
            done: Steps of this epoch so far, those before a resume included.
            logs: What it returned: tensors that need not be computed yet, or numbers.

        Returns:
            Whether it was told, which is at most twice a second.

        Raises:
            NanLoss: A loss of an earlier call is not finite.
        """
        self._last = done
        self._at = now = self._now()
        is_due = now >= self._due
        if is_due:
            self._look(now, done, logs)
        return is_due

    def epoch_ends(self) -> None:
        """The user's callbacks hear of the end of an epoch next."""
        self._callbacks_began = self._now()

    def epoch_end(self, epoch: int, logs: Mapping[str, Any]) -> None:
        """An epoch and its validation have ended.

        Args:
            epoch: Counted from 0, as Keras does.
            logs: Its metrics, those of the validation as ``val_…``.

        Raises:
            NanLoss: A loss of training is not finite.
        """
        now = self._now()
        if self._callbacks_began:
            spent_s = now - self._callbacks_began
            self.pace.callback_s, self._callbacks_began = (
                (self.pace.callback_s or 0.0) + spent_s,
                0.0,
            )
        step, (steps, seconds_s) = self._last, self._count()
        self._beside_s = now - self._at
        self.pace.epoch(self._at, step, now)
        self._steps_of_epoch = step or self._steps_of_epoch
        metrics = _numbers(logs)
        self._marks.clear()
        self._kept.clear()
        self._read_memory()
        event: dict[str, Any] = {
            "event": "epoch",
            "epoch": epoch + 1,
            "epochs": self._about.epochs,
            "step": step,
            "steps": self._steps_of_epoch,
            "metrics": {name: _rounded(value) for name, value in metrics.items()},
            "seconds": round(now - self._began, 3),
            "beside_s": round(self._beside_s, 4),
            **self._rates(steps / seconds_s if steps and seconds_s else 0.0),
            **self._eta(epoch + 1, 0),
            "memory_bytes": self.memory_bytes,
        }
        self._tell(event)
        self._epoch, self._last, self._ended = epoch + 1, 0, now
        if self._base >= 0:
            self._base, self._base_s = 0, now
            self._marks.append((now, 0))
        check_losses(metrics, epoch + 1, step)

    def saved(self, seconds_s: float) -> None:
        """The training waited so long for a checkpoint."""
        self.pace.saved(seconds_s)

    def tests(self) -> None:
        """A validation begins."""
        self._test_began = self._now()

    def tested(self) -> None:
        """It has ended."""
        self.pace.validation_s += self._now() - self._test_began

    def end(self) -> None:
        """Give back what was kept, as the run is over, whatever ended it."""
        self._count()
        self._kept.clear()
        self._marks.clear()
        self._last, self._base, self._ended = 0, -1, self._now()
        self._read_memory()

    @property
    def seconds_s(self) -> float:
        """Seconds of this session, to the end of the last epoch or of the run."""
        return self._ended - self._began

    @property
    def samples_per_s(self) -> float:
        """The rate of this session without its first step and validation; 0.0: not known."""
        rate = self._trained_steps / self._trained_s if self._trained_s else 0.0
        return rate * self._about.samples_per_step

    def _look(self, now: float, done: int, logs: Mapping[str, Any]) -> None:
        """Do what is done at most twice a second."""
        self._due = now + EVENT_S
        self._ended = now
        if self._base < 0:
            self._base, self._base_s = done, now
        self._marks.append((now, done))
        self.pace.steps(now, done)
        while len(self._marks) > 2 and now - self._marks[1][0] >= WINDOW_S:
            self._marks.popleft()
        step = 0
        while self._kept and now - self._kept[0][0] >= READ_S:
            _, step, old = self._kept.popleft()
            self._read = _numbers(old)
        self._kept.append((now, done, logs))
        self._read_memory()
        event: dict[str, Any] = {
            **{name: _rounded(value) for name, value in self._read.items()},
            "event": "steps",
            "epoch": self._epoch + 1,
            "epochs": self._about.epochs,
            "step": done,
            "steps": self._steps_of_epoch,
            "seconds": round(now - self._began, 3),
            **self._rates(self._steps_per_s()),
            **self._eta(self._epoch, done),
            "memory_bytes": self.memory_bytes,
        }
        self._tell(event)
        if step:
            check_losses(self._read, self._epoch + 1, step)

    def _count(self) -> tuple[int, float]:
        """Add what was trained in this epoch, and return it: steps and seconds."""
        if not self._last or self._base < 0:
            return 0, 0.0
        steps, seconds_s = self._last - self._base, self._at - self._base_s
        self._trained_steps += steps
        self._trained_s += seconds_s
        return steps, seconds_s

    def _steps_per_s(self) -> float:
        (began, first), (ended, last) = self._marks[0], self._marks[-1]
        return (last - first) / (ended - began) if ended > began else 0.0

    def _rates(self, steps_per_s: float) -> dict[str, float]:
        about, found = self._about, {}
        if steps_per_s and about.samples_per_step:
            found["samples_per_s"] = _rounded(steps_per_s * about.samples_per_step)
        if steps_per_s and about.flops_per_step and about.peak_flops_per_s:
            found["mfu"] = round(steps_per_s * about.flops_per_step / about.peak_flops_per_s, 4)
        return {name: value for name, value in found.items() if value is not None}

    def _eta(self, epoch: int, done: int) -> dict[str, float]:
        """Return seconds to the end of the run, where the epoch's steps and a pace are known."""
        trained_s, steps = self._trained_s, self._trained_steps
        if self._marks:
            trained_s += self._marks[-1][0] - self._base_s
            steps += self._marks[-1][1] - self._base
        epochs = self._about.epochs - epoch
        if not (self._steps_of_epoch and steps > 0 and trained_s > 0):
            return {}
        left = max(0, epochs * self._steps_of_epoch - done)
        return {"eta_s": round(left * trained_s / steps + epochs * self._beside_s, 1)}

    def _read_memory(self) -> None:
        if self._memory is not None:
            self.memory_bytes, self.memory_kind = self._memory()

    def _tell(self, event: dict[str, Any]) -> None:
        self._progress(json.dumps(event, allow_nan=False))


def is_loss(name: str) -> bool:
    """Return whether a name of Keras' logs is a loss of training: ``loss``, ``decoder_loss``."""
    return (name == "loss" or name.endswith("_loss")) and not name.startswith("val_")


def check_losses(logs: Mapping[str, Any], epoch: int, step: int) -> None:
    """Raise ``NanLoss`` where a loss of training in Keras' logs is not finite.

    Args:
        logs: Tensors are waited for.
        epoch: Counted from 1.
        step: Steps of that epoch that are done.
    """
    for name, value in _numbers(logs).items():
        if is_loss(name) and not math.isfinite(value):
            raise NanLoss(name, value, epoch=epoch, step=step)


def _numbers(logs: Mapping[str, Any]) -> dict[str, float]:
    """Return the logs that are one number each."""
    found = {}
    for name, value in logs.items():
        try:
            found[str(name)] = float(value)
        except (TypeError, ValueError):
            continue  # a custom train_step may return anything
    return found


def _rounded(value: float) -> float | None:
    """Return a number as JSON has it: what is not finite is null."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPlan:
    """How it is trained, and who is told."""

    recipe: Recipe
    settings: RunSettings
    watch: Watch
    progress: Callable[[str], None]
    flops_per_step: float = 0.0
    peak_flops_per_s: float = 0.0
