"""A random batch for a model that brings no data: inputs as it declares them, valid labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.runtime.base.keras_internals import all_layers
from tfdyno.runtime.workload.batch import batches
from tfdyno.runtime.workload.dataspec import DataSpec, Leaf, mapped
from tfdyno.runtime.workload.workloads import Subject

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Value
    from tfdyno.core.choose.workload import Workload

SEED = 20_2611
"""The seed of synthetic values: every run of every bench gets the same."""
FEWEST_ROWS = 2
"""Any table of embeddings has so many."""


def batch_for(
    model: Model, workload: Workload, batch_size: int
) -> tuple[tuple[Any, ...], DataSpec]:
    """Return a batch of random values as numpy arrays, and its shapes.

    Raises:
        UsageError: The model does not say what its input looks like.
    """
    subject = Subject(model=model, title=model.name, data=None, seconds_s=0.0)
    asked = batches(subject, workload)[0]
    generator = np.random.default_rng(SEED)
    rows = min(_table_sizes(model), default=FEWEST_ROWS)

    def inputs(leaf: Leaf) -> Value:
        return _random(generator, leaf, batch_size, rows)

    x = mapped(asked.x, inputs)
    spec = DataSpec(x=asked.x, y=asked.y, batch_size=batch_size)
    if asked.y is None:
        return (x,), spec
    outputs = iter(model.outputs or [])

    def targets(leaf: Leaf) -> Value:
        output = next(outputs, None)
        classes = 1 if output is None or not output.shape[-1] else int(output.shape[-1])
        if leaf.dtype.startswith("int"):
            return _random(generator, leaf, batch_size, max(classes, FEWEST_ROWS))
        return _one_hot(generator, leaf, batch_size)

    return (x, mapped(asked.y, targets)), spec


def _table_sizes(model: Model) -> list[int]:
    layers = all_layers(model)
    return [int(layer.input_dim) for layer in layers if type(layer).__name__ == "Embedding"]


def _random(generator: np.random.Generator, leaf: Leaf, batch_size: int, limit: int) -> Value:
    shape = (batch_size, *(size or 1 for size in leaf.shape))
    if leaf.dtype == "bool":
        return np.ones(shape, bool)
    if leaf.dtype == "string":
        return np.full(shape, "a word", object)
    if "int" in leaf.dtype:
        high = 256 if leaf.dtype == "uint8" else limit
        return generator.integers(0, high, shape).astype(leaf.dtype)
    return generator.uniform(0.0, 1.0, shape).astype(np.float32)


def _one_hot(generator: np.random.Generator, leaf: Leaf, batch_size: int) -> Value:
    """Make float targets: one of several is 1; a single one is 0 or 1, valid for every loss."""
    shape = (batch_size, *(size or 1 for size in leaf.shape))
    classes = shape[-1] if len(shape) > 1 else 1
    chosen = generator.integers(0, max(classes, FEWEST_ROWS), shape[:-1] or shape)
    if classes == 1:
        return chosen.astype(np.float32).reshape(shape)
    return np.eye(classes, dtype=np.float32)[chosen]
