"""Norms of the gradients and sizes of the activations of every layer, every so many steps.

They come from a forward and backward pass of their own on the batch that is trained next, before
it is trained: the train step stays as it is, and a step in between costs nothing. Where they are
due, a step costs about twice as much, and the first time one more trace.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.runtime.base.step_hooks import (
    Call,
    Recorder,
    Update,
    WithoutEffect,
    held_updates,
    recorded_calls,
)
from tfdyno.runtime.base.tensorflow_internals import is_control_flow
from tfdyno.runtime.nan.look import as_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import (
        Batch,
        DataIterator,
        Model,
        Optimizer,
        Strategy,
        Tensor,
        Value,
        Variable,
    )

GRADIENT, ACTIVATION = "gradient_norm", "activation_rms"
ALL = "all layers"


class Norms:
    """Looks at a model while it trains and writes scalars.

    norms = Norms(model, board.scalars, every=100, steps_done=lambda: steps)
    model.make_train_function()
    model.train_function = norms.watching(model.train_function)
    """

    def __init__(
        self,
        model: Model,
        write: Callable[[dict[str, float], int], None] | None,
        *,
        every: int,
        steps_done: Callable[[], int],
    ) -> None:
        """Prepare.

        Args:
            model: Compiled and built.
            write: Takes the scalars and the step; None: a worker that takes part, no more.
            every: Steps from one look to the next.
            steps_done: How many steps were done before the present call, those of earlier
                sittings included.
        """
        self.model, self._write, self.every = model, write, every
        self._steps_done = steps_done
        self._due: int | None = None
        self._names: list[list[str]] = [[], []]
        self._variables: list[str] = []
        self._function = tf.function(self._computed, autograph=False, reduce_retracing=True)

    def watching(self, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Make a train function that also looks where it is due; takes the same batches."""
        several = int(self.model.steps_per_execution)

        def watched(iterator: DataIterator) -> Value:
            step = self._steps_done()
            if self._due is None:  # a run that goes on looks at the same steps
                self._due = -(-step // self.every) * self.every
            if step + several <= self._due:
                return run(iterator)
            batches = _next(iterator, several)
            self._due = (step + several - 1) // self.every * self.every + self.every
            self.look(batches[0], step)
            return run(iter(batches))

        return watched

    def look(self, batch: Batch, step: int) -> dict[str, float]:
        """Compute the norms of a batch as ``fit`` takes it, and write them; returns them too."""
        norms, sizes = self._function(tf.nest.map_structure(_without_optional, batch))
        found = dict(zip(self._names[0], map(float, norms), strict=True))
        found |= dict(zip(self._names[1], map(float, sizes), strict=True))
        if self._write is not None:
            self._write(found, step)
        return found

    def _computed(self, batch: Batch) -> tuple[list[Any], list[Any]]:
        """Return norms of gradients and sizes of activations, in the order of ``_names``."""
        strategy = self.model.distribute_strategy
        updates: list[Update] = []
        with recorded_calls() as recorder, held_updates(updates):
            gradients, squares = strategy.run(
                lambda part: self._replica(part, recorder, updates), args=(batch,)
            )
        summed = [_reduced(strategy, tf.distribute.ReduceOp.SUM, part) for part in gradients]
        means = [_reduced(strategy, tf.distribute.ReduceOp.MEAN, part) for part in squares]
        layers: dict[str, list[Any]] = {}
        for name, gradient in zip(self._variables, summed, strict=True):
            layers.setdefault(name, []).append(tf.reduce_sum(tf.square(gradient)))
        totals = [tf.add_n(parts) for parts in layers.values()]
        if totals:
            layers[ALL], totals = [], [*totals, tf.add_n(totals)]
        self._names[0] = [f"{GRADIENT}/{name}" for name in layers]
        return [tf.sqrt(total) for total in totals], [tf.sqrt(mean) for mean in means]

    def _replica(
        self, batch: Batch, recorder: Recorder, updates: list[Update]
    ) -> tuple[list[Any], list[Any]]:  # fmt: skip
        """Return one replica's true gradients, and mean squares of what its layers gave."""
        recorder.forget()
        with WithoutEffect():
            self.model.train_step(batch)
            mine = [update for update in updates if update.thread == threading.get_ident()]
            pairs = [
                (variable, tf.cast(tf.convert_to_tensor(gradient), tf.float32) / scale)
                for update in mine
                for scale in [_scale(update.optimizer)]
                for variable, gradient in zip(update.variables, update.gradients, strict=False)
                if gradient is not None
            ]
        self._variables = [self._short(_layer_of(variable)) for variable, _ in pairs]
        layers: dict[str, list[Any]] = {}
        for call in _innermost(recorder.calls):
            squares = [tf.reduce_mean(tf.square(tf.cast(t, tf.float32))) for t in call.outputs]
            name = self._short(call.name)
            layers.setdefault(name, []).append(tf.add_n(squares) / len(squares))
        self._names[1] = [f"{ACTIVATION}/{name}" for name in layers]
        means = [tf.add_n(parts) / len(parts) for parts in layers.values()]
        return [gradient for _, gradient in pairs], means

    def _short(self, path: str) -> str:
        return path.removeprefix(f"{self.model.name}/")


def _next(iterator: DataIterator, count: int) -> list[Any]:
    """Take so many batches, fewer at the end; raises ``StopIteration`` without any."""
    batches: list[Any] = []
    try:
        for _ in range(count):
            batches.append(next(iterator))
    except (StopIteration, tf.errors.OutOfRangeError):
        if not batches:
            raise StopIteration from None
    return batches


def _innermost(calls: list[Call]) -> list[Call]:
    """Return layers' calls that call no other, or others inside a loop, where they are unseen.

    Calls in other graphs, where a function of the user or a trial of remat was traced, count not.
    """
    graph = tf.compat.v1.get_default_graph()
    layers = [c for c in calls if c.ended >= 0 and isinstance(c.owner, keras.Layer)]
    seen: list[Call] = []
    hidden: list[Call] = []
    for call in layers:
        graphs = [tensor.graph for tensor in call.outputs if hasattr(tensor, "graph")]
        if all(each is graph for each in graphs):
            seen.append(call)
        elif any(map(is_control_flow, graphs)):
            hidden.append(call)
    holders = [[c for c in seen if c.encloses(inner)] for inner in hidden]
    whole = [max(around, key=lambda call: call.begun) for around in holders if around]
    found = [c for c in seen if c in whole or not any(c.encloses(other) for other in seen)]
    return [c for c in found if c.outputs and not any(call.encloses(c) for call in whole)]


def _reduced(strategy: Strategy, how: Value, value: Value) -> Value:
    return strategy.reduce(how, value, axis=None)


def _scale(optimizer: Optimizer) -> Value:
    """Return what the optimizer divides gradients by before it applies them."""
    if hasattr(optimizer, "inner_optimizer"):
        scale = optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale
        return tf.cast(tf.convert_to_tensor(scale), tf.float32)
    return float(getattr(optimizer, "loss_scale_factor", None) or 1.0)


def _layer_of(variable: Variable) -> str:
    return str(variable.path).rpartition("/")[0] or str(variable.path)


def _without_optional(leaf: Tensor) -> Value:
    return leaf if isinstance(leaf, tf.distribute.DistributedValues) else as_tensor(leaf)
