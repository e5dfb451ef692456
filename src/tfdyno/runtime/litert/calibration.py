"""Real inputs for the ranges of an integer model, one sample at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.litert.signature import input_specs

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Spec, Value

Samples = Sequence[Mapping[str, Any]]
MOST = 500
"""Samples that are used: the guide of the converter asks for a few hundred."""


def calibration_of(model: Model, samples: Samples | None) -> list[dict[str, Any]]:
    """Take at most ``MOST`` samples, spread evenly over those given, each with a batch axis of one.

    Raises:
        UsageError: There are none, one lacks an input, has another shape, or holds NaN.
    """
    if not samples:
        raise UsageError(
            "an int8 model needs samples of its real inputs",
            why="the ranges of its integers are taken from them",
            remedy="give 100 to 500 of them with --data FILE.npz",
        )
    specs = input_specs(model)
    rows = [row for sample in samples for row in _rows(sample, specs)]
    if not rows:
        raise UsageError("there is no sample to take ranges from", why="their batch axis is empty")
    if len(rows) <= MOST:
        return rows
    places = np.linspace(0, len(rows) - 1, MOST).round().astype(int)
    return [rows[place] for place in places]


def _rows(sample: Mapping[str, Any], specs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the single samples of what may be one of them or a batch."""
    arrays = {name: _array(sample, name, spec, len(specs)) for name, spec in specs.items()}
    counts = {len(array) for array in arrays.values()}
    if len(counts) > 1:
        raise UsageError(
            "the inputs of a sample have batches of different lengths",
            why=", ".join(f"{name}: {len(array)}" for name, array in arrays.items()),
        )
    return [{name: array[i : i + 1] for name, array in arrays.items()} for i in range(min(counts))]


def _array(sample: Mapping[str, Any], name: str, spec: Spec, inputs: int) -> Value:
    if name in sample:
        value = sample[name]
    elif inputs == 1 and len(sample) == 1:
        value = next(iter(sample.values()))
    else:
        raise UsageError(
            f"a sample has no input {name}", why=f"it has {', '.join(sample) or 'nothing'}"
        )
    array = np.asarray(value)
    shape = tuple(spec.shape)
    if array.ndim == len(shape) - 1:
        array = array[None]
    fits = array.ndim == len(shape) and all(
        want in (None, size) for want, size in zip(shape[1:], array.shape[1:], strict=True)
    )
    if not fits:
        words = ", ".join("any" if size is None else str(size) for size in shape)
        raise UsageError(
            f"a sample of {name} has the shape {list(array.shape)}",
            why=f"the model takes [{words}]",
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UsageError(
            f"a sample of {name} holds NaN or infinity", why="no range can be taken from it"
        )
    return array.astype(spec.dtype)
