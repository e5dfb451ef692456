"""Where a pipeline may keep its elements in memory without changing what is learned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import format_bytes
from tfdyno.runtime.workload.input_rebuild import rebuilt
from tfdyno.runtime.workload.input_stages import (
    PLAIN,
    SOURCES,
    effects,
    kind,
    of_keras_arrays,
    order_is_free,
    reshuffles,
    times,
    title,
    walk,
)

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Value

_IN_MEMORY = {"enumerate", "range", "tensor", "tensor_slice", "sparse_tensor_slice"}
_REASONS = {
    "draws": "draws random numbers",
    "python": "runs Python code, which may give something else each time",
    "keeps": "keeps a state from epoch to epoch",
    "reads": "reads a variable, which may change",
    "shuffles": "shuffles",
    "captures": "uses a dataset made outside of it",
}


def with_cache(dataset: Dataset, notes: list[str]) -> Value:
    """Return the pipeline with ``cache`` after the last stages that are the same in every epoch.

    Args:
        dataset: The last stage.
        notes: Gets sentences on where it stands, or why it is of no use.

    Raises:
        UsageError: Something that is not the same in every epoch comes before all work.
    """
    if any(kind(stage) == "cache" for stage in walk(dataset)):
        notes.append("cache changes nothing: the pipeline has one of its own.")
        return dataset
    if of_keras_arrays(dataset) or not any(_is_work(stage) for stage in walk(dataset)):
        notes.append("cache changes nothing: the data are in memory already.")
        return dataset
    placed: list[Any] = []
    made = _placed(dataset, dataset.options().deterministic is False, placed)
    if not placed:
        stage, reason = next(_differing(dataset, dataset.options().deterministic is False))
        raise UsageError("cache has no place where it changes nothing that is learned",
                         why=f"{title(stage)} {reason}, and what comes before is in memory",
                         remedy="leave input.cache out, or put the work before it")  # fmt: skip
    for stage in placed:
        notes.append(f"cache stands after {title(stage)}{_size(stage)}.")
    kept = {id(each) for stage in placed for each in walk(stage)}
    partial = [s for s in walk(dataset) if kind(s) in ("take", "take_while") and id(s) not in kept]
    if partial:
        notes.append(f"cache is of use only if {title(partial[-1])} takes all that is in it.")
    return made


def _is_work(stage: Dataset) -> bool:
    """Return whether a stage does what is worth keeping: it computes or reads files."""
    return bool(stage._functions()) or (not stage._inputs() and kind(stage) not in _IN_MEMORY)


def _placed(stage: Dataset, free: bool, placed: list[Any]) -> Value:
    """Return the stage with caches as late as possible in it and before it."""
    passes_on = kind(stage) in ("prefetch", "options")
    if not passes_on and next(_differing(stage, free), None) is None:
        if not any(_is_work(each) for each in walk(stage)):
            return stage
        placed.append(stage)
        return stage.cache()
    inputs = [_placed(below, free, placed) for below in stage._inputs()]
    same = all(a is b for a, b in zip(inputs, stage._inputs(), strict=True))
    return stage if same else rebuilt(stage, inputs)


def _differing(dataset: Dataset, free: bool) -> Value:
    """Yield the stages that differ between epochs, with what they do, from the source on."""
    for stage in walk(dataset):
        reason = _reason(stage, free)
        if reason:
            yield stage, reason


def _reason(stage: Dataset, free: bool) -> str:
    name = kind(stage)
    if name == "random" or reshuffles(stage):
        return "gives another order in each epoch"
    if name == "repeat" and times(stage) != 1:
        return "repeats the data"
    if name not in SOURCES | PLAIN | {"shuffle", "repeat"}:
        return "cannot be looked into"
    found = effects(stage)
    reasons = [text for each, text in _REASONS.items() if getattr(found, each)]
    if reasons:
        return reasons[0]
    return "gives its elements in no fixed order" if order_is_free(stage, free=free) else ""


def _size(stage: Dataset) -> str:
    """Return what it takes, where shapes and the number of elements are known."""
    count = int(stage.cardinality())
    of_one_bytes = 0
    for spec in tf.nest.flatten(stage.element_spec):
        shape = spec.shape if isinstance(spec, tf.TensorSpec) else None
        if count < 1 or shape is None or not shape.is_fully_defined() or spec.dtype == tf.string:
            return ""
        of_one_bytes += math.prod(shape.as_list()) * spec.dtype.size
    return f", {format_bytes(count * of_one_bytes)} of memory"
