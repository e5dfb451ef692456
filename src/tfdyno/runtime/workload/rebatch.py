"""The data of a call of ``fit`` with another batch size."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Tensor, Value


def rebatched(
    arguments: dict[str, Any], batch_size: int, *, whole_only: bool = True
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments of ``fit`` with another batch size, and notes on how that was done.

    Args:
        arguments: Of the call of ``fit``, by name.
        batch_size: Over all replicas; 0: as it is.
        whole_only: Whether a last batch that is not full is left out of a dataset; otherwise it
            stays where the dataset itself keeps it.

    Raises:
        UsageError: The data makes its own batches in Python.
    """
    x = arguments.get("x")
    if not batch_size:
        return arguments, ()
    if isinstance(x, tf.data.Dataset):
        made = _of_size(x, batch_size, whole_only)
        return {**arguments, "x": made}, (_SAID[_has_batch_stage(x)],)
    if not is_arrays(x):
        raise UsageError(
            f"batch_size cannot be set for a {type(x).__name__}",
            why="it makes its batches itself",
            remedy="set its batch size in the script",
        )
    return {**arguments, "batch_size": batch_size}, ()


_SAID = {
    True: "The last batch() of the dataset makes batches of another size.",
    False: "The dataset's batches are cut anew (rebatch), which costs time on the host.",
}


def _has_batch_stage(dataset: Dataset) -> bool:
    return hasattr(_without_prefetch(dataset), "_drop_remainder")


def _without_prefetch(dataset: Dataset) -> Value:
    while "Prefetch" in type(dataset).__name__ or "Options" in type(dataset).__name__:
        dataset = dataset._input_dataset
    return dataset


def _of_size(dataset: Dataset, batch_size: int, whole_only: bool) -> Value:
    if not _has_batch_stage(dataset):
        cut = whole_only or _is_whole(dataset)
        return dataset.rebatch(batch_size, drop_remainder=cut).prefetch(tf.data.AUTOTUNE)
    stage = _without_prefetch(dataset)
    cut = whole_only or bool(tf.get_static_value(stage._drop_remainder))
    made = stage._input_dataset.batch(batch_size, drop_remainder=cut)
    return made.prefetch(tf.data.AUTOTUNE) if dataset is not stage else made


def _is_whole(dataset: Dataset) -> bool:
    """Return whether all batches have the same size, as the shapes tell."""
    first = tf.nest.flatten(dataset.element_spec)[0]
    return bool(first.shape.rank) and first.shape[0] is not None


def is_arrays(x: Tensor) -> bool:
    """Return whether Keras makes the batches itself: of arrays or tensors."""
    others = (tf.data.Dataset, types.GeneratorType)
    return not isinstance(x, others) and not hasattr(x, "num_batches") and not _is_loader(x)


def _is_loader(x: Tensor) -> bool:
    return type(x).__module__.startswith("torch.utils.data")
