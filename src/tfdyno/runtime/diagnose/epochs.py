"""Epochs of a training that goes on until enough was seen, as the user's callbacks know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.fit_watcher import FitWatcher

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Logs
    from tfdyno.runtime.diagnose.clock import StepTimes


class Epochs(FitWatcher):
    """Behind the user's callbacks: counts the steps of each epoch, and keeps the training going."""

    def __init__(self, times: StepTimes, *, first: int = 0, last: int = 1) -> None:
        """Begin before any epoch.

        Args:
            times: The clock, which is told of each epoch.
            first: The number of the first one, as ``fit`` was given it.
            last: The number behind the last one, likewise.
        """
        super().__init__()
        self.times, self.first, self.last = times, first, last
        self.longest = 0
        """Steps of the longest one before."""
        self.asked_at = 0
        """Steps after which a callback first asked for the end; 0: none did."""
        self._has_begun = self._has_ended = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done otherwise than the training would."""
        if not self.asked_at:
            return ()
        steps = f"{self.asked_at:,} step{'s' * (self.asked_at != 1)}"
        return (f"A callback asked for the end after {steps}; the training was kept going.",)

    @property
    def count(self) -> int:
        """The number of the user's own epochs."""
        return max(0, self.last - self.first)

    def number(self, epoch: int) -> int:
        """Return the user's own epochs again and again: what looks up their number finds it."""
        return self.first + (epoch - self.first) % self.count if self.count else epoch

    def set_params(self, params: dict[str, Any]) -> None:
        """Take the ``params`` that Keras gives to all callbacks."""
        super().set_params(params)
        if params and "epochs" in params:
            params["epochs"] = self.last

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Begin an epoch. Data that gave nothing in the epoch before has ended."""
        if self._has_begun and not self.position:
            self._has_ended = self.model.stop_training = True
        self._has_begun = True
        self.longest, self.position = max(self.longest, self.position), 0
        self.times.epoch()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """End an epoch. Who stops early has seen data that were repeated for the look."""
        self.keep_going()

    def keep_going(self) -> None:
        """Put off the end that a callback of the user's asks for, and note it."""
        if self.model.stop_training and not (self.times.done or self._has_ended):
            self.model.stop_training = False
            self.asked_at = self.asked_at or self.times.step_count
