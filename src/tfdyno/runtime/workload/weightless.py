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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Instance, Value


@contextlib.contextmanager
def weightless() -> Iterator[None]:
    """Variables created inside have no value until it is read; loading weights does nothing."""
    import keras
    from keras.src.backend.common import variables as keras_variables

    original = keras.Variable.__init__

    def deferred(self: Instance, initializer: Value, *args: Any, **options: Any) -> None:
        if callable(initializer) or isinstance(initializer, str):
            with keras.StatelessScope(initialize_variables=False):
                original(self, initializer, *args, **options)
        else:
            original(self, initializer, *args, **options)

    def never() -> None:
        """Keras would fill the variables of a stateless scope here."""

    with _replaced(
        (keras.Variable, "__init__", deferred),
        (keras_variables, "initialize_all_variables", never),
        *_no_weight_files(),
        *_traced_quantizing(),
    ):
        yield


_TRACEABLE = ("int8", "float8")
"""Modes of ``quantize`` that look at no data and compute nothing in numpy."""


def _traced_quantizing() -> list[tuple[Any, str, Any]]:
    """Quantizing makes the variables and sets the layers as ever; their values stay unknown."""
    import keras
    from keras.src.quantizers import quantizers

    def changed(owner: type) -> tuple[Any, str, Any]:
        original = vars(owner)["quantize"]

        def quantize(self: Instance, mode: Value = None, *args: Any, **options: Any) -> None:
            named = mode or getattr(options.get("config"), "mode", "")
            if named in _TRACEABLE and not keras.src.backend.in_stateless_scope():
                _trace(lambda: original(self, mode, *args, **options))
            else:
                with _replaced((gc, "collect", int)):
                    original(self, mode, *args, **options)

        return owner, "quantize", functools.wraps(original)(quantize)

    owners = [keras.Model, *(one for one in vars(keras.layers).values() if _quantizes(one))]
    plain = {name: vars(quantizers)[name] for name in _ON_NUMPY}
    return [
        *(changed(owner) for owner in owners),
        *((quantizers, name, _on_tensors(function)) for name, function in plain.items()),
    ]


_ON_NUMPY = ("abs_max_quantize", "abs_max_quantize_grouped_with_zero_point")
"""Functions of Keras that quantize in numpy where they are asked to, which no trace can follow."""


def _quantizes(one: object) -> bool:
    import keras

    return isinstance(one, type) and issubclass(one, keras.Layer) and "quantize" in vars(one)


def _on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is, but with symbols where values are symbols."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def quantized(*args: Any, **options: Any) -> Value:
        import keras

        given = signature.bind(*args, **options)
        if keras.src.backend.in_stateless_scope():
            given.arguments["to_numpy"] = False
        return function(*given.args, **given.kwargs)

    return quantized


def _trace(function: Callable[[], None]) -> None:
    """Run a function whose tensors are symbols; what it assigns to variables is forgotten."""
    import jax
    import keras

    with keras.StatelessScope(initialize_variables=False), _replaced((gc, "collect", int)):
        jax.eval_shape(function)


def _no_weight_files() -> list[tuple[Any, str, Any]]:
    """Weight files are neither downloaded nor read: their values do not change a step's cost."""
    import keras
    from keras.src.utils import file_utils

    fetch = file_utils.get_file

    def get_file(fname: Value = None, origin: Value = None, *args: Any, **options: Any) -> Value:
        if str(origin or fname).endswith((".h5", ".weights.h5", ".keras")):
            return str(fname or origin)
        return fetch(fname, origin, *args, **options)

    def load_weights(self: Instance, *_args: Any, **_options: Any) -> None:
        """Keep the weights without values."""

    return [(file_utils, "get_file", get_file), (keras.Model, "load_weights", load_weights)]


@contextlib.contextmanager
def _replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, new in changes:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, old in originals:
            setattr(owner, name, old)
