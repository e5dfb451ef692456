"""Looking into a train step of Keras while it runs or is traced, without changing its model.

The hooks are put on Keras' classes for as long as a ``with`` block lasts: so they also see layers
that a model makes or calls in ways of its own, and leave nothing behind on its objects.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Instance, Model, Structure, Tensor, Value, Variable

Operation = keras.Operation


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """A layer, or an operation of a functional model, that was called."""

    owner: Any
    inputs: list[Any]
    """Tensors of floats, before Keras casts them to the layer's precision."""
    outputs: list[Any] = field(default_factory=list)
    begun: int = 0
    """Place in the order in which calls began."""
    ended: int = -1
    """Place in the order in which calls ended; -1: it raised."""

    @property
    def name(self) -> str:
        """Path of the layer in its model."""
        return str(getattr(self.owner, "path", None) or self.owner.name)

    def encloses(self, other: Call) -> bool:
        """Return whether the other call was made within this one."""
        return self.begun < other.begun and other.ended < self.ended


@dataclass(slots=True, kw_only=True)
class Update:
    """Gradients that an optimizer was given."""

    optimizer: Any
    gradients: list[Any]
    variables: list[Any]
    thread: int
    """That asked for it: each replica of a strategy has its own."""


class WithoutEffect(keras.StatelessScope):
    """What is written to Keras' variables stays in here, and is gone with it.

    In Keras' own scope a variable that was not given has no value for regularizers.
    """

    def __init__(self, state_mapping: Value = None) -> None:
        """Begin with these values; losses that layers add are kept, or they would be lost."""
        super().__init__(state_mapping=state_mapping, collect_losses=True)

    def get_current_value(self, variable: Variable) -> Value:
        """Return what was written last, or what the variable holds."""
        value = super().get_current_value(variable)
        return getattr(variable, "_value", None) if value is None else value


class Recorder:
    """Calls by the thread that made them: each replica of a strategy has its own."""

    def __init__(self) -> None:
        self.active = True
        self._calls: dict[int, list[Call]] = {}
        self._ended: dict[int, int] = {}

    @property
    def calls(self) -> list[Call]:
        """The calls of this thread, in the order in which they began."""
        return self._calls.get(threading.get_ident(), [])

    def forget(self) -> None:
        """Begin anew in this thread."""
        self._calls[threading.get_ident()] = []

    def run(
        self, original: Callable[..., Any], owner: Value, args: Value, kwargs: Value
    ) -> Value:  # fmt: skip
        """Make a call and keep it, unless it only builds a functional model."""
        if not self.active or any(map(keras.utils.is_keras_tensor, _leaves((args, kwargs)))):
            return original(owner, *args, **kwargs)
        number = threading.get_ident()
        calls = self._calls.setdefault(number, [])
        call = Call(owner=owner, inputs=floats((args, kwargs)), begun=len(calls))
        calls.append(call)
        outputs = original(owner, *args, **kwargs)
        call.outputs = floats(outputs)
        call.ended = self._ended.get(number, 0)
        self._ended[number] = call.ended + 1
        return outputs


@contextlib.contextmanager
def recorded_calls() -> Iterator[Recorder]:
    """Keep every call of a layer and of an operation of a functional model."""
    recorder = Recorder()
    of_layer, of_operation = keras.Layer.__call__, Operation.__call__

    def call_layer(self: Instance, *args: Any, **kwargs: Any) -> Value:
        return recorder.run(of_layer, self, args, kwargs)

    def call_operation(self: Instance, *args: Any, **kwargs: Any) -> Value:
        if isinstance(self, keras.Layer):
            return of_operation(self, *args, **kwargs)  # kept above
        return recorder.run(of_operation, self, args, kwargs)

    calls = (keras.Layer, "__call__", call_layer), (Operation, "__call__", call_operation)
    with replaced(*calls):
        yield recorder


def held_updates(kept: list[Update]) -> AbstractContextManager[None]:
    """Keep the gradients that optimizers are given instead of applying them."""
    base = next(k for k in keras.optimizers.Optimizer.__mro__ if "apply" in vars(k))

    def hold(self: Instance, grads: Tensor, trainable_variables: Variable = None) -> None:
        variables = list(trainable_variables or self._trainable_variables)
        update = Update(
            optimizer=self, gradients=list(grads), variables=variables,
            thread=threading.get_ident(),
        )  # fmt: skip
        kept.append(update)

    return replaced(*((kind, "apply", hold) for kind in _with_apply(base)))


def unscaled_losses() -> AbstractContextManager[None]:
    """Let ``optimizer.scale_loss`` return the loss as it is: gradients are then the true ones."""
    base = next(k for k in keras.optimizers.Optimizer.__mro__ if "scale_loss" in vars(k))
    kinds = {base, keras.optimizers.LossScaleOptimizer}
    own = [kind for kind in kinds if "scale_loss" in vars(kind)]
    return replaced(*((kind, "scale_loss", lambda _self, loss: loss) for kind in own))


def floats(structure: Structure) -> list[Any]:
    """Return the tensors of floats in a structure; of sparse and ragged ones their values."""
    found = []
    for leaf in _leaves(structure):
        tensor = getattr(leaf, "flat_values", getattr(leaf, "values", leaf))
        if _is_of_floats(tensor):
            found.append(tensor)
    return found


def _is_of_floats(tensor: Tensor) -> bool:
    """Return whether it is a tensor of floats, of TensorFlow or of Keras' own backend."""
    if tf.is_tensor(tensor):
        return not callable(tensor) and bool(tensor.dtype.is_floating)
    return bool(keras.ops.is_tensor(tensor)) and "float" in str(tensor.dtype)


def has_own_step(model: Model) -> bool:
    """Return whether ``train_step`` is not Keras' own."""
    return type(model).train_step is not keras.Model.train_step or "train_step" in vars(model)


def _leaves(structure: Structure) -> list[Any]:
    return list(tf.nest.flatten(structure))


def _with_apply(base: type) -> list[Any]:
    """Return the class and those below it that have an ``apply`` of their own."""
    found, waiting = [], [base]
    while waiting:
        kind = waiting.pop()
        if "apply" in vars(kind) and kind not in found:
            found.append(kind)
        waiting += kind.__subclasses__()
    return found
