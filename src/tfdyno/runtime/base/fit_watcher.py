"""The callback of those who watch Keras' ``fit`` without slowing it down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Instance, Logs


def _nothing(self: Instance, batch: int, logs: Logs = None) -> None:
    """Do nothing, for each step and callback; Keras' own way to do nothing calls twice."""


_nothing._is_default = True  # type: ignore[attr-defined]  # as Keras marks what nobody has written


class FitWatcher(keras.callbacks.Callback):
    """Does nothing at a batch: else Keras reads the loss from the device after each of them.

    What watches the steps is ``recipe.functions.watch_calls``.

    Attributes:
        position: Steps of this epoch that have ended.
    """

    on_train_batch_begin = on_train_batch_end = _nothing

    def __init__(self, **moments: Callable[..., None]) -> None:
        """Take what Keras shall call, by its own names: ``on_epoch_end``."""
        super().__init__()
        self.__dict__.update(moments)
        self.position = 0

    def count_steps(self, most: int, total: int | None) -> int:
        """Steps of a call that has ended: the last one of an epoch may hold fewer.

        Args:
            most: That a call holds.
            total: Steps of an epoch; None or 0: not known.
        """
        steps = min(most, total - self.position) if total else most
        self.position += steps
        return max(1, steps)
