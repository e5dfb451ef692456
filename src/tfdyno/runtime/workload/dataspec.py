"""What ``fit`` was given, as shapes and types: arrays, tf.data, PyDataset, generators."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Saving, Validation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Batch, Dataset, Structure, Tensor, Value

DEFAULT_BATCH = 32  # of Keras' fit for arrays
NARROWER = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One tensor of a batch: its shape without the batch (None: unknown) and its type."""

    shape: tuple[int | None, ...]
    dtype: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSpec:
    """The batches of a dataset: structures (single, list, tuple, dict) of ``Leaf``."""

    x: Any
    y: Any = None
    sample_weight: Any = None
    batch_size: int = 0
    """0: not named by the script."""
    samples_per_epoch: int = 0
    """0: unknown."""
    epochs: int = 0
    validation: Validation | None = None
    """None: not looked for."""
    savings: tuple[Saving, ...] = ()
    read: Callable[[], DataSpec] | None = field(default=None, compare=False)
    """Reads the first batch of a dataset, which knows every size; None: all are known."""


def of_fit(arguments: dict[str, Any]) -> DataSpec:
    """Return the data of a call of ``fit``, from its bound arguments.

    Raises:
        UsageError: The first argument is of a kind that Keras does not train on either.
    """
    x = arguments.get("x")
    found = _of_source(x)
    if found is None:
        found = _of_arrays(arguments)
    if arguments.get("class_weight") is not None and found.sample_weight is None:
        found = replace(found, sample_weight=Leaf(shape=(), dtype="float32", name="class_weight"))
    steps = arguments.get("steps_per_epoch")
    samples = steps * found.batch_size if steps else found.samples_per_epoch
    return replace(found, samples_per_epoch=samples, epochs=int(arguments.get("epochs") or 1))


def validation_of(arguments: dict[str, Any]) -> Validation:
    """Return what a call of ``fit`` validates; of a generator it takes a batch."""
    try:
        often: Any = arguments.get("validation_freq") or 1
        named = tuple(map(int, often)) if hasattr(often, "__iter__") else ()
        return Validation(
            samples=_validated_samples(arguments),
            every_epochs=1 if named else int(often),
            in_epochs=named,
        )
    except Exception:  # the user's data may fail in any way: the training is estimated without it
        return Validation(samples=None)


def savings_of(arguments: dict[str, Any]) -> tuple[Saving, ...]:
    """Return how often the callbacks of a call of ``fit`` save the model."""
    import keras

    given = arguments.get("callbacks") or ()
    listed = getattr(given, "callbacks", given)  # also of a CallbackList
    kinds = (keras.callbacks.ModelCheckpoint, keras.callbacks.BackupAndRestore)
    return tuple(
        Saving(
            every_batches=0 if one.save_freq == "epoch" else int(one.save_freq),
            only_best=bool(getattr(one, "save_best_only", False)),
        )
        for one in (listed if isinstance(listed, list | tuple) else (listed,))
        if isinstance(one, kinds) and one.save_freq
    )


def _validated_samples(arguments: dict[str, Any]) -> int | None:
    data, share = arguments.get("validation_data"), arguments.get("validation_split")
    if data is None and not share:
        return 0
    batch = arguments.get("validation_batch_size") or arguments.get("batch_size") or DEFAULT_BATCH
    if data is None:
        samples = _split_off(_length(arguments.get("x")), share)
    elif isinstance(data, tuple | list):
        samples = _length(data[0])
    elif found := _of_source(data):
        samples, batch = found.samples_per_epoch, found.batch_size
    else:
        samples = _length(data)
    most = int(arguments.get("validation_steps") or 0) * int(batch)
    return (min(samples, most) if samples and most else samples or most) or None


def _split_off(samples: int, share: Value) -> int:
    return math.ceil(samples * float(share or 0.0))


def of_batch(*arrays: Any) -> DataSpec:
    """Return the data of ``train_on_batch(x, y, sample_weight)``: one batch of arrays."""
    x, y, weight = (*arrays, None, None, None)[:3]
    return DataSpec(
        x=_leaves(x), y=_leaves(y), sample_weight=_leaves(weight), batch_size=_length(x)
    )


def of_dataset(data: Dataset) -> DataSpec:
    """Return the data of a function that returns a dataset or a tuple of arrays."""
    if isinstance(data, tuple):
        return of_fit(dict(zip(("x", "y", "sample_weight"), data, strict=False)))
    return of_fit({"x": data})


def with_batch_size(data: DataSpec) -> DataSpec:
    """Give the data the size of their first batch, where nothing else says how many it has."""
    if data.batch_size or data.read is None:
        return data
    return replace(data, batch_size=data.read().batch_size)


def leaves(structure: Structure) -> Iterator[Leaf]:
    """Walk every ``Leaf`` of a structure in its own order."""
    if isinstance(structure, Leaf):
        yield structure
    elif isinstance(structure, dict):
        for value in structure.values():
            yield from leaves(value)
    elif isinstance(structure, tuple | list):
        for value in structure:
            yield from leaves(value)


def mapped(structure: Structure, function: Callable[[Leaf], Any]) -> Value:
    """Return a structure with what the function gives for each ``Leaf``, in its own order."""
    if isinstance(structure, Leaf):
        return function(structure)
    if isinstance(structure, dict):
        return {key: mapped(value, function) for key, value in structure.items()}
    if isinstance(structure, tuple | list):
        return type(structure)([mapped(value, function) for value in structure])
    return structure


def _of_source(x: Tensor) -> DataSpec | None:
    """Return the spec of a dataset-like object; None for arrays."""
    if hasattr(x, "element_spec"):
        return _of_tensorflow(x)
    if hasattr(x, "__getitem__") and hasattr(x, "num_batches"):  # keras.utils.PyDataset
        return _of_batches(x[0], x.num_batches or 0)
    if type(x).__module__.startswith("torch.utils.data"):
        return _of_batches(next(iter(x)), len(x))
    if hasattr(x, "__next__"):
        return _of_batches(next(x), 0)
    return None


def _of_tensorflow(dataset: Dataset) -> DataSpec:
    spec = dataset.element_spec
    parts = spec if isinstance(spec, tuple) else (spec,)
    x, y, weight = (*(_leaves(part) for part in parts), None, None, None)[:3]
    batch = _first_dimension(parts[0]) or _batch_of_pipeline(dataset)
    count = int(dataset.cardinality())
    samples = count * batch if count > 0 else 0
    return DataSpec(
        x=x,
        y=y,
        sample_weight=weight,
        batch_size=batch,
        samples_per_epoch=samples,
        read=cache(lambda: _of_batches(next(iter(dataset), None), 0)),
    )


def _batch_of_pipeline(dataset: Dataset) -> int:
    """Return the batch size of the last ``batch`` in a tf.data pipeline, 0 if there is none."""
    for _ in range(100):
        size = getattr(dataset, "_batch_size", None)
        if size is not None:
            return int(size)
        zipped = getattr(dataset, "_datasets", None)
        while isinstance(zipped, tuple | list | dict) and zipped:
            zipped = next(iter(zipped.values() if isinstance(zipped, dict) else zipped))
        within = (getattr(dataset, name, None) for name in ("_input_dataset", "_dataset"))
        dataset = next((each for each in within if each is not None), zipped)
    return 0


def _of_batches(batch: Batch, count: int) -> DataSpec:
    parts = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
    found = of_batch(*parts)
    return replace(found, samples_per_epoch=found.batch_size * count)


def _of_arrays(arguments: dict[str, Any]) -> DataSpec:
    x = arguments.get("x")
    found = of_batch(x, arguments.get("y"), arguments.get("sample_weight"))
    samples = found.batch_size
    if not samples:
        raise UsageError(
            "fit was called with data that has no first dimension",
            why=f"its first argument is of type {type(x).__name__}",
            remedy="give arrays, a tf.data.Dataset, a PyDataset or a generator",
        )
    if arguments.get("validation_data") is None:  # which wins over a split
        samples -= _split_off(samples, arguments.get("validation_split"))
    batch = int(arguments.get("batch_size") or DEFAULT_BATCH)
    return replace(found, batch_size=batch, samples_per_epoch=samples)


def _leaves(structure: Structure) -> Value:
    """Return a structure of arrays or tensor specs as the same structure of ``Leaf``."""
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {key: _leaves(value) for key, value in structure.items()}
    if isinstance(structure, tuple | list) and any(map(_is_array, islice(structure, 4))):
        return type(structure)(_leaves(value) for value in structure)
    return _leaf(structure)


def _is_array(value: Value) -> bool:
    return hasattr(value, "shape") or isinstance(value, dict)


def _leaf(value: Value) -> Leaf:
    if not hasattr(value, "shape"):
        import numpy

        value = numpy.asarray(value)
    if getattr(value, "ragged_rank", 0):
        raise UsageError(
            "the dataset has ragged tensors",
            why="their size differs from batch to batch",
            remedy="pad them to one length (to_tensor) in the dataset",
        )
    dtypes = getattr(value, "dtypes", None)  # a pandas table has one per column
    dtype = str(getattr(value.dtype, "name", value.dtype)) if dtypes is None else "float32"
    if getattr(value.shape, "rank", 0) is None:
        raise UsageError(
            "the dataset does not say how many dimensions its batches have",
            why="Keras does not train on tensors of unknown rank",
            remedy="give from_generator an output_signature, or call tf.ensure_shape in a map",
        )
    return Leaf(shape=tuple(value.shape)[1:], dtype=NARROWER.get(dtype, dtype))


def _length(structure: Structure) -> int:
    while isinstance(structure, dict | tuple | list) and structure:
        first = next(iter(structure.values())) if isinstance(structure, dict) else structure[0]
        if not _is_array(first):
            return len(structure)
        structure = first
    return int(structure.shape[0]) if getattr(structure, "shape", ()) else 0


def _first_dimension(structure: Structure) -> int:
    while isinstance(structure, dict | tuple | list) and structure:
        structure = next(iter(structure.values())) if isinstance(structure, dict) else structure[0]
    shape = getattr(structure, "shape", None)
    rank = getattr(shape, "rank", 0) if shape is not None else 0
    return int(shape[0] or 0) if shape is not None and rank else 0
