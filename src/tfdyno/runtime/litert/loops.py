"""Loops over time written out, for as long as a model is quantised.

TensorFlow's calibrator (2.21) crashes the process on a graph with a loop. A recurrent layer of
Keras can be written out as one operation after the other where its number of steps is known.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.litert.check import traced_operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Model

_LOOPS = ("While", "StatelessWhile")


@contextlib.contextmanager
def without_loops(model: Model) -> Iterator[None]:
    """Write the loops of its recurrent layers out within the block.

    Raises:
        UsageError: A loop remains, or the number of its steps is open.
    """
    if not _loops(model):
        yield
        return
    import keras

    layers = model._flatten_layers(include_self=True, recursive=True)
    rolled = [one for one in layers if isinstance(one, keras.layers.RNN) and not one.unroll]
    try:
        for layer in rolled:
            layer.unroll = True
        _check(model)
        yield
    finally:
        for layer in rolled:
            layer.unroll = False


def _loops(model: Model) -> list[str]:
    found = traced_operations(model)
    return [found[name] for name in _LOOPS if name in found]


def _check(model: Model) -> None:
    remedy = "export with --to litert or litert-fp16, which keep loops"
    try:
        left = _loops(model)
    except ValueError as error:
        raise UsageError(
            "the loop of a recurrent layer cannot be written out for int8",
            why=str(error).strip().split("\n")[0],
            remedy=f"give the model a fixed number of steps, or {remedy}",
        ) from None
    if left:
        raise UsageError(
            f"int8 is not possible with the loop at {left[0]}",
            why="the calibrator of TensorFlow fails on loops",
            remedy=remedy,
        )
