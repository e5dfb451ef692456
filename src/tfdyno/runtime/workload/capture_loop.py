"""Find the step of a hand-written training loop: the ``tf.function`` that takes gradients.

The script runs as it is. The first function that it calls for the second time and inside which a
``tf.GradientTape`` was asked for gradients is the step; the script is then stopped. One step is
run for real, on the CPU, because it may create variables.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfdyno.core.base.untyped import Dataset, Function, Instance, Value


class LoopCaptured(BaseException):
    """Ends the user's script: the step was found. Not an ``Exception``, so no script catches it."""

    def __init__(
        self,
        function: Function,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
    ) -> None:
        """Keep the ``tf.function`` and what it was called with."""
        super().__init__("step captured")
        self.function, self.arguments, self.named = function, arguments, named


class _NoStep(BaseException):
    """The script trains, but not by steps that can be traced; ends the script as well."""

    def __init__(self, reason: UsageError) -> None:
        super().__init__(str(reason))
        self.reason = reason


INSIDE = UsageError(
    "the loop over the dataset is inside the tf.function",
    why="it is one program for a whole epoch, not a step",
    remedy="move what is done with one batch into a tf.function of its own",
)


EAGER = UsageError("the loop updates weights outside every tf.function")


class LoopWatch:
    """What the script did with gradients so far."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.active: list[int] = []
        self.with_dataset: set[int] = set()
        self.with_gradient: set[int] = set()
        self.calls: dict[int, int] = {}
        self.eager_gradients = 0
        """Of weights, outside every tf.function."""

    def called(
        self, function: Function, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> None:
        """Note a call of a ``tf.function``; raises ``LoopCaptured`` at the second of the step."""
        key = id(function.python_function)
        self.calls[key] = self.calls.get(key, 0) + 1
        if key in self.with_gradient and not self.active:
            raise LoopCaptured(function, arguments, named)
        if any(isinstance(value, tf.data.Dataset) for value in (*arguments, *named.values())):
            self.with_dataset.add(key)

    def gradient(self, sources: Dataset) -> None:
        """Note that a tape was asked for gradients; ends the script where there can be no step.

        One gradient of weights outside a function may be a look at them; a second is a loop.
        """
        if self.with_dataset.intersection(self.active):
            raise _NoStep(INSIDE)
        if self.active:
            self.with_gradient.update(self.active)
        elif tf.executing_eagerly() and _has_weights(sources):
            if self.eager_gradients:
                raise _NoStep(EAGER)
            self.eager_gradients += 1

    def update(self) -> None:
        """Note that an optimizer is about to move weights; ends the script where it trains."""
        if self.eager_gradients and not self.active and tf.executing_eagerly():
            raise _NoStep(EAGER)


def _has_weights(sources: Dataset) -> bool:
    return any(hasattr(one, "assign") for one in tf.nest.flatten(sources))


@contextlib.contextmanager
def watching(watch: LoopWatch) -> Iterator[None]:
    """Watch functions, tapes and strategies while the script runs.

    Raises:
        UsageError: The loop over the data is inside the function that takes gradients, or a
            strategy runs on several devices.
    """
    function_type, tape_type = type(tf.function(lambda: None)), tf.GradientTape
    strategy_type, optimizer_type = tf.distribute.Strategy, tf.keras.optimizers.Optimizer
    # In Keras 3 apply_gradients is one way to apply; Keras 2 has no other.
    applying = "apply" if hasattr(optimizer_type, "apply") else "apply_gradients"
    update = getattr(optimizer_type, applying)
    call, gradient, run = function_type.__call__, tape_type.gradient, strategy_type.run

    def watched_call(self: Instance, *arguments: Any, **named: Any) -> Value:
        watch.called(self, arguments, named)
        watch.active.append(id(self.python_function))
        try:
            return call(self, *arguments, **named)
        finally:
            watch.active.pop()

    def watched_gradient(
        self: Instance, target: Value, sources: Dataset, *more: Any, **named: Any
    ) -> Value:
        watch.gradient(sources)
        return gradient(self, target, sources, *more, **named)

    def watched_update(self: Instance, *arguments: Any, **named: Any) -> Value:
        watch.update()
        return update(self, *arguments, **named)

    def watched_run(self: Instance, *arguments: Any, **named: Any) -> Value:
        _check_replicas(self.num_replicas_in_sync)
        return run(self, *arguments, **named)

    changes = (
        (function_type, "__call__", watched_call), (tape_type, "gradient", watched_gradient),
        (strategy_type, "run", watched_run), (optimizer_type, applying, watched_update),
    )  # fmt: skip
    try:
        with replaced(*changes):
            yield
    except _NoStep as end:
        raise end.reason from None


def _check_replicas(count: int) -> None:
    if count > 1:
        what = f"the loop runs on {count} devices by a tf.distribute strategy"
        why = "the step of a loop of your own is traced for one device"
        remedy = f"run it on one device and ask for --replicas {count}"
        raise _NoStep(UsageError(what, why=why, remedy=remedy))
