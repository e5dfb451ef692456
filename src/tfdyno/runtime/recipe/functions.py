"""What Keras' ``fit`` calls during a training: the recipe's functions, and callbacks around."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import keras

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import DataIterator, Instance, Logs, Model, Value
    from tfdyno.runtime.recipe.composed_step import ComposedStep


class Moments(Protocol):
    """What a training does when Keras tells."""

    def epoch_begin(self, epoch: int) -> None:
        """Before the user's callbacks."""

    def test_begin(self) -> None:
        """Before the user's callbacks."""

    def test_end(self) -> None:
        """After the user's callbacks."""

    def train_begin(self) -> None:
        """After the user's callbacks."""

    def epoch_ends(self) -> None:
        """Before the user's callbacks."""

    def epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """After the user's callbacks."""


def _nothing(self: Instance, batch: int, logs: Logs = None) -> None:
    """Called by Keras for each step and each callback; its own way to do nothing calls twice."""


_nothing._is_default = True  # type: ignore[attr-defined]  # as Keras marks what nobody has written


class First(keras.callbacks.Callback):
    """In front of the user's callbacks: knows the epoch before they do."""

    on_train_batch_begin = on_train_batch_end = _nothing

    def __init__(self, moments: Moments) -> None:
        """Take whom to tell."""
        super().__init__()
        self.moments = moments

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

    on_train_batch_begin = on_train_batch_end = _nothing

    def __init__(self, moments: Moments) -> None:
        """Take whom to tell."""
        super().__init__()
        self.moments = moments

    def on_train_begin(self, logs: Logs = None) -> None:
        """Called by Keras."""
        self.moments.train_begin()

    def on_test_end(self, logs: Logs = None) -> None:
        """Called by Keras."""
        self.moments.test_end()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        self.moments.epoch_end(epoch, logs or {})


@contextlib.contextmanager
def functions_of(
    model: Model,
    composed: Callable[[], ComposedStep | None],
    *,
    is_composed: bool,
    around_train: Callable[[Any], Any],
    after_train: Callable[[Any], None],
    before_test: Callable[[], None],
) -> Iterator[None]:
    """Let Keras call other functions for a step of this model, until the block ends.

    Args:
        model: A compiled Keras model.
        composed: Gives the step of a strategy, once it is built; None: Keras' own stays.
        is_composed: Whether there will be one.
        around_train: Makes the train function that is called of the one that trains.
        after_train: Takes the logs of each call of the train function.
        before_test: Called before each call of the test function.
    """
    make = {"train": model.make_train_function, "test": model.make_test_function}
    around = {"train": partial(_followed, by=after_train), "test": partial(_led, by=before_test)}

    def maker(kind: str) -> Value:
        name = f"{kind}_function"

        def made(force: bool = False) -> None:
            if getattr(getattr(model, name), "is_tfdynos", False) and not force:
                return
            if step := composed():
                run = getattr(step, name)()
            else:
                make[kind](force)
                run = getattr(model, name)
            function = around[kind](around_train(run) if kind == "train" else run)
            function.is_tfdynos = True
            setattr(model, name, function)

        return made

    replaced = {f"make_{kind}_function": maker(kind) for kind in make}
    of_logs = model._get_metrics_result_or_logs
    # An epoch that an earlier session had trained to its end has no logs here.
    replaced["_get_metrics_result_or_logs"] = lambda logs: of_logs(
        logs or model.get_metrics_result()
    )
    if is_composed:  # it is built already, and Keras would take a batch of the data for that
        replaced["_maybe_symbolic_build"] = lambda **_given: None
    for name, function in replaced.items():
        setattr(model, name, function)
    try:
        yield
    finally:
        for name in replaced:
            delattr(model, name)
        model.train_function = model.test_function = None


def _followed(run: Value, by: Callable[[Any], None]) -> Value:
    def train(iterator: DataIterator) -> Value:
        logs = run(iterator)
        by(logs)
        return logs

    return train


def _led(run: Value, by: Callable[[], None]) -> Value:
    def test(iterator: DataIterator) -> Value:
        by()
        return run(iterator)

    return test
