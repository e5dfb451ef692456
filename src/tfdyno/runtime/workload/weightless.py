"""Keras variables that have a shape and a type but take no memory.

A variable made from an initialiser keeps the initialiser and runs it only when somebody reads its
value outside a trace. Models of any size are then built in the time that Python needs for it.

``quantize`` of a layer reads each kernel, computes new ones and collects garbage: of a model with
hundreds of layers that are minutes for values that nobody needs. It is traced here, not run.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.keras_internals import (
    downloads_changed,
    int4_packing_changed,
    numpy_quantizers_changed,
    stateless_scope,
    variables_left_empty,
)
from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Instance, Value


@contextlib.contextmanager
def weightless() -> Iterator[None]:
    """Give variables created inside no value until it is read; loading weights does nothing."""
    import keras

    original = keras.Variable.__init__

    def deferred(self: Instance, initializer: Value, *args: Any, **options: Any) -> None:
        if callable(initializer) or isinstance(initializer, str):
            with keras.StatelessScope(initialize_variables=False):
                original(self, initializer, *args, **options)
        else:
            original(self, initializer, *args, **options)

    def load_weights(self: Instance, *_args: Any, **_options: Any) -> None:
        """Keep the weights without values."""

    with (
        variables_left_empty(),
        downloads_changed(_without_weights),
        numpy_quantizers_changed(_on_tensors),
        int4_packing_changed(_packed),
        replaced(
            (keras.Variable, "__init__", deferred),
            (keras.Model, "load_weights", load_weights),
            *_traced_quantizing(),
        ),
    ):
        yield


_TRACEABLE = ("int8", "int4", "float8")
"""Modes of ``quantize`` that look at no data."""


def _traced_quantizing() -> list[tuple[Any, str, Any]]:
    """Quantizing makes the variables and sets the layers as ever; their values stay unknown."""
    import keras

    def changed(owner: type) -> tuple[Any, str, Any]:
        original = vars(owner)["quantize"]

        def quantize(self: Instance, mode: Value = None, *args: Any, **options: Any) -> None:
            named = mode or getattr(options.get("config"), "mode", "")
            if named in _TRACEABLE and stateless_scope() is None:
                _trace(lambda: original(self, mode, *args, **options))
            else:
                with replaced((gc, "collect", int)):
                    original(self, mode, *args, **options)

        return owner, "quantize", functools.wraps(original)(quantize)

    owners = [keras.Model, *(one for one in vars(keras.layers).values() if _quantizes(one))]
    return [changed(owner) for owner in owners]


def _quantizes(one: object) -> bool:
    import keras

    return isinstance(one, type) and issubclass(one, keras.Layer) and "quantize" in vars(one)


def _on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as it is, but with symbols where values are symbols."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def quantized(*args: Any, **options: Any) -> Value:
        given = signature.bind(*args, **options)
        if stateless_scope() is not None:
            given.arguments["to_numpy"] = False
        return function(*given.args, **given.kwargs)

    return quantized


def _packed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as it is, but for a symbol one of the size that its bytes have."""
    import keras

    @functools.wraps(function)
    def packed(arr: Value, axis: int = 0, dtype: str = "int8") -> Value:
        if stateless_scope() is None:
            return function(arr, axis, dtype)
        sizes = list(arr.shape)
        whole, sizes[axis] = sizes[axis], (sizes[axis] + 1) // 2
        return keras.ops.zeros(sizes, dtype), tuple(sizes), whole

    return packed


def _trace(function: Callable[[], None]) -> None:
    """Run a function whose tensors are symbols; what it assigns to variables is forgotten."""
    import jax
    import keras

    with keras.StatelessScope(initialize_variables=False), replaced((gc, "collect", int)):
        jax.eval_shape(function)


def _without_weights(fetch: Callable[..., Any]) -> Callable[..., Any]:
    """Weight files are neither downloaded nor read: their values do not change a step's cost."""

    def get_file(fname: Value = None, origin: Value = None, *args: Any, **options: Any) -> Value:
        if str(origin or fname).endswith((".h5", ".weights.h5", ".keras")):
            return str(fname or origin)
        return fetch(fname, origin, *args, **options)

    return get_file
