"""Child process: read a data set before and after its conversion, in turns."""

from __future__ import annotations

import importlib.util
import math
import time
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import ToolError
from tfdyno.core.deploy.dataset import READER
from tfdyno.core.messages.data import COMPARE_READING, CompareReading, ReadRates
from tfdyno.model.measure.statistics import CONFIDENCE_RATIO, paired
from tfdyno.process import child
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.software import tensorflow_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import ModuleType

    from tfdyno.core.base.untyped import Batch, Dataset, Value
    from tfdyno.core.deploy.dataset import Feature

TURN_S = 1.0
"""The least time of each side each time."""
LEAD_S = 0.5
"""The part of a turn in the middle of an epoch until the pipeline has found its pace, not timed."""
MOST_TIMES = 2
"""So many times the asked turns, where they differ much: other programs are at work."""
TARGET_RATIO = 0.05
EPOCH_S = 3.0
"""What takes longer is measured in the middle of an epoch."""
CSV_SHUFFLE = 10_000
"""Rows in the buffer that both sides shuffle with: the default of ``make_csv_dataset``."""


def handle(request: CompareReading, progress: child.Progress) -> ReadRates:
    """Read both sides in turns (A B B A) and tell their rates.

    Raises:
        UsageError: There is no TensorFlow.
        ToolError: One of them cannot be read.
    """
    progress("importing TensorFlow")
    tensorflow_for("data convert")
    import tensorflow as tf

    try:
        original, pipeline = _original(request)
        sides = (original, _converted(request))
        progress("reading both once")
        soon = [_ends_soon(side) for side in sides]  # both, also to warm up
        whole = all(soon)
        found: tuple[list[float], list[float]] = ([], [])
        for pair in range(MOST_TIMES * request.pairs):
            if pair >= request.pairs and _is_known(*found):
                break
            progress(f"reading both in turns: {pair + 1} of at least {request.pairs}")
            for side in ((0, 1), (1, 0))[pair % 2]:
                found[side].append(_rate(sides[side], whole=whole))
    except (tf.errors.OpError, ValueError) as error:
        raise ToolError("the data could not be read", why=first_line(error)) from None
    return ReadRates(
        before_per_s=tuple(found[0]),
        after_per_s=tuple(found[1]),
        before_pipeline=pipeline,
        whole_epochs=whole,
    )


def _is_known(before_per_s: list[float], after_per_s: list[float]) -> bool:
    """Return whether the ratio is known to ``TARGET_RATIO``, whatever it is."""
    half = paired(before_per_s, after_per_s).half_width(CONFIDENCE_RATIO)
    return half <= math.log1p(TARGET_RATIO)


def _converted(request: CompareReading) -> Value:
    """Read it by the code that stands beside it for the user."""
    reader = loaded(request.folder / READER)
    is_encoded = any(one.role == "image" for one in request.features)
    more: dict[str, Any] = {"image_size": request.image_size} if is_encoded else {}
    if request.settings.kind == "csv":
        more["shuffle"] = CSV_SHUFFLE
    return reader.read(batch_size=request.batch_size, **more)


def loaded(path: Path) -> ModuleType:
    """Return a Python file as a module of its own."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _original(request: CompareReading) -> tuple[Any, str]:
    """Read it as those do who follow TensorFlow's guides, and name that call."""
    import tensorflow as tf

    if request.settings.kind == "images":
        data = tf.keras.utils.image_dataset_from_directory(
            str(request.source),
            image_size=request.image_size,
            batch_size=request.batch_size,
        )
        return data, "keras.utils.image_dataset_from_directory"
    data = tf.data.experimental.make_csv_dataset(
        [_no_pattern(str(request.source))],
        batch_size=request.batch_size,
        column_names=[one.name for one in request.features],
        column_defaults=[_default(one) for one in request.features],
        label_name=request.settings.label or None,
        field_delim=request.settings.delimiter,
        num_epochs=1,
        shuffle_buffer_size=CSV_SHUFFLE,
    )
    if request.classes:
        data = data.map(_looked_up(request.classes), num_parallel_calls=tf.data.AUTOTUNE)
        data = data.prefetch(tf.data.AUTOTUNE)
    return data, "tf.data.experimental.make_csv_dataset"


def _no_pattern(path: str) -> str:
    """Return a path that ``tf.io.gfile.glob`` takes as it is."""
    return "".join(f"\\{one}" if one in "*?[\\" else one for one in path)


def _default(feature: Feature) -> Value:
    """Return what stands for an empty cell, by its type; where none may be empty, the type."""
    import tensorflow as tf

    if feature.role == "class":
        return tf.string
    if feature.dtype == "int64":
        return tf.int64
    if feature.dtype == "float32":
        return tf.constant([float("nan")], tf.float32)
    return tf.constant([""], tf.string)


def _looked_up(classes: Sequence[str]) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return labels as the places of their classes, as the converted data has them."""
    import tensorflow as tf

    places = tf.range(len(classes), dtype=tf.int64)
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(list(classes)), places), default_value=-1
    )
    return lambda columns, label: (columns, table.lookup(label))


def _ends_soon(data: Dataset) -> bool:
    """Return whether an epoch takes no longer than ``EPOCH_S``."""
    until_s = time.monotonic() + EPOCH_S
    return all(time.monotonic() < until_s for _ in data)


def _rate(data: Dataset, *, whole: bool) -> float:
    """Return records per second of one turn.

    Whole epochs count with their beginning and end; in the middle of one, a pipeline that has just
    filled its buffers is not timed until it has found its pace.
    """
    if whole:
        seen, began_s = 0, time.monotonic()
        while time.monotonic() - began_s < TURN_S:
            seen += sum(map(_size, data))
        return seen / (time.monotonic() - began_s)
    batches = iter(data.repeat())
    next(batches)  # waits until all buffers are full
    _drawn_per_s(batches, LEAD_S)
    return _drawn_per_s(batches, TURN_S)


def _drawn_per_s(batches: Iterator[Any], seconds_s: float) -> float:
    seen, began_s = 0, time.monotonic()
    for batch in batches:
        seen += _size(batch)
        if (past_s := time.monotonic() - began_s) >= seconds_s:
            break
    return seen / past_s


def _size(batch: Batch) -> int:
    """Return records of a batch."""
    import tensorflow as tf

    return int(tf.nest.flatten(batch)[0].shape[0])


if __name__ == "__main__":
    child.leave(child.serve(handle, COMPARE_READING))
