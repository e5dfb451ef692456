"""Keras variables that have a shape and a type but take no memory.

A variable made from an initialiser keeps the initialiser and runs it only when somebody reads its
value outside a trace. Models of any size are then built in the time that Python needs for it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def weightless() -> Iterator[None]:
    """Variables created inside have no value until it is read; loading weights does nothing."""
    import keras
    from keras.src.backend.common import variables as keras_variables

    original = keras.Variable.__init__

    def deferred(self: Any, initializer: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401
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
    ):
        yield


def _no_weight_files() -> list[tuple[Any, str, Any]]:
    """Weight files are neither downloaded nor read: their values do not change a step's cost."""
    import keras
    from keras.src.utils import file_utils

    fetch = file_utils.get_file

    def get_file(fname: Any = None, origin: Any = None, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if str(origin or fname).endswith((".h5", ".weights.h5", ".keras")):
            return str(fname or origin)
        return fetch(fname, origin, *args, **options)

    def load_weights(self: Any, *_args: Any, **_options: Any) -> None:  # noqa: ANN401
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
