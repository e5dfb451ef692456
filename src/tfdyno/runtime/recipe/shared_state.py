"""Writes to Keras' variables that several workers make at the same moment.

Keras reads a variable, adds and writes it, so that of two additions at once one is lost. Here
counters are added to in one operation where the variable lies, and metrics and random states
change in a copy, of which the difference is added afterwards.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.runtime.base.keras_internals import all_layers, stateless_scope
from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Instance, Model, Value, Variable


SEED_STRIDE = 0x9E3779B9
"""Golden ratio of 2^32: keeps the seeds of neighbouring replicas, or workers, apart."""


class Apart(keras.StatelessScope):
    """Writes go to the variables at once, but for those that are given: they change in a copy."""

    def __init__(self, mapping: Sequence[tuple[Any, Any]]) -> None:
        """Take the variables that change apart, each with the value that it begins with."""
        super().__init__(state_mapping=mapping, collect_losses=True)
        self._before = list(mapping)
        self._written: set[int] = set()

    def get_current_value(self, variable: Variable) -> Value:
        """Return the copy, or the variable itself (regularizers ask for all of them here)."""
        found = self.state_mapping.get(id(variable))
        return variable._value if found is None else found

    def add_update(self, update: tuple[Any, Any]) -> None:
        """Take a write of Keras."""
        variable, value = update
        if id(variable) in self.state_mapping:
            self.state_mapping[id(variable)] = value
            self._written.add(id(variable))
        else:
            variable._direct_assign(value)

    def add_differences(self) -> None:
        """Add to each variable what its copy has gained, in one operation where it lies."""
        for variable, before in self._before:
            if id(variable) in self._written:
                after = tf.convert_to_tensor(self.state_mapping[id(variable)])
                variable._value.assign_add(tf.cast(after, before.dtype) - before)


def added_at_once() -> AbstractContextManager[None]:
    """Let ``assign_add`` and ``assign_sub`` in an ``Apart`` be one operation each."""
    kind, names = keras.Variable, ("assign_add", "assign_sub")
    plain = {name: getattr(kind, name) for name in names}

    def in_one(name: str) -> Callable[[Any, Any], Any]:
        @functools.wraps(plain[name])
        def at_once(self: Instance, value: Value) -> Value:
            scope = stateless_scope()
            # No scope: a thread of a replica within the step, as LossScaleOptimizer begins one.
            if scope is not None and (
                not isinstance(scope, Apart) or id(self) in scope.state_mapping
            ):
                return plain[name](self, value)
            memory = self._value
            getattr(memory, name)(tf.cast(tf.convert_to_tensor(value), memory.dtype))
            return self.value

        return at_once

    return replaced(*((kind, name, in_one(name)) for name in names))


def metric_variables(model: Model) -> list[Any]:
    """Return the states of a model's metrics that are sums over workers, as Keras' own are."""
    found = {id(v): v for v in model.metrics_variables}
    found |= {id(v): v for metric in model.metrics for v in metric.variables}
    return [v for v in found.values() if v.aggregation == "sum"]


def seed_states(model: Model) -> list[Any]:
    """Return the states of all random layers: a seed and how often it was drawn from."""
    found = [
        generator.state
        for layer in all_layers(model)
        for generator in getattr(layer, "_seed_generators", ())
        if isinstance(generator, keras.random.SeedGenerator)
    ]
    return list({id(v): v for v in found}.values())
