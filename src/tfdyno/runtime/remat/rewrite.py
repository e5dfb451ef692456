"""Rematerialisation: parts of a Keras model compute their insides again in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import format_bytes
from tfdyno.core.recipe.recipe_reading import BLOCKS, budget_bytes
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.keras_internals import output_spec
from tfdyno.runtime.remat.blocks import Cut, Subject, best_cut, composites, named_cut
from tfdyno.runtime.remat.functional import functionals
from tfdyno.runtime.remat.plan import blocks, cheapest, flops, peak_bytes
from tfdyno.runtime.remat.trace import trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.untyped import Model, Spec, Tensor, Value
    from tfdyno.runtime.remat.checkpointed import CheckpointedRegion
    from tfdyno.runtime.remat.gradient import Region


@dataclass(frozen=True, slots=True, kw_only=True)
class RematPlan:
    """What is recomputed in a model, and what that is predicted to change.

    The bytes are of activations alone, as the executor of TensorFlow keeps them; 0: not known.
    """

    names: tuple[str, ...]
    """The names of the blocks, in their order."""
    peak_bytes_before: int
    peak_bytes: int
    extra_compute: float
    """What is computed more, as a share of a step's floating-point operations."""
    notes: list[str]
    """Sentences for the user; a part that turns out not to be able gets one at the first step."""
    undo: Callable[[], None] = field(repr=False)
    """Makes the model as it was."""


def apply_remat(model: Model, wanted: str, *, batch_size: int, inputs: Tensor = None) -> RematPlan:
    """Let parts of a model recompute their insides in the backward pass.

    The model is changed in place: its loss, gradients, moving averages and dropout masks are the
    same as without. Nothing is recomputed where no gradient is taken (``evaluate``, ``predict``).
    Call it in the scope of the strategy, before the first step.

    Args:
        model: A Keras model; built, or ``inputs`` are given.
        wanted: ``blocks``; bytes that the activations may take (``8GiB``), for which the parts
            with the fewest operations are chosen; or names of layers with ``*`` and ``?``,
            separated by commas.
        batch_size: Samples that one replica takes in a step.
        inputs: What the model is called with, arrays or ``tf.TensorSpec``, of any batch size;
            None: a functional model's own inputs.

    Raises:
        UsageError: There is nothing to recompute, a name fits nothing, or the bytes cannot be met.
    """
    notes: list[str] = []
    specs = _specs(model, inputs, batch_size)
    _build(model, specs)
    subject = Subject(
        model=model, functionals=functionals(model), traced=None, batch_size=batch_size
    )
    _trace(subject, specs, notes)
    if wanted == BLOCKS or budget_bytes(wanted):
        cut = best_cut(subject)
        chosen = _within(cut, subject, wanted, notes)
    else:
        cut = named_cut(subject, [part.strip() for part in wanted.split(",") if part.strip()])
        chosen = blocks(cut.parts)
    return _installed(subject, cut, chosen, notes)


def _specs(model: Model, inputs: Tensor, batch_size: int) -> Value:
    """Return inputs with all dimensions known; None where nobody knows them."""
    if inputs is None:
        source = getattr(model, "_functional", None) or model
        inputs = getattr(source, "_inputs_struct", None)
        if inputs is None:
            return None

    def spec(x: Tensor) -> Value:
        if x is None:
            return None
        shape = tuple(x.shape)
        return tf.TensorSpec((batch_size, *shape[1:]) if shape else (), tf.as_dtype(x.dtype))

    found = keras.tree.map_structure(spec, inputs)
    known = all(x is None or x.shape.is_fully_defined() for x in keras.tree.flatten(found))
    return found if known else None


def _build(model: Model, specs: Spec) -> None:
    if model.built:
        return
    if specs is None:
        what = f"remat needs the shapes of what {model.name} takes"
        raise UsageError(what, why="it is not built", remedy="call it once before, or build it")
    symbols = keras.tree.map_structure(
        lambda x: x if x is None else keras.KerasTensor(tuple(x.shape), x.dtype.name), specs
    )
    output_spec(model, symbols, training=False)


def region_class() -> Callable[[str, Sequence[Any], list[str]], Region | CheckpointedRegion]:
    """Return what computes a part twice on the backend at hand."""
    if keras.backend.backend() == "jax":
        from tfdyno.runtime.remat.checkpointed import CheckpointedRegion

        return CheckpointedRegion
    from tfdyno.runtime.remat.gradient import Region

    return Region


def _trace(subject: Subject, specs: Spec, notes: list[str]) -> None:
    if keras.backend.backend() == "jax":
        notes.append("What remat saves is not foreseen: that is known of TensorFlow's steps alone.")
        return
    if specs is None:
        notes.append("What remat saves is not foreseen: the shapes of the inputs are not known.")
        return
    try:
        layers = composites(subject.model)
        subject.traced = trace(subject.model, specs, layers, subject.functionals)
    except Exception as error:  # a model may do anything in its call
        notes.append(f"What remat saves is not foreseen: {first_line(error)}")


def _within(cut: Cut, subject: Subject, wanted: str, notes: list[str]) -> frozenset[str]:
    """Return the blocks to recompute: for a budget, or those without which the peak would rise."""
    everything = blocks(cut.parts)
    if wanted == BLOCKS and not everything:
        notes.append("Nothing is recomputed: no cut of the model lowers what activations take.")
        return everything
    if subject.traced is None:
        if wanted == BLOCKS:
            return everything
        why = notes[-1].partition(": ")[2]
        raise UsageError(f"remat = {wanted} cannot be planned", why=why)
    least, most = cut.peak_bytes, peak_bytes(cut.parts, ())
    if wanted == BLOCKS:
        if least >= most:
            notes.append("Recomputing saves nothing here, as predicted: one part makes the peak.")
            return everything
        return cheapest(cut.parts, least) or everything
    budget = budget_bytes(wanted)
    if budget >= most:
        notes.append(f"Nothing is recomputed: the activations take {format_bytes(most)}.")
    chosen = cheapest(cut.parts, budget)
    if chosen is None:
        what = f"remat = {wanted} cannot be met at batch_size = {subject.batch_size}"
        why = f"the activations take {format_bytes(least)} with every block recomputed"
        raise UsageError(what, why=why, remedy="give as much, or a smaller batch_size")
    return chosen


def _installed(subject: Subject, cut: Cut, chosen: frozenset[str], notes: list[str]) -> RematPlan:
    model, region_of = subject.model, region_class()
    layers = {name: layer for name, layer in cut.layers.items() if name in chosen}
    for name, layer in layers.items():
        region = region_of(name, [layer], notes)
        vars(layer)["call"] = functools.wraps(layer.call)(functools.partial(region.run, layer.call))
    changed = []
    for functional, found in cut.segments:
        kept = [each for each in found if each.part.name in chosen]
        regions = [region_of(x.part.name, functional.layers(x.first, x.last), notes) for x in kept]
        functional.recompute(kept, regions)
        changed.append(functional)
    model.train_function = None  # to be made anew

    def undo() -> None:
        for layer in layers.values():
            vars(layer).pop("call", None)
        for functional in changed:
            functional.remove()
        model.train_function = None

    total = subject.traced.step_flops if subject.traced else 0.0
    more = flops(cut.parts, chosen)
    return RematPlan(
        names=tuple(dict.fromkeys(x.name for x in cut.parts if x.name in chosen)),
        peak_bytes_before=peak_bytes(cut.parts, ()) if subject.traced else 0,
        peak_bytes=peak_bytes(cut.parts, chosen) if subject.traced else 0,
        extra_compute=more / total if total else 0.0,
        notes=notes,
        undo=undo,
    )
