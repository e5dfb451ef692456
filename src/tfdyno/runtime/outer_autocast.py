"""Mixed precision of a traced step as TensorFlow has it: the model is a layer like any other.

Keras lets a layer read its variables in 16 bits unless the layer says no (``Embedding``), and asks
that only inside of another layer's call. ``stateless_call``, which the JAX backend trains by, goes
past the call of the model, so there such a layer reads 16 bits all the same: an embedding that is
the head of a language model, too, multiplies in bfloat16, where TensorFlow does in float32 and
holds its logits in them. The step is traced by JAX and stands for TensorFlow's.
"""

from __future__ import annotations

import functools
from typing import Any

import keras
from keras.src import backend


def as_called() -> None:
    """Let ``stateless_call`` set the precision that the call of a model sets."""
    original = keras.Layer.stateless_call
    if getattr(original, "as_called", False):
        return

    @functools.wraps(original)
    def stateless_call(self: Any, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        mixed = self.autocast and self.compute_dtype != self.variable_dtype
        if not mixed or backend.get_autocast_scope() is not None:
            return original(self, *arguments, **named)
        inner, own = self.call, vars(self).get("call")

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            with backend.AutocastScope(self.compute_dtype):
                return inner(*arguments, **named)

        # not around all of it: the values given for the variables would be cast as well
        vars(self)["call"] = call
        try:
            return original(self, *arguments, **named)
        finally:
            if own is None:
                del vars(self)["call"]
            else:
                vars(self)["call"] = own

    stateless_call.as_called = True  # type: ignore[attr-defined]
    keras.Layer.stateless_call = stateless_call
