"""Build a compiled model, its metrics, loss and optimizer from the shapes of its data."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.keras_internals import all_layers
from tfdyno.runtime.base.step_hooks import Update, has_own_step, held_updates
from tfdyno.runtime.base.tensorflow_internals import unliftable_error
from tfdyno.runtime.checkpoint.state import optimizers_of
from tfdyno.runtime.workload.dataspec import of_fit
from tfdyno.runtime.workload.rebatch import is_arrays

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Model, Spec, Value
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.runtime.remat.rewrite import RematPlan


def build_for(model: Model, element_spec: Spec) -> None:
    """Make all variables that training needs, without a batch of the data.

    Args:
        model: A compiled Keras model; parts that are built stay as they are.
        element_spec: Of the dataset: (x,), (x, y) or (x, y, sample_weight), batched.
    """
    build_model(model, element_spec)
    if not (model.optimizer is None or model.optimizer.built or _is_aside(model)):
        model.optimizer.build(model.trainable_variables)


def build_model(model: Model, element_spec: Spec) -> None:
    """Make the variables of the model, its metrics and its loss.

    A model with a step of its own has what that makes, its optimizers' variables included: it need
    not have a ``call``, nor one that takes what the data have.
    """
    if has_own_step(model) and not model.run_eagerly:
        if _is_left_to_step(model):
            _trace_step(model, element_spec)
        metrics = getattr(model, "_compile_metrics", None)
        if not model.built and (metrics is None or metrics.built):
            return
        with contextlib.suppress(Exception):  # what is left, Keras makes when it needs it
            model._symbolic_build(data_batch=tf.nest.map_structure(_leaf, element_spec))
        return
    model._symbolic_build(data_batch=tf.nest.map_structure(_leaf, element_spec))


def _is_aside(model: Model) -> bool:
    """Return whether nothing has built ``compile``'s optimizer, but one that an own step keeps."""
    kept, *others = optimizers_of(model)
    return has_own_step(model) and not kept.built and any(each.built for each in others)


def _is_left_to_step(model: Model) -> bool:
    """Return whether the first step would make variables that no call of the model makes."""
    parts = [*all_layers(model), *optimizers_of(model)]
    return not all(part.built for part in parts if part is not model.optimizer)


def _trace_step(model: Model, element_spec: Spec) -> None:
    """Make what a trace of the model's own step makes, as Keras does with the first batch.

    Its optimizers are built afterwards, for the variables that it gives them: within a replica of
    several they cannot be.
    """
    updates: list[Update] = []

    def step(data: Dataset) -> Value:
        return model.distribute_strategy.run(model.train_step, args=(data,))

    try:
        with held_updates(updates):
            traced = tf.function(step, autograph=False)
            traced.get_concrete_function(tf.nest.map_structure(_leaf, element_spec))
    except unliftable_error():
        raise UsageError(
            f"{model.name} has layers that its first step would make",
            why="on several replicas a step of its own cannot",
            remedy="give each model in it an Input, or call it once on data before fit",
        ) from None
    for update in updates:
        if not update.optimizer.built:
            update.optimizer.build(update.variables)


def change_model(
    model: Model,
    recipe: Recipe,
    element_spec: Spec,
    batch_size: int,
    notes: list[str],
) -> RematPlan | None:
    """Make of a built model what the recipe asks for, before its optimizer is built.

    Args:
        model: Built and compiled.
        recipe: Its ``remat``.
        element_spec: Of the dataset.
        batch_size: Of one replica; 0: not known.
        notes: Gets sentences for the user.

    Returns:
        What is recomputed; its own notes may grow at the first step. None: nothing.

    Raises:
        UsageError: There is nothing to recompute, or a budget cannot be met or not be planned.
    """
    if not recipe.remat:
        return None
    from tfdyno.core.base.units import format_bytes
    from tfdyno.runtime.remat.rewrite import apply_remat

    if recipe.remat_budget_bytes and not batch_size:
        what = f"remat = {recipe.remat} cannot be planned"
        why = "the data do not say how many samples a batch has"
        raise UsageError(what, why=why, remedy="batch them with drop_remainder, or use blocks")
    x = element_spec[0] if isinstance(element_spec, tuple) else element_spec
    plan = apply_remat(model, recipe.remat, batch_size=batch_size or 1, inputs=x)
    if plan.names:
        before, after = format_bytes(plan.peak_bytes_before), format_bytes(plan.peak_bytes)
        of = "activations" if batch_size else "activations of one sample"
        saved = f"{of} {before} to {after}, " if plan.peak_bytes else ""
        told = f" ({saved}{plan.extra_compute:.0%} more arithmetic, predicted)"
        notes.append(
            f"remat recomputes {', '.join(plan.names[:4])}{' …' * (len(plan.names) > 4)}"
            f"{told if plan.extra_compute else ''}."
        )
    return plan


def is_always_full(element_spec: Spec) -> bool:
    """Return whether the shapes promise that every batch has the same number of samples."""
    leaves = [leaf for leaf in tf.nest.flatten(element_spec) if leaf.shape.rank]
    return bool(leaves) and all(leaf.shape[0] is not None for leaf in leaves)


def samples_of(element_spec: Spec, arguments: dict[str, Any]) -> int:
    """Return samples of a full batch over all replicas; 0: not known."""
    leaves = [leaf for leaf in tf.nest.flatten(element_spec) if leaf.shape.rank]
    known = leaves[0].shape[0] if leaves else None
    known = known or arguments.get("batch_size")
    x = arguments.get("x")
    if not known and (hasattr(x, "element_spec") or is_arrays(x)):
        known = of_fit(arguments).batch_size  # of a generator it would take a batch
    return int(known or 0)


def _leaf(spec: Spec) -> Value:
    return None if isinstance(spec, tf.OptionalSpec | tf.NoneTensorSpec) else spec
