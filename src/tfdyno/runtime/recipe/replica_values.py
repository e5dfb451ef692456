"""What the replicas of a step hand over: variables written, sums of their own, weighted values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.base.step_hooks import WithoutEffect

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Shape, Value, Variable


class Written(WithoutEffect):
    """Collects the variables that are written, with their last values."""

    def __init__(self, mapping: list[tuple[Any, Any]]) -> None:
        super().__init__(mapping)
        self.written: dict[int, Any] = {}

    def add_update(self, update: tuple[Any, Any]) -> None:
        """Take an update, as Keras calls it in place of a write."""
        super().add_update(update)
        self.written[id(update[0])] = update[0]


def is_averaged(variable: Variable) -> bool:
    """Return whether the replicas' values become one by their mean.

    Keras names no way for moving averages and lets those of the replicas drift apart: then a
    checkpoint, which holds one, is not what was trained.
    """
    return variable.aggregation == "mean" or (
        variable.aggregation == "none" and "float" in variable.dtype
    )


def own_sum(shape: Shape, number: int) -> Value:
    """Return a sum that each replica keeps for itself."""
    return tf.Variable(
        tf.zeros(shape),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
        name=f"accumulated_{number}",
    )


def key_of(variable: Variable) -> int:
    """Return what a Keras variable and TensorFlow's inside of it have in common."""
    return id(getattr(variable, "_value", variable))


def times(value: Value, factor: Value) -> Value:
    """Return a tensor, or rows of one, by a factor; 0 where the factor is 0, whatever the value."""
    if value is None:
        return None
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(times(value.values, factor), value.indices, value.dense_shape)
    return tf.math.multiply_no_nan(value, tf.cast(factor, value.dtype))
