"""Preprocessing layers of a model: which there are, and where each of them runs.

A table of words, a hash and text live on the CPU. Inside of a train step they make the device wait,
and XLA refuses the step. ``preprocessing_split`` moves what stands at the inputs of a model into
the input pipeline; what stays inside is named here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.keras_internals import inner_layers
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.recipe.preprocessing_split import (
    Split,
    grows,
    is_random,
    preprocesses,
    split,
    why_cpu,
    why_whole,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Dataset, Instance, Layer, Model

__all__ = ["PreprocessingLayer", "Split", "check_xla", "found", "split", "statistics_on_cpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreprocessingLayer:
    """One preprocessing layer of a model."""

    name: str
    kind: str
    """The name of its class."""
    device: str
    """``CPU`` in front of the step, ``CPU in the step``, or ``step``: on the step's device."""
    why: str

    @property
    def sentence(self) -> str:
        """Where it runs and why, for a person."""
        layer = f'{self.kind} "{self.name}"'
        if self.device == "CPU":
            return f"{layer} runs in the input pipeline on the CPU."
        on = "on the CPU " if self.device != "step" else ""
        return f"{layer} runs {on}inside of the step: {self.why}."


def found(model: Model, *, is_whole: bool = False) -> tuple[PreprocessingLayer, ...]:
    """Return the preprocessing layers of a model, those inside of other models included.

    Args:
        model: A Keras model, as it is before ``fit``.
        is_whole: Whether it is not split, because parts of it are recomputed.
    """
    parts = None if is_whole else split(model)
    moved = {id(layer) for layer in parts.moved} if parts else set()
    result = []
    for layer in _preprocessing(model):
        if id(layer) in moved:
            device, why = "CPU", "it stands at the inputs of the model"
        else:
            cpu = why_cpu(layer)
            device = "CPU in the step" if cpu else "step"
            why = _why_inside(model, layer, is_whole=is_whole)
            why = f"{cpu}, and {why}" if cpu else why
        name, kind = layer.name, type(layer).__name__
        result.append(PreprocessingLayer(name=name, kind=kind, device=device, why=why))
    return tuple(result)


def _preprocessing(model: Model) -> list[Any]:
    """Return the layers that prepare data, each without those that it is made of."""
    layers = [each for each in inner_layers(model) if preprocesses(each) or why_cpu(each)]
    parts = {id(p) for each in layers for p in inner_layers(each)}
    return [each for each in layers if id(each) not in parts]


def _why_inside(model: Model, layer: Layer, *, is_whole: bool) -> str:
    if is_random(layer):
        return "it draws random numbers for each step, whose order would change"
    if why_whole(model):
        return why_whole(model)
    if is_whole:
        return "remat takes the model as a whole"
    nodes = [] if why_cpu(layer) else layer._inbound_nodes
    growth = max(map(grows, nodes), default=0.0)
    if growth:
        return f"its output has {growth:.3g} times the bytes of its input"
    return "it does not stand at the inputs of the model"


def check_xla(model: Model, *, is_whole: bool = False) -> None:
    """Refuse ``execution=xla`` where a layer that stays inside of the step cannot be compiled.

    Args:
        model: A Keras model.
        is_whole: Whether it is not split, because parts of it are recomputed.

    Raises:
        UsageError: Names the layer. Keras would switch XLA off and say so in a warning only.
    """
    parts = None if is_whole else split(model)
    left = parts.unfit if parts else [p for p in inner_layers(model) if not p.supports_jit]
    for layer in left:
        cpu = why_cpu(layer)
        if not cpu and not preprocesses(layer):
            continue
        why = f"{cpu}, so XLA cannot compile the step" if cpu else "XLA cannot compile it"
        what = f'{type(layer).__name__} "{layer.name}" runs inside of the step'
        raise UsageError(what, why=why, remedy="put it into dataset.map(...)")


def statistics_on_cpu() -> AbstractContextManager[None]:
    """Let ``Normalization.adapt`` read the data on the CPU while this holds.

    Keras computes the mean of each batch where TensorFlow puts new operations, on a card where
    there is one. Its other layers count on the CPU anyway. What the step reads of the result
    goes back to where TensorFlow puts it.
    """
    layer = keras.layers.Normalization
    original = layer.adapt

    @functools.wraps(original)
    def adapt(self: Instance, data: Dataset) -> None:
        with tf.device("CPU:0"):
            original(self, data)
        self.finalize_state()

    return replaced((layer, "adapt", adapt))
