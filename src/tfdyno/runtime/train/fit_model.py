"""A model that is trained in the user's own process: it goes on afterwards as if by Keras' fit."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Model

_OF_COMPILE = ("run_eagerly", "jit_compile", "steps_per_execution")
"""What ``compile`` sets and a recipe changes; XLA after eager, which excludes it."""


def check_model(model: Model) -> None:
    """Refuse what is no compiled Keras 3 model on TensorFlow; raises ``UsageError``."""
    import keras

    if not isinstance(model, keras.Model):
        what = f"a {type(model).__module__.partition('.')[0]}.{type(model).__name__}"
        raise UsageError(f"{what} cannot be trained", remedy="give fit a keras.Model of Keras 3")
    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            f"Keras runs on {keras.backend.backend()} here, and fit trains on TensorFlow",
            remedy="set KERAS_BACKEND=tensorflow before Keras is imported",
        )
    if not model.compiled:
        what = f"{model.name} is not compiled"
        raise UsageError(what, remedy="call its compile with an optimizer and a loss first")


@contextlib.contextmanager
def as_found(model: Model) -> Iterator[None]:
    """Give the model back as its ``compile`` left it, whatever ends the block.

    What a recipe set on the optimizer stays: its variables were made with it.
    """
    before = [(name, getattr(model, name)) for name in _OF_COMPILE]
    try:
        yield
    finally:
        for name, value in before:
            if getattr(model, name) != value:
                setattr(model, name, value)
        model.train_function = model.test_function = model.predict_function = None
