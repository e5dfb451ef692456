"""Random inputs and targets of a Keras model, of the shapes and ranges that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Loss, Model, Tensor, Value


def inputs_of(model: Model, batch: int, rng: np.random.Generator) -> Value:
    """One array an input: numbers, masks of ones, or rows of the table that looks them up."""
    arrays = [_input(tensor, batch, rng) for tensor in model.inputs]
    return arrays if len(arrays) > 1 else arrays[0]


def targets_of(model: Model, batch: int, rng: np.random.Generator) -> Value:
    """One array an output: classes for a sparse loss, else numbers."""
    losses = model.loss if isinstance(model.loss, list) else [model.loss] * len(model.outputs)
    arrays = [
        _target(tensor, loss, batch, rng)
        for tensor, loss in zip(model.outputs, losses, strict=True)
    ]
    return arrays if len(arrays) > 1 else arrays[0]


def _input(tensor: Tensor, batch: int, rng: np.random.Generator) -> Value:
    shape = (batch, *tensor.shape[1:])
    if "int" not in str(tensor.dtype):
        return rng.standard_normal(shape, dtype="float32")
    if "mask" in tensor.name and "positions" not in tensor.name:
        return np.ones(shape, "int32")
    readers = [node.operation for node in tensor._keras_history.operation._outbound_nodes]
    rows = [layer.input_dim for layer in readers if hasattr(layer, "input_dim")]
    # What no table looks up are positions in the sequence, at most as many as there are of them.
    return rng.integers(0, min(rows, default=shape[-1]), shape).astype("int32")


def _target(tensor: Tensor, loss: Loss, batch: int, rng: np.random.Generator) -> Value:
    name = loss if isinstance(loss, str) else type(loss).__name__
    if "sparse" in name.lower():
        shape = (batch, *tensor.shape[1:-1])
        return rng.integers(0, tensor.shape[-1], shape).astype("int32")
    return rng.standard_normal((batch, *tensor.shape[1:])).astype("float32")
