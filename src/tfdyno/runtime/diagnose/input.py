"""The input pipeline by itself, with no model behind it: seconds per batch, and by stage."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tensorflow as tf

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.measure.step_facts import InputFacts
from tfdyno.process.failure import first_line
from tfdyno.runtime.diagnose.stages import (
    Model,
    added,
    between,
    matched,
    model_of,
    operations,
    stage_facts,
)
from tfdyno.runtime.workload.input_rebuild import changed
from tfdyno.runtime.workload.input_stages import kind, title, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Batch, Dataset, Value
    from tfdyno.core.measure.step_facts import StageFacts
    from tfdyno.core.messages.diagnose import Limits

Kind = Literal["dataset", "arrays", "generator", "pydataset", "other"]
_KINDS: dict[str, Kind] = {
    "TFDatasetAdapter": "dataset", "ArrayDataAdapter": "arrays",
    "GeneratorDataAdapter": "generator", "PyDatasetAdapter": "pydataset",
}  # fmt: skip

_WARM_S, _MOST_WARM_S, _WARM_BATCHES = 0.3, 1.0, 3
_MOST_BATCHES = 4_000
_LEAST_BATCHES = 2
MOST_START_S = 10.0
"""What takes longer to give its first batch (a large ``shuffle`` that fills) is begun once only."""
_WHOLE = {"cache", "tf_record", "text_line", "fixed_length_record"}
IN_PYTHON = {"generator", "pydataset"}
"""Sources of one stage, which do not give again what they gave once."""
_NEED_AN_END = {"unique", "concatenate", "snapshot", "group_by_window"}
"""Stages that would wait for ever, or hide the rest, over a source that never ends."""
_READS_FILES = {"ReadFile", "TFRecordDataset", "TFRecordDatasetV2", "TextLineDataset",
                "FixedLengthRecordDataset", "FixedLengthRecordDatasetV2"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a training reads."""

    dataset: Any
    """``tf.data.Dataset`` of batches over all replicas."""
    kind: Kind = "dataset"
    workers: int = 0
    """Threads or processes of a PyDataset that make batches ahead; 0: none."""
    opening: Callable[[], None] = lambda: None
    """Called before each pass over the dataset, where it needs that."""
    closing: Callable[[], None] = lambda: None
    """Called after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A stretch of batches, one after the other."""

    batch_s: tuple[float, ...]
    start_s: float
    """The time until the first batch was there."""
    model: Model
    """What each stage did while those batches were made."""
    busy_s: float
    """CPU seconds of this process per second."""
    read_bytes_per_s: float
    first: Any
    """The first batch."""


def kind_of(adapter: Value) -> Kind:
    """Tell what Keras reads by a data adapter."""
    return _KINDS.get(type(adapter).__name__, "other")


def by_itself(source: Source, limits: Limits) -> tuple[InputFacts | None, Any, str]:
    """Return what ``looked`` gives and no sentence; or nothing, and why the pipeline fails."""
    try:
        return (*looked(source, limits), "")
    except TfdynoError:
        raise
    except Exception as error:  # what the user's functions raise, or what no tf.data.Dataset has
        return None, None, f"The input could not be run by itself: {first_line(error)[:200]}."


def looked(
    source: Source, limits: Limits, *, now: Callable[[], float] = time.perf_counter
) -> tuple[InputFacts, Any]:
    """Run the pipeline of a training by itself for some seconds.

    Args:
        source: What the training reads.
        limits: For how long.
        now: A clock in seconds.

    Returns:
        What was seen, and one batch; None: the data has ended.
    """
    dataset = source.dataset
    alike = endless(dataset)
    if source.kind == "pydataset":
        ran = run_passes(source, limits.alone_s, now)
    else:
        ran = run(alike, limits.alone_s, now)
    written = ran
    if ran.batch_s and source.kind not in IN_PYTHON and ran.start_s <= MOST_START_S:
        alike = flowing(dataset)
        written = run(as_written(alike), limits.stages_s, now)
    stages: tuple[StageFacts, ...] = ()
    with contextlib.suppress(AttributeError, TypeError):  # stages of a later TensorFlow
        spent = matched(alike, written.model)
        stages = stage_facts(dataset, alike, spent, len(written.batch_s), ran.model)
    names = {node.name for node in ran.model.values()}
    facts = InputFacts(
        batch_s=ran.batch_s,
        batch_bytes=bytes_of(ran.first),
        stages=stages,
        kind=source.kind,
        prefetches=source.workers > 0 or "prefetch" in names or _ends_with_prefetch(dataset),
        workers=source.workers,
        is_cached=any(kind(stage) == "cache" for stage in walk(dataset)),
        cpu_ratio=min(1.0, ran.busy_s / (os.cpu_count() or 1)),
        read_bytes_per_s=ran.read_bytes_per_s,
        files=_files(dataset),
        start_s=ran.start_s,
    )
    return facts, ran.first


def run(dataset: Dataset, most_s: float, now: Callable[[], float]) -> Ran:
    """Take batches for so long, or until the dataset ends.

    The first batch and those of a short warm-up are not told: buffers fill, threads start.
    """
    iterator, began = iter(dataset), now()
    first = next(iterator, None)
    start_s = now() - began
    if first is not None:
        _warm_up(iterator, now)
    is_kept = dataset.options().autotune.enabled is not False
    before, used_s, read, since = (
        (model_of(iterator) if is_kept else {}),
        time.process_time(),
        read_bytes(),
        now(),
    )
    batch_s = [] if first is None else _timed(iterator, began + most_s, now)
    spent_s = max(now() - since, 1e-9)
    return Ran(
        batch_s=tuple(batch_s),
        start_s=start_s,
        model=between(before, model_of(iterator)) if is_kept else {},
        busy_s=(time.process_time() - used_s) / spent_s,
        read_bytes_per_s=(read_bytes() - read) / spent_s,
        first=first,
    )


def run_passes(source: Source, most_s: float, now: Callable[[], float]) -> Ran:
    """Take batches for so long pass by pass, as Keras does where workers make them ready ahead.

    All batches of a pass are told with its mean, start of the workers included: they fill their
    queue before the first batch is asked for, which would make the others look free.
    """
    began, used_s, read = now(), time.process_time(), read_bytes()
    batch_s: list[float] = []
    first, start_s = None, 0.0
    while now() - began < most_s:
        opened, taken = now(), 0
        source.opening()
        for element in source.dataset:
            taken += 1
            if first is None:
                first, start_s = element, now() - opened
            if now() - began >= most_s and taken >= _LEAST_BATCHES:
                break
        batch_s += [(now() - opened) / max(1, taken)] * taken
        source.closing()
        if taken < _LEAST_BATCHES:
            break
    spent_s = max(now() - began, 1e-9)
    return Ran(
        batch_s=tuple(batch_s),
        start_s=start_s,
        model={},
        busy_s=(time.process_time() - used_s) / spent_s,
        read_bytes_per_s=(read_bytes() - read) / spent_s,
        first=first,
    )


def _warm_up(iterator: Iterator[Any], now: Callable[[], float]) -> None:
    began = now()
    for taken, _ in enumerate(iterator, start=1):
        if (taken >= _WARM_BATCHES and now() - began >= _WARM_S) or now() - began >= _MOST_WARM_S:
            return


def _timed(iterator: Iterator[Any], until: float, now: Callable[[], float]) -> list[float]:
    batch_s: list[float] = []
    last = now()
    for _ in iterator:
        here = now()
        batch_s.append(here - last)
        last = here
        if (here >= until and len(batch_s) >= _LEAST_BATCHES) or len(batch_s) >= _MOST_BATCHES:
            break
    return batch_s


def endless(dataset: Dataset) -> Value:
    """Return the dataset again and again; one that is empty ends nevertheless."""
    return dataset if _has_no_end(dataset) else added(dataset.repeat())


def _has_no_end(dataset: Dataset) -> bool:
    return bool(int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY)


def flowing(dataset: Dataset) -> Value:
    """Put the same stages over sources that never end, so that none begins anew while timed.

    TensorFlow forgets what a stage took when it ends, which is at once for what lies below a
    large ``shuffle``. Where a pipeline cannot be made again, it is repeated as a whole.
    """
    stages = list(walk(dataset))
    below = {id(each) for stage in stages if _is_source(stage) for each in walk(stage)}
    below -= {id(stage) for stage in stages if _is_source(stage)}

    def change(stage: Dataset, inputs: list[Any]) -> Value:
        if kind(stage) == "assert_cardinality":  # what never ends has another
            return inputs[0]
        is_top = _is_source(stage) and id(stage) not in below
        return None if _has_no_end(stage) or not is_top else added(stage.repeat())

    if any(kind(stage) in _NEED_AN_END for stage in stages):
        return endless(dataset)
    try:
        return endless(changed(dataset, change))
    except UsageError:  # a stage that cannot be made again
        return endless(dataset)


def _is_source(stage: Dataset) -> bool:
    """Return whether a stage is repeated as a whole: a source, also one of files or of Python."""
    return not stage._inputs() or kind(stage) in _WHOLE or title(stage) == "from_generator"


def as_written(dataset: Dataset) -> Value:
    """Return the same stages without what TensorFlow would rewrite: fused, added, made parallel."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def _ends_with_prefetch(dataset: Dataset) -> bool:
    kinds = [kind(stage) for stage in walk(dataset)]
    while kinds and kinds[-1] in ("options", "repeat", "take", "restructured"):
        kinds.pop()
    return bool(kinds) and kinds[-1] == "prefetch"


def bytes_of(batch: Batch) -> int:
    """Return bytes of the tensors of a batch, of texts their characters."""
    total = 0
    for leaf in tf.nest.flatten(batch, expand_composites=True):
        if getattr(leaf, "dtype", None) == tf.string:
            total += sum(map(len, np.ravel(leaf.numpy())))
        elif hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
            total += math.prod(leaf.shape) * tf.as_dtype(leaf.dtype).size
    return total


def _files(dataset: Dataset) -> int:
    """Return files whose names a source of the pipeline holds, where a stage reads files."""
    stages = list(walk(dataset))
    named = sum(_names(getattr(stage, "_filenames", None)) for stage in stages)
    if named:
        return named
    if not any(_READS_FILES.intersection(operations(stage)) for stage in stages):
        return 0
    texts = [stage for stage in stages if kind(stage) == "tensor_slice" and _gives_text(stage)]
    return max([int(stage.cardinality()) for stage in texts], default=0)


def _gives_text(stage: Dataset) -> bool:
    return any(spec.dtype == tf.string for spec in tf.nest.flatten(stage.element_spec))


def _names(names: Value) -> int:
    if isinstance(names, tf.data.Dataset):
        return max(0, int(names.cardinality()))
    return int(tf.size(names)) if names is not None else 0


def read_bytes(counter: Literal["rchar", "read_bytes"] = "rchar") -> int:
    """Return bytes that this process has read so far; 0: not known.

    Args:
        counter: ``rchar``: from files that lie in memory too; ``read_bytes``: from the disk alone.

    Source: proc_pid_io(5).
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        words = Path("/proc/self/io").read_text(encoding="ascii").split()
        return int(words[words.index(f"{counter}:") + 1])
    return 0
