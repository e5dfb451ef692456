"""The input options of a recipe, put onto the dataset that Keras is about to read."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import InputOptions, Recipe, diff
from tfdyno.runtime.workload.input_cache import with_cache
from tfdyno.runtime.workload.input_rebuild import changed, in_order, interleaved, mapped, shuffled
from tfdyno.runtime.workload.input_stages import effects, kind, of_keras_arrays, title, walk

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Value
    from tfdyno.runtime.workload.input_stages import Effects


def with_input_options(dataset: Dataset, options: InputOptions) -> tuple[Any, tuple[str, ...]]:
    """Return the dataset with the options, and sentences on what was done with each.

    The elements and their order stay as they are for the same seed, unless ``shuffle_buffer``
    or ``deterministic`` ask for another order.

    Args:
        dataset: A ``tf.data.Dataset`` that is not distributed yet: the user's own, or what Keras
            makes of arrays, of a generator or of a PyDataset.
        options: Where they are the defaults, the dataset itself comes back.

    Raises:
        UsageError: An option cannot be applied; names the stage that is in the way.
    """
    if options == InputOptions():
        return dataset, ()
    if not isinstance(dataset, tf.data.Dataset):
        raise _no_pipeline(dataset, options)
    notes: list[str] = []
    if options.shuffle_buffer:
        dataset = _with_buffer(dataset, options.shuffle_buffer, notes)
    if options.parallel_calls:
        dataset = _with_calls(dataset, options, notes)
    if options.deterministic is not None:
        dataset = _with_order(dataset, ordered=options.deterministic)
    if options.cache:
        dataset = with_cache(dataset, notes)
    if options.prefetch:
        dataset = _with_prefetch(dataset, options.prefetch)
        notes.append(f"prefetch: {_number(options.prefetch, 'batches')} are made ready ahead.")
    return _with_options(dataset, options), tuple(notes)


def _no_pipeline(data: Value, options: InputOptions) -> UsageError:
    """Say that there is nothing to set the options on; on JAX arrays are no pipeline either."""
    kind_of_data = type(data).__name__
    if keras.backend.backend() != "jax":
        return UsageError(f"the input options cannot be set for a {kind_of_data}",
                          remedy="give fit a tf.data.Dataset or arrays")  # fmt: skip
    names = (name for name in diff(Recipe(), Recipe(input=options)) if name.startswith("input."))
    what = f"{next(names)} cannot be set for a {kind_of_data} on the JAX backend"
    why = "Keras reads it without tf.data there"
    return UsageError(what, why=why, remedy="give fit a tf.data.Dataset")


def _number(count: int, of: str) -> str:
    return f"as many {of} as TensorFlow chooses" if count < 0 else f"{count} {of}"


def _with_buffer(dataset: Dataset, buffer: int, notes: list[str]) -> Value:
    if of_keras_arrays(dataset):
        notes.append("shuffle_buffer changes nothing: Keras shuffles arrays as a whole.")
        return dataset
    found = [stage for stage in walk(dataset) if kind(stage) == "shuffle"]
    if not found:
        notes.append("shuffle_buffer changes nothing: the pipeline does not shuffle.")
        return dataset
    had = ", ".join(str(int(stage._buffer_size)) for stage in found)
    notes.append(f"shuffle_buffer: shuffle draws from {buffer} elements (it had {had}).")
    is_shuffle = {id(stage) for stage in found}
    return changed(
        dataset, lambda s, inputs: shuffled(s, inputs[0], buffer) if id(s) in is_shuffle else None
    )


def _with_calls(dataset: Dataset, options: InputOptions, notes: list[str]) -> Value:
    calls, done, told = options.parallel_calls, [], len(notes)
    makers = {"map": mapped, "interleave": interleaved}
    arrays = of_keras_arrays(dataset)

    def change(stage: Dataset, inputs: list[Any]) -> Value:
        if kind(stage) not in makers or (arrays and title(stage) != "map(grab_batch)"):
            return None
        if stage._map_func._func.__module__.startswith("tensorflow."):  # not the user's work
            return None
        found = effects(stage)
        reason = _in_turn(found)
        if reason and options.deterministic is not False and not _is_parallel(stage):
            notes.append(f"{title(stage)} still works on one element at a time: {reason}")
            return None
        if found.python:
            notes.append(
                f"{title(stage)} runs Python code on several threads: if it draws random numbers, "
                "a seed does not repeat them."
            )
        done.append(title(stage))
        return makers[kind(stage)](stage, inputs[0], calls)

    made = changed(dataset, change)
    if done:
        notes.append(f"parallel_calls: {_number(calls, 'elements')} at once in {', '.join(done)}.")
    elif len(notes) == told:
        notes.append("parallel_calls changes nothing: the pipeline has no map and no interleave.")
    return made


def _in_turn(found: Effects) -> str:
    """Return why the function must see the elements one after the other; empty: it need not."""
    if found.draws:
        return (
            f"it draws random numbers ({found.draws}), which a seed would not repeat; use the "
            "tf.random.stateless_ functions."
        )
    return f"each element changes what the next one meets ({found.keeps})." if found.keeps else ""


def _is_parallel(stage: Dataset) -> bool:
    return "Parallel" in type(stage).__name__


def _with_order(dataset: Dataset, *, ordered: bool) -> Value:
    """Return the stages that were told one by one, which counts more than ``tf.data.Options``."""

    def change(stage: Dataset, inputs: list[Any]) -> Value:
        if not _is_parallel(stage) or getattr(stage, "_deterministic", "") == "default":
            return None
        return in_order(stage, inputs[0], ordered=ordered)

    return changed(dataset, change)


def _with_prefetch(dataset: Dataset, count: int) -> Value:
    last = list(itertools.takewhile(lambda s: kind(s) in ("prefetch", "options"), _down(dataset)))
    old = [stage for stage in last if kind(stage) == "prefetch"]
    if not old:
        return dataset.prefetch(count)
    return changed(dataset, lambda s, inputs: inputs[0].prefetch(count) if s is old[0] else None)


def _down(dataset: Dataset) -> Value:
    """Yield the stages from the last one down, as long as each has one input."""
    while True:
        yield dataset
        below = dataset._inputs()
        if len(below) != 1:
            return
        dataset = below[0]


def _with_options(dataset: Dataset, options: InputOptions) -> Value:
    wanted = tf.data.Options()
    if options.deterministic is not None:
        wanted.deterministic = options.deterministic
    if options.private_threads:
        wanted.threading.private_threadpool_size = options.private_threads
    return dataset.with_options(wanted) if wanted != tf.data.Options() else dataset
