"""One train step on one batch, run eagerly and without any effect, with all of it in view."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from tfdyno.process.failure import first_line
from tfdyno.runtime.base.step_hooks import (
    Call,
    Recorder,
    Update,
    WithoutEffect,
    floats,
    has_own_step,
    held_updates,
    recorded_calls,
    unscaled_losses,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Batch, Model, Structure, Tensor, Value, Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What can be said of one tensor of floats."""

    nan: int
    inf: int
    total: int
    first: tuple[int, ...]
    """Place of the first value that is not finite."""
    column: int | None
    """Last index of the values that are not finite, where all of them have the same."""
    low: float
    """The lowest of the values that are finite."""
    high: float
    dtype: str
    only_low: bool
    """Whether all values that are not finite are minus infinity, as a mask has them."""

    @property
    def is_finite(self) -> bool:
        """Whether all values are."""
        return not (self.nan or self.inf)

    @property
    def most(self) -> float:
        """The largest magnitude of the finite values."""
        return max(abs(self.low), abs(self.high))

    def __str__(self) -> str:
        """Write ``3 of 40 values are NaN``, or the range."""
        if self.is_finite:
            return f"between {self.low:.6g} and {self.high:.6g}"
        kinds = [f"{self.nan} NaN"] * bool(self.nan) + [f"{self.inf} infinite"] * bool(self.inf)
        return f"{' and '.join(kinds)} of {self.total} values"


@dataclass(slots=True, kw_only=True)
class NanInspection:
    """What a step computed."""

    calls: list[Call] = field(default_factory=list)
    predicted: Any = None
    """What the model returned; None with a ``train_step`` of its own."""
    loss: Any = None
    losses: dict[str, float] = field(default_factory=dict)
    """Metrics that are losses: one per output, where there are several."""
    added: list[Any] = field(default_factory=list)
    """Losses of regularizers and of ``add_loss``."""
    gradients: list[tuple[Any, Any]] = field(default_factory=list)
    """Variables with their gradients, in the order of the model."""
    flows: dict[int, Any] = field(default_factory=dict)
    """Gradients of the loss with respect to tensors, by ``id``."""
    own_step: bool = False
    problem: str = ""
    """Why the step could not be run to its end."""

    def keep_losses(self, model: Model) -> None:
        """Keep the losses of the forward pass that has just run, beside the one of the step."""
        self.added = list(model.losses)
        self.losses = {
            metric.name: float(metric.result())
            for metric in model.metrics
            if metric.name.endswith("_loss")
        }


def sight(tensor: Tensor) -> Sight:
    """Look at a tensor, an array or the values of ``IndexedSlices``."""
    array = np.asarray(getattr(tensor, "values", tensor))
    kind = str(getattr(getattr(tensor, "dtype", array.dtype), "name", array.dtype))
    wide = array.astype(np.float64)
    bad = ~np.isfinite(wide)
    good = wide[~bad]
    places = np.argwhere(bad)
    has_columns = bool(places.size) and wide.ndim > 1 and wide.shape[-1] > 1
    columns = set(places[:, -1].tolist()) if has_columns else set()
    return Sight(
        nan=int(np.isnan(wide).sum()),
        inf=int(np.isinf(wide).sum()),
        total=int(wide.size),
        first=tuple(int(part) for part in places[0]) if len(places) else (),
        column=columns.pop() if len(columns) == 1 else None,
        low=float(good.min()) if good.size else 0.0,
        high=float(good.max()) if good.size else 0.0,
        dtype=kind,
        only_low=bool(places.size) and bool(np.isneginf(wide[bad]).all()),
    )


def is_finite(tensor: Tensor) -> bool:
    """Return whether all values are; what is not there is."""
    if tensor is None:
        return True
    return bool(tf.reduce_all(tf.math.is_finite(getattr(tensor, "values", tensor))))


def look(model: Model, batch: Batch) -> NanInspection:
    """Run a train step on a batch: no variable, optimizer or metric is changed.

    Args:
        model: Compiled and built.
        batch: What its ``train_step`` takes, for one replica.
    """
    found = NanInspection(own_step=has_own_step(model))
    with contextlib.ExitStack() as stack:
        for context in (_eagerly(), _as_replica(model), unscaled_losses(), WithoutEffect()):
            stack.enter_context(context)
        recorder = stack.enter_context(recorded_calls())
        try:
            model.reset_metrics()
            _run_of(found)(model, batch, recorder, found)
        except Exception as error:
            found.problem = f"the step failed: {type(error).__name__}: {first_line(error)}"
        found.calls = found.calls or _computed(recorder)
    return found


def _run_of(found: NanInspection) -> Callable[..., None]:
    """Return what runs the step on Keras' backend."""
    if keras.backend.backend() == "jax":
        from tfdyno.runtime.nan.look_jax import run_step

        return run_step
    return _own_step if found.own_step else _usual_step


def _usual_step(model: Model, batch: Batch, recorder: Recorder, found: NanInspection) -> None:
    """Run forward and backward as Keras' own ``train_step`` does."""
    x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        takes = getattr(model, "_call_has_training_arg", True)
        found.predicted = model(x, training=True) if takes else model(x)
        found.calls = _computed(recorder)
        compute = getattr(model, "_compute_loss", model.compute_loss)
        found.loss = compute(
            x=x, y=y, y_pred=found.predicted, sample_weight=weight, training=True
        )  # fmt: skip
    recorder.active = False
    found.keep_losses(model)
    tensors = {id(t): t for call in found.calls for t in (*call.inputs, *call.outputs)}
    gradients = tape.gradient(found.loss, [*variables, *tensors.values()])
    found.gradients = list(zip(variables, gradients, strict=False))
    flows = gradients[len(variables) :]
    found.flows = {key: flow for key, flow in zip(tensors, flows, strict=True) if flow is not None}


def _own_step(model: Model, batch: Batch, recorder: Recorder, found: NanInspection) -> None:
    """Run the user's ``train_step``: what it calls and gives to optimizers is seen."""
    updates: list[Update] = []
    with held_updates(updates):
        logs = model.train_step(batch)
    recorder.active = False
    found.losses = {
        str(name): float(value)
        for name, value in (logs.items() if isinstance(logs, dict) else ())
        if "loss" in str(name) and not np.ndim(value)
    }
    for update in updates:
        found.gradients += list(zip(update.variables, update.gradients, strict=False))


def _computed(recorder: Recorder) -> list[Call]:
    """Return calls with values: those that were only traced, as a trial of remat is, have none."""
    if keras.backend.backend() == "jax":
        from tfdyno.runtime.nan.look_jax import computed

        return computed(recorder.calls)
    return [
        call
        for call in recorder.calls
        if all(hasattr(tensor, "numpy") for tensor in (*call.inputs, *call.outputs))
    ]


@contextlib.contextmanager
def _eagerly() -> Iterator[None]:
    """Run functions that user code made with ``tf.function`` operation by operation."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def _as_replica(model: Model) -> contextlib.AbstractContextManager[Any]:
    """Take, under a strategy, the first replica's view: its copies of the variables."""
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is None or int(strategy.num_replicas_in_sync) == 1:
        return contextlib.nullcontext()
    return tf.distribute.ReplicaContext(strategy, replica_id_in_sync_group=0)


def value_of(variable: Variable) -> Value:
    """Return a variable's present value as a tensor: under a strategy that of the first copy."""
    value = getattr(variable, "_value", variable)
    return tf.convert_to_tensor(getattr(value, "values", (value,))[0])


def not_finite_inside(call: Call) -> bool:
    """Return whether a call made values that are not finite from values that are."""
    return not all(map(is_finite, call.outputs)) and all(map(is_finite, call.inputs))


def named(structure: Structure, name: str) -> list[tuple[str, Any]]:
    """Return the tensors of floats in the data of a batch with names: ``x['age']``, ``y[1]``."""
    if isinstance(structure, dict):
        return [pair for key in structure for pair in named(structure[key], f"{name}[{key!r}]")]
    if isinstance(structure, list | tuple):
        if len(structure) == 1:
            return named(structure[0], name)
        pairs = enumerate(structure)
        return [pair for key, part in pairs for pair in named(part, f"{name}[{key}]")]
    if structure is None or not (tf.is_tensor(structure) or hasattr(structure, "dtype")):
        return []
    return [(name, tensor) for tensor in floats(as_tensor(structure))]


def as_tensor(leaf: Tensor) -> Value:
    """Make an array a tensor; the empty ``tf.experimental.Optional`` of Keras' data is None."""
    if isinstance(leaf, tf.experimental.Optional):
        return None
    return leaf if tf.is_tensor(leaf) or leaf is None else tf.convert_to_tensor(leaf)


def parts(batch: Batch) -> list[Any]:
    """Return the batch of each replica, as tensors."""

    def is_spread(leaf: Tensor) -> bool:
        return isinstance(leaf, tf.distribute.DistributedValues)

    leaves = tf.nest.flatten(batch)
    count = max([len(leaf.values) for leaf in leaves if is_spread(leaf)], default=1)
    return [
        tf.nest.map_structure(
            lambda leaf, n=number: as_tensor(leaf.values[n] if is_spread(leaf) else leaf), batch
        )
        for number in range(count)
    ]
