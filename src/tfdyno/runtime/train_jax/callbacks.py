"""What Keras' ``fit`` calls during a training on JAX, before and behind the user's callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import keras

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Logs


class Moments(Protocol):
    """What a training does when Keras tells."""

    def built(self) -> None:
        """All weights are made; before the user's callbacks hear of the beginning."""

    def train_begin(self) -> None:
        """After the user's callbacks have heard of the beginning."""

    def epoch_begin(self, epoch: int) -> None:
        """Before the user's callbacks."""

    def ran(self, done: int, logs: Logs) -> None:
        """After a call of the train function and the user's callbacks."""

    def test_begin(self) -> None:
        """Before the user's callbacks."""

    def test_end(self) -> None:
        """After the user's callbacks."""

    def epoch_ends(self) -> None:
        """Before the user's callbacks."""

    def epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """After the user's callbacks."""


class First(keras.callbacks.Callback):
    """In front of the user's callbacks."""

    def __init__(self, moments: Moments) -> None:
        """Take whom to tell."""
        super().__init__()
        self.moments = moments

    def on_train_begin(self, logs: Logs = None) -> None:
        """Called by Keras."""
        self.moments.built()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Called by Keras."""
        self.moments.epoch_begin(epoch)

    def on_test_begin(self, logs: Logs = None) -> None:
        """Called by Keras."""
        self.moments.test_begin()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        self.moments.epoch_ends()


class Last(keras.callbacks.Callback):
    """Behind the user's callbacks: what they changed is in the checkpoint."""

    def __init__(self, moments: Moments) -> None:
        """Take whom to tell."""
        super().__init__()
        self.moments = moments

    def on_train_begin(self, logs: Logs = None) -> None:
        """Called by Keras."""
        self.moments.train_begin()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called by Keras with the number of the last step of a call, from 0."""
        self.moments.ran(batch + 1, logs)

    def on_test_end(self, logs: Logs = None) -> None:
        """Called by Keras."""
        self.moments.test_end()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        self.moments.epoch_end(epoch, dict(logs or {}))
