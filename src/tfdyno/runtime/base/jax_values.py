"""Values of Keras' variables on JAX, whole: put together from all devices, and set on all of them.

With several processes reading is a joint operation where a value is split between them: every one
has to do it at the same step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import DType, Instance, Value, Variable

Array = np.ndarray[Any, Any]


class Whole:
    """A variable as checkpoints read and set it.

    Attributes:
        is_joint: Whether all processes have to read it together.
    """

    def __init__(self, variable: Variable) -> None:
        """Take a Keras variable on the JAX backend."""
        self._variable = variable
        self.shape = tuple(variable.shape)
        self.dtype = np.dtype(jax.numpy.dtype(variable.dtype))
        self.is_joint = True

    def read_value(self) -> Array:
        """Return all of it, on the host."""
        return whole(self._variable.value)

    def assign(self, value: Array) -> None:
        """Give every device its part."""
        put(self._variable, value)


def whole(value: Value) -> Array:
    """Return all of an array on the host, whatever device or process holds which part."""
    if not isinstance(value, jax.Array) or value.is_fully_addressable:
        return np.asarray(value)
    if value.is_fully_replicated:
        return np.asarray(value.addressable_data(0))
    return np.asarray(multihost_utils.process_allgather(value, tiled=True))


def put(variable: Variable, value: Array) -> None:
    """Set a Keras variable; each process needs the whole value."""
    layout = getattr(variable, "_layout", None)
    sharding = getattr(layout, "backend_layout", layout)
    if sharding is None:
        variable.assign(value)
    else:
        host = np.asarray(value, jax.numpy.dtype(variable.dtype))
        variable._value = spread(host, sharding)


@jax.jit
def sums_of(values: list[Any]) -> Value:
    """Return the sum of each array, as one array of float32 that every process has."""
    return jax.numpy.stack([jax.numpy.sum(value).astype("float32") for value in values])


def spread(value: Array, sharding: Value) -> Value:
    """Return an array over all devices, of which each process gives the parts of its own."""
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def read_whole() -> AbstractContextManager[None]:
    """Let ``model.save``, ``get_weights`` and the like read variables that processes share.

    JAX alone refuses to give a value of which another process holds a part.
    """
    import keras

    kind = keras.Variable
    original = kind.__array__

    def read(self: Instance, dtype: DType = None, copy: bool | None = None) -> Array:
        value = self.value
        if not isinstance(value, jax.Array) or isinstance(value, jax.core.Tracer):
            return np.asarray(original(self, dtype))
        found = np.asarray(whole(value), dtype)
        return found.copy() if copy else found

    return replaced((kind, "__array__", read))
