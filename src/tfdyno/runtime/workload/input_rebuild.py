"""A ``tf.data`` pipeline made again from its stages, with some of them changed.

A stage of a dataset cannot be changed, so it and all that come after it are made anew. Functions
are taken over as TensorFlow traced them, and a shuffle keeps its seeds: the elements stay the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.tensorflow_internals import stage_over
from tfdyno.runtime.workload.input_stages import kind, title

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Dataset, Function, Value

    Change = Callable[[Any, list[Any]], Any]

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "batch": ("_batch_size", "_drop_remainder"),
    "rebatch": ("_batch_sizes", "_drop_remainder"),
    "window": ("_size", "_shift", "_stride", "_drop_remainder"),
    "take": ("_count",), "skip": ("_count",), "repeat": ("_count",),
    "shard": ("_num_shards", "_index", "_name"),
    "prefetch": ("_buffer_size",),
    "restructured": ("_element_spec",),
    "unbatch": (), "unique": (), "assert_cardinality": ("_expected_cardinality",),
}  # fmt: skip
"""What the class of a stage takes after its input, by the attributes that keep it."""
_ORDER = {None: "default", True: "true", False: "false"}


def changed(dataset: Dataset, change: Change) -> Value:
    """Return the pipeline with what ``change`` gives for its stages.

    Args:
        dataset: The last stage.
        change: Called with each stage and its inputs as they are now; returns the stage that
            takes its place, or None where it stays as it is.

    Raises:
        UsageError: A stage after a changed one cannot be made again; names it.
    """
    made: dict[int, Any] = {}

    def visit(stage: Dataset) -> Value:
        if id(stage) not in made:
            inputs = [visit(below) for below in stage._inputs()]
            new = change(stage, inputs)
            same = all(a is b for a, b in zip(inputs, stage._inputs(), strict=True))
            made[id(stage)] = (stage if same else rebuilt(stage, inputs)) if new is None else new
        return made[id(stage)]

    return visit(dataset)


def rebuilt(stage: Dataset, inputs: list[Any]) -> Value:
    """Return the same stage over other inputs with elements of the same kind.

    Raises:
        UsageError: No way to make a stage of its class again is known.
    """
    name, cls = kind(stage), type(stage)
    if cls.__name__ == "_ParallelBatchDataset":
        return in_order(stage, inputs[0], ordered=None)
    if name in _ARGUMENTS:
        return cls(inputs[0], *[_plain(getattr(stage, each)) for each in _ARGUMENTS[name]])
    if name == "padded_batch":
        size, cut = _plain(stage._batch_size), _plain(stage._drop_remainder)
        return cls(inputs[0], size, stage._padded_shapes, stage._padding_values, cut)
    if name in _WITH_FUNCTIONS:
        return _WITH_FUNCTIONS[name](stage, inputs[0])
    if name == "cache":
        return inputs[0].cache(stage._filename)
    if name == "options":
        return cls(inputs[0], stage.options())
    if name == "zip":
        return cls(tf.nest.pack_sequence_as(stage._datasets, inputs))
    if name == "concatenate":
        return cls(*inputs)
    if name == "directed_interleave":
        return cls(inputs[0], inputs[1:], stage._stop_on_empty_dataset)
    raise UsageError(f"the input options cannot reach what comes before {title(stage)}",
                     why=f"a stage of the class {cls.__name__} cannot be made again",
                     remedy="set them in the code that builds the dataset")  # fmt: skip


def _plain(value: Value) -> Value:
    """Return a scalar tensor as a Python number, as the constructors take it at best."""
    if isinstance(value, tf.Tensor) and value.shape.rank == 0:
        return value.numpy().item()
    return value


def _call(stage: Dataset, below: Dataset, function: Function) -> dict[str, Any]:
    graph = function.function
    return {"input_dataset": below._variant_tensor, "other_arguments": graph.captured_inputs,
            "f": graph, **stage._common_args}  # fmt: skip


def shuffled(stage: Dataset, below: Dataset, buffer: int = 0) -> Value:
    """Make the same ``shuffle`` with the same seeds, over ``buffer`` elements (0: as it had)."""
    size = tf.constant(buffer, tf.int64) if buffer else stage._buffer_size
    variant = tf.raw_ops.ShuffleDatasetV3(
        input_dataset=below._variant_tensor, buffer_size=size, seed=stage._seed,
        seed2=stage._seed2, seed_generator=tf.raw_ops.DummySeedGenerator(),
        reshuffle_each_iteration=stage._reshuffle_each_iteration is not False,
        **stage._common_args,
    )  # fmt: skip
    made = stage_over(stage, below, variant)
    made._buffer_size = size
    return made


def mapped(stage: Dataset, below: Dataset, calls: int = 0, ordered: bool | None = None) -> Value:
    """Return the same ``map`` over ``calls`` elements at once.

    Args:
        stage: A map, parallel or not.
        below: Its input.
        calls: -1: TensorFlow chooses; 0: as many as it had.
        ordered: Whether the elements keep their order; None: as it was.
    """
    common = _call(stage, below, stage._map_func)
    common["use_inter_op_parallelism"] = stage._use_inter_op_parallelism
    common["preserve_cardinality"] = stage._preserve_cardinality
    if not calls and not hasattr(stage, "_num_parallel_calls"):
        forced = stage._force_synchronous
        return stage_over(stage, below, tf.raw_ops.MapDataset(force_synchronous=forced, **common))
    number = tf.constant(calls, tf.int64) if calls else stage._num_parallel_calls
    order = _order(stage, ordered)
    if getattr(stage, "_use_unbounded_threadpool", False):
        common["use_unbounded_threadpool"] = True
    variant = tf.raw_ops.ParallelMapDatasetV2(
        num_parallel_calls=number, deterministic=order, **common
    )
    made = stage_over(stage, below, variant, "map")
    made._num_parallel_calls, made._deterministic = number, order
    return made


def interleaved(
    stage: Dataset, below: Dataset, calls: int = 0, ordered: bool | None = None
) -> Value:
    """Make the same ``interleave`` with ``calls`` inputs read at once; arguments as for ``mapped``.

    A parallel one does not keep what it was told about the order: it gets the pipeline's.
    """
    common = _call(stage, below, stage._map_func)
    common |= {"cycle_length": stage._cycle_length, "block_length": stage._block_length}
    if not calls and not hasattr(stage, "_num_parallel_calls"):
        return stage_over(stage, below, tf.raw_ops.InterleaveDataset(**common))
    chooses = tf.constant(tf.data.AUTOTUNE, tf.int64)
    if calls:
        together = _cycle(stage)
        common["cycle_length"] = tf.constant(together, tf.int64)
        calls = min(calls, together)  # more are refused by TensorFlow
    number = tf.constant(calls, tf.int64) if calls else stage._num_parallel_calls
    order = _order(stage, ordered)
    variant = tf.raw_ops.ParallelInterleaveDatasetV4(
        buffer_output_elements=getattr(stage, "_buffer_output_elements", chooses),
        prefetch_input_elements=getattr(stage, "_prefetch_input_elements", chooses),
        num_parallel_calls=number, deterministic=order, **common,
    )  # fmt: skip
    made = stage_over(stage, below, variant, "interleave")
    made._num_parallel_calls, made._deterministic = number, order
    made._cycle_length = common["cycle_length"]
    return made


def _cycle(stage: Dataset) -> int:
    """Return the inputs that an interleave goes around, which decide the order.

    Where TensorFlow chooses, it is asked: two elements of each input come out, and the first that
    comes again has seen all the others. What it makes of the cores is not the same for one that
    works in parallel (of 2: one) as for one that does not (two; measured with TensorFlow 2.21).
    """
    if int(stage._cycle_length) > 0:
        return int(stage._cycle_length)
    own = getattr(stage, "_num_parallel_calls", None)
    twice = tf.data.Dataset.range(tf.int32.max).interleave(
        lambda one: tf.data.Dataset.from_tensors(one).repeat(2),
        num_parallel_calls=None if own is None else int(own),
    )
    seen: set[int] = set()
    for one in twice:
        if int(one) in seen:
            break
        seen.add(int(one))
    return len(seen)


def in_order(stage: Dataset, below: Dataset, *, ordered: bool | None) -> Value:
    """Return the same parallel stage that keeps the order or need not; None: as it was."""
    if kind(stage) == "map":
        return mapped(stage, below, ordered=ordered)
    if kind(stage) == "interleave":
        return interleaved(stage, below, ordered=ordered)
    said = {"default": None, "true": True, "false": False}[_order(stage, ordered)]
    size, cut = _plain(stage._batch_size), _plain(stage._drop_remainder)
    return type(stage)(below, size, cut, _plain(stage._num_parallel_calls), said)


def _order(stage: Dataset, ordered: bool | None) -> str:
    own = str(getattr(stage, "_deterministic", "default"))
    return own if ordered is None else _ORDER[ordered]


def _flat_mapped(stage: Dataset, below: Dataset) -> Value:
    variant = tf.raw_ops.FlatMapDataset(**_call(stage, below, stage._map_func))
    return stage_over(stage, below, variant)


def _filtered(stage: Dataset, below: Dataset) -> Value:
    common = _call(stage, below, stage._predicate)
    common["predicate"] = common.pop("f")
    return stage_over(stage, below, tf.raw_ops.FilterDataset(**common))


def _grouped(stage: Dataset, below: Dataset) -> Value:
    key, reduce, size = (each.function for each in stage._functions())
    variant = tf.raw_ops.GroupByWindowDataset(
        input_dataset=below._variant_tensor, key_func_other_arguments=key.captured_inputs,
        reduce_func_other_arguments=reduce.captured_inputs,
        window_size_func_other_arguments=size.captured_inputs,
        key_func=key, reduce_func=reduce, window_size_func=size, **stage._common_args,
    )  # fmt: skip
    return stage_over(stage, below, variant)


_WITH_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "shuffle": shuffled, "map": mapped, "interleave": interleaved, "flat_map": _flat_mapped,
    "filter": _filtered, "group_by_window": _grouped,
}  # fmt: skip
