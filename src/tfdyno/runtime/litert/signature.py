"""The inputs of a model as its exporter wants them, and the names of its layers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.keras_internals import inner_layers, input_signature

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Spec, Value


def signature_of(model: Model, batch: int | None = None) -> Value:
    """Return shapes and types of what ``model`` is called with, in its own structure.

    Args:
        model: A Keras model.
        batch: Length of the first axis; None: as the model has it, open in most.

    Raises:
        UsageError: It was never called, so that nobody knows its inputs.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            f"Keras runs on {keras.backend.backend()} here, and LiteRT is reached by TensorFlow",
            remedy="set KERAS_BACKEND=tensorflow",
        )
    try:
        signature = input_signature(model)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"the inputs of {getattr(model, 'name', 'the model')} are not known",
            why=first_line(error),
            remedy="call the model once on a batch before it is saved",
        ) from None
    places = itertools.count()
    return keras.tree.map_structure(lambda one: _named(one, next(places), batch), signature)


def _named(spec: Spec, place: int, batch: int | None) -> Value:
    """Add names, which inputs of a subclassed model lack, and the batch that is asked for."""
    import keras

    shape = spec.shape if batch is None or not spec.shape else (batch, *spec.shape[1:])
    return keras.InputSpec(shape=shape, dtype=spec.dtype, name=spec.name or f"input_{place}")


def input_specs(model: Model) -> dict[str, Any]:
    """Return every input by the name that its signature gives it, in the order of the call."""
    import keras

    return {spec.name: spec for spec in keras.tree.flatten(signature_of(model))}


def layer_names(model: Model) -> frozenset[str]:
    """Name all layers, those inside of others too, without the model's own."""
    return frozenset(layer.name for layer in inner_layers(model))
