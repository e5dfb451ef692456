"""Build a compiled model, its metrics, loss and optimizer from the shapes of its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.dataspec import of_fit
from tfdyno.runtime.rebatch import is_arrays

if TYPE_CHECKING:
    from tfdyno.core.recipe import Recipe


def build_for(model: Any, element_spec: Any) -> None:  # noqa: ANN401
    """Make all variables that training needs, without a batch of the data.

    Args:
        model: A compiled Keras model; parts that are built stay as they are.
        element_spec: Of the dataset: (x,), (x, y) or (x, y, sample_weight), batched.
    """
    build_model(model, element_spec)
    if model.optimizer is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def build_model(model: Any, element_spec: Any) -> None:  # noqa: ANN401
    """Make the variables of the model, its metrics and its loss."""
    model._symbolic_build(data_batch=tf.nest.map_structure(_leaf, element_spec))


def change_model(model: Any, recipe: Recipe, element_spec: Any, batch_size: int) -> list[str]:  # noqa: ANN401
    """Make of a built model what the recipe asks for, before its optimizer is built.

    Args:
        model: Built and compiled.
        recipe: Its ``remat`` and ``precision = float8``.
        element_spec: Of the dataset.
        batch_size: Of one replica.

    Returns:
        Notes.

    Raises:
        UsageError: There is nothing to recompute, or the budget cannot be met.
    """
    notes = []
    if recipe.precision == "float8":
        model.quantize("float8")
        notes.append("float8: Dense and EinsumDense layers are quantized by Keras, no others.")
    if recipe.remat:
        from tfdyno.core.units import format_bytes
        from tfdyno.runtime.remat import apply_remat

        x = element_spec[0] if isinstance(element_spec, tuple) else element_spec
        plan = apply_remat(model, recipe.remat, batch_size=batch_size, inputs=x)
        saved = f"activations {format_bytes(plan.peak_bytes_before)} to "
        saved += f"{format_bytes(plan.peak_bytes)}, " if plan.peak_bytes else ""
        notes.append(
            f"remat recomputes {', '.join(plan.names[:4])}{' …' * (len(plan.names) > 4)} "
            f"({saved if plan.peak_bytes else ''}{plan.extra_compute:.0%} more arithmetic, "
            "predicted)."
        )
        notes += plan.notes
    return notes


def is_always_full(element_spec: Any) -> bool:  # noqa: ANN401
    """Whether the shapes promise that every batch has the same number of samples."""
    leaves = [leaf for leaf in tf.nest.flatten(element_spec) if leaf.shape.rank]
    return bool(leaves) and all(leaf.shape[0] is not None for leaf in leaves)


def samples_of(element_spec: Any, arguments: dict[str, Any]) -> int:  # noqa: ANN401
    """Samples of a full batch over all replicas; 0: not known."""
    leaves = [leaf for leaf in tf.nest.flatten(element_spec) if leaf.shape.rank]
    known = leaves[0].shape[0] if leaves else None
    known = known or arguments.get("batch_size")
    x = arguments.get("x")
    if not known and (hasattr(x, "element_spec") or is_arrays(x)):
        known = of_fit(arguments).batch_size  # of a generator it would take a batch
    return int(known or 0)


def _leaf(spec: Any) -> Any:  # noqa: ANN401
    return None if isinstance(spec, tf.OptionalSpec | tf.NoneTensorSpec) else spec
