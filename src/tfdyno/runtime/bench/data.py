"""The data of a measured ``fit``: the user's own without end, or one random batch repeated."""

from __future__ import annotations

import contextlib
import types
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import InputOptions
from tfdyno.runtime.base.keras_internals import data_adapter, without_validation
from tfdyno.runtime.workload.dataspec import DEFAULT_BATCH, DataSpec, of_fit
from tfdyno.runtime.workload.input_options import with_input_options
from tfdyno.runtime.workload.input_stages import kind, walk
from tfdyno.runtime.workload.rebatch import is_arrays, rebatched
from tfdyno.runtime.workload.synthetic import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Dataset, Value

_AS_IT_IS = InputOptions()
_COMPLETED = {"cache", "snapshot"}
"""Stages that keep nothing of a pass that did not come to its end."""
INLINED = 128
"""TensorFlow makes constants of captured tensors with up to so many values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What ``fit`` is given instead of its own data arguments."""

    arguments: dict[str, Any]
    spec: DataSpec
    endless: bool
    """Whether one epoch lasts as long as it is asked to."""
    has_pipeline: bool = False
    """Whether input options can be put onto it: the user's own data, read by tf.data."""
    notes: tuple[str, ...] = ()


def own_stream(
    arguments: dict[str, Any], batch_size: int, options: InputOptions = _AS_IT_IS
) -> Stream:
    """Return the user's data in one endless epoch where it can be repeated, else epoch by epoch.

    Batches that are not full are left out of it: they are other steps, which XLA compiles anew.

    Args:
        arguments: Of the call of ``fit``, by name.
        batch_size: Over all replicas; 0: the script's own.
        options: Put onto each pass through the data.

    Raises:
        UsageError: The data cannot be batched anew, or an option cannot be applied to it.
    """
    given, notes = rebatched(arguments, batch_size)
    given, spec = _spec_of(given)
    x = given.get("x")
    if isinstance(x, tf.data.Dataset):
        x, told = with_input_options(x, options)
        endless: dict[str, Any] = {"x": _repeated(x)}
        if given.get("class_weight") is not None:
            endless["class_weight"] = given["class_weight"]
        return Stream(arguments=endless, spec=spec, endless=True, has_pipeline=True,
                      notes=(*notes, *told))  # fmt: skip
    adapter = _of_arrays(given)
    if adapter is not None:
        full = spec.samples_per_epoch // max(1, spec.batch_size)
        if keras.backend.backend() == "jax":  # of which Keras makes no dataset there
            from tfdyno.runtime.bench.on_jax import endless as again_and_again

            with_input_options(x, options)  # refuses what only a dataset takes
            repeated: dict[str, Any] = {"x": again_and_again(adapter, full)}
            return Stream(arguments=repeated, spec=spec, endless=True, notes=notes)
        made, told = with_input_options(adapter.get_tf_dataset(), options)
        endless = {"x": (made.take(full) if full else made).repeat()}
        return Stream(arguments=endless, spec=spec, endless=True, has_pipeline=True,
                      notes=(*notes, *told))  # fmt: skip
    with_input_options(x, options)  # refuses what only a dataset takes
    names = ("x", "class_weight", "shuffle")
    kept: dict[str, Any] = {name: given[name] for name in names if name in given}
    once = isinstance(x, types.GeneratorType)
    return Stream(arguments=kept, spec=spec, endless=once, notes=notes)


def _spec_of(arguments: dict[str, Any]) -> tuple[dict[str, Any], DataSpec]:
    """Return the shapes of the data; a generator's first batch is put back in front."""
    x = arguments.get("x")
    if not isinstance(x, types.GeneratorType):
        return arguments, of_fit(arguments)
    first = next(x, None)
    if first is None:
        raise UsageError("the data ended after 0 steps", remedy="repeat it in the generator")
    spec = of_fit({**arguments, "x": iter([first])})
    return {**arguments, "x": _put_back(first, x)}, spec


def _put_back(first: Value, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _repeated(dataset: Dataset) -> Value:
    """Repeat without end; without the last batch of each pass where that may be smaller."""
    count = int(dataset.cardinality())
    if count == tf.data.INFINITE_CARDINALITY:
        return dataset
    first = tf.nest.flatten(dataset.element_spec)[0]
    open_size = bool(first.shape.rank) and first.shape[0] is None
    if not open_size or count <= 1:
        return dataset.repeat()
    if any(kind(stage) in _COMPLETED for stage in walk(dataset)):
        return _all_but_last(dataset, count).repeat()
    return dataset.take(count - 1).repeat()


def _all_but_last(dataset: Dataset, count: int) -> Value:
    """Do as ``take(count - 1)``, but let each pass read its input to the end."""
    numbered = dataset.enumerate().filter(lambda number, _element: number < count - 1)
    kept = numbered.map(lambda _number, element: element)
    return kept.apply(tf.data.experimental.assert_cardinality(count - 1))


def _of_arrays(arguments: dict[str, Any]) -> Value:
    """Return what Keras itself reads arrays by; None for anything else."""
    if not is_arrays(arguments.get("x")):
        return None
    data = tuple(arguments.get(name) for name in ("x", "y", "sample_weight"))
    if share := arguments.get("validation_split"):
        data = without_validation(data, share)
    return data_adapter(
        *data,
        batch_size=arguments.get("batch_size") or DEFAULT_BATCH,
        shuffle=arguments.get("shuffle", True),
        class_weight=arguments.get("class_weight"),
    )


def peeked(stream: Stream) -> tuple[tuple[Any, ...], Stream]:
    """Return the first batch as ``first_batch`` does, and a stream that still has it."""
    x = stream.arguments["x"]
    batch = first_batch(stream)
    if isinstance(x, types.GeneratorType):
        stream = replace(stream, arguments={**stream.arguments, "x": _put_back(batch, x)})
    return batch, stream


def first_batch(stream: Stream) -> tuple[Any, ...]:
    """Return the first batch of a stream as numpy arrays: (x,), (x, y) or (x, y, sample_weight).

    Raises:
        UsageError: The data is empty.
    """
    x = stream.arguments["x"]
    with contextlib.suppress(StopIteration):
        batch = x[0] if hasattr(x, "num_batches") else next(iter(x))
        parts = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
        return tuple(tf.nest.map_structure(_array, part) for part in parts)
    raise UsageError("the data ended after 0 steps", remedy="use --data synthetic")


def _array(value: Value) -> Value:
    array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def randomised(batch: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make a batch of the same shapes: random floats for inputs, all else of its own.

    Whole numbers, texts, labels and weights are rows of the batch in another order, so that ids
    stay within their tables, one-hot rows stay one-hot and masks fit their sequences.
    """
    generator = np.random.default_rng(SEED)
    leading = np.shape(tf.nest.flatten(batch[0])[0])
    order = generator.permutation(leading[0]) if leading else None

    def leaf(value: Value, *, is_input: bool) -> Value:
        low, high = (
            (value.min(), value.max()) if value.dtype.kind in "fu" and value.size else (0, 0)
        )
        flat = low == high
        if is_input and value.dtype.kind == "f":
            low, high = (0.0, 1.0) if flat else (float(low), float(high))
            return generator.uniform(low, high, value.shape).astype(value.dtype)
        if is_input and value.dtype == np.uint8 and flat:  # a stand-in for images
            return generator.integers(0, 256, value.shape, dtype=np.uint8)
        shuffled = order is not None and value.shape[:1] == leading[:1]
        return value[order] if shuffled else value

    return tuple(
        tf.nest.map_structure(lambda value, first=not number: leaf(value, is_input=first), part)
        for number, part in enumerate(batch)
    )


def repeated(batch: tuple[Any, ...]) -> Value:
    """Return the batch again and again through tf.data."""
    return tf.data.Dataset.from_tensors(batch).repeat().prefetch(tf.data.AUTOTUNE)


def ticks() -> Value:
    """Make a dataset that only counts: it drives ``fit`` where the data is on the device."""
    return tf.data.Dataset.from_tensors(np.zeros((1,), np.int32)).repeat()


def on_device(batch: tuple[Any, ...]) -> Value:
    """Return a function that gives the batch, held by the device, to the step that is traced.

    Large tensors are captured as arguments of the traced step. Small ones would become constants
    of the program, which a compiler computes with beforehand: variables do not.
    """

    def held(value: Value) -> Value:
        if np.size(value) > INLINED:
            return tf.identity(tf.constant(value))
        return tf.Variable(value, trainable=False)

    kept = tf.nest.map_structure(held, batch)
    return lambda: tf.nest.map_structure(tf.convert_to_tensor, kept)
