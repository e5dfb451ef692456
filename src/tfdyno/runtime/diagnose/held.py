"""The step on one batch that is held again and again: what it takes without waiting for data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.process.failure import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Batch, Spec, Value

SEVERAL_WORKERS = "The step of several workers was not run without its data."
"""The others would wait for it, or it for them."""
MOST_STEPS = 200
_LEAST_STEPS = 3
_HELD_TIMES = 100
"""Begun anew, an iterator costs as much as a small step; so it is after so many batches."""
_WARM_S, _WARM_STEPS = 0.5, 3


def held_dataset(batch: Batch, element_spec: Spec = None) -> Value:
    """Return one batch without end, with the open sizes of the dataset that it is from.

    A step is traced for the shapes of its iterator: with others it would be traced again. No
    thread makes anything ready ahead, which would cost more than taking the batch.
    """
    once = tf.data.Dataset.from_tensors(batch)
    if element_spec not in (None, once.element_spec) and _is_plain(element_spec):
        once = once.map(lambda *parts: _opened(parts, element_spec))
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    held = once.repeat(_HELD_TIMES).cache().repeat().with_options(options)
    for _ in held.take(_HELD_TIMES):  # fills the cache, with references to the same memory
        pass
    return held


def _is_plain(element_spec: Spec) -> bool:
    return all(isinstance(spec, tf.TensorSpec) for spec in tf.nest.flatten(element_spec))


def _opened(parts: tuple[Any, ...], element_spec: Spec) -> Value:
    """Return a batch's parts, which ``map`` gives one by one, open sizes and in their order."""
    given = zip(tf.nest.flatten(parts), tf.nest.flatten(element_spec), strict=True)
    opened = [
        tf.raw_ops.PlaceholderWithDefault(input=value, shape=spec.shape) for value, spec in given
    ]
    return tf.nest.pack_sequence_as(element_spec, opened)


def leading(batch: Batch) -> int:
    """Return the first dimension of a batch's first tensor; 0: it has none."""
    first = next(iter(tf.nest.flatten(batch)), None)
    if isinstance(first, tf.RaggedTensor):
        return int(first.nrows())
    if isinstance(first, tf.SparseTensor):
        return int(first.dense_shape[0])
    shape = tuple(getattr(first, "shape", ()))
    return int(next(iter(shape), 0) or 0)


def not_repeated(error: Exception) -> str:
    """Return the sentence for a step that failed on a batch it had been run on before."""
    return f"The step could not be repeated: {first_line(error)[:200]}."


def timed_steps(
    step: Callable[[], Any],
    most_s: float,
    *,
    count: int = 1,
    sync: Callable[[], None] | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> tuple[float, ...]:
    """Return seconds of each step, one call after the other for so long, a short warm-up left out.

    Args:
        step: One call.
        most_s: For so long, but for a few steps that always run.
        count: Steps in a call.
        sync: Waits for the device; then what is told is the mean. None: a call returns when its
            work is done.
        now: A clock in seconds.
    """
    began = now()
    for _ in range(_WARM_STEPS):
        step()
        if now() - began > _WARM_S:
            break
    if sync:
        sync()
    taken: list[float] = []
    began = last = now()
    while (last - began < most_s or len(taken) < _LEAST_STEPS) and len(taken) < MOST_STEPS:
        step()
        here = now()
        taken.append((here - last) / count)
        last = here
    if sync:
        sync()
        return ((now() - began) / len(taken) / count,) * len(taken)
    return tuple(taken)
