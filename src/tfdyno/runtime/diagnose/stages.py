"""The stages of an input pipeline, with what each of them took while batches were made.

TensorFlow keeps a model of each running iterator for its autotuning: per stage the elements, the
bytes, and the time in the stage alone, over all of its threads. The door to it is private, so
stages are told without their times where it is shut.
Source: facts of ``tensorflow/core/framework/model.proto``, ``ModelProto.Node``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.measure.step_facts import StageFacts
from tfdyno.runtime.base.tensorflow_internals import iterator_model
from tfdyno.runtime.diagnose.waits import line_of, made_at
from tfdyno.runtime.workload.input_stages import kind, order_is_free, title, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import DataIterator, Dataset, Value

_UNSEEN = {"options", "restructured", "variant", "assert_cardinality"}
"""Stages of Python alone, for which TensorFlow runs nothing, and one that only counts."""
_ADDED = {"root", "model", "maxintraopparallelism", "privatethreadpool", "memorycacheimpl"}
"""Nodes that no stage of the user's stands for."""
_ALSO = {
    "tensor": {"fromtensor"}, "cache": {"memorycache", "filecache"}, "dense_to_ragged": {"map"},
    "tf_record": {"flatmap", "interleave"}, "text_line": {"flatmap", "interleave"},
    "fixed_length_record": {"flatmap", "interleave"}, "enumerate": {"range", "zip"},
}  # fmt: skip
"""Other names of a stage's node: ``TFRecordDataset(files)`` is a ``flat_map`` over its files."""
_NOISE = {"NoOp", "Const", "Identity", "Placeholder", "_Arg", "_Retval", "Pack"}
_ADDED_STAGE = "_tfdyno_added"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One stage of a running iterator, as TensorFlow's own model has it."""

    name: str
    """``tfrecord``: in small letters, without Parallel, Finite, Forever and a version."""
    elements: int
    seconds_s: float
    output_bytes: int
    inputs: tuple[int, ...]
    is_parallel: bool = False


Model = dict[int, Node]


def model_of(iterator: DataIterator) -> Model:
    """Return a running iterator's model; empty where TensorFlow keeps none or does not tell."""
    try:
        nodes = iterator_model(iterator).nodes
        return {
            int(number): Node(
                name=plain(node.name),
                elements=int(node.num_elements),
                seconds_s=node.processing_time * 1e-9,
                output_bytes=int(node.bytes_produced),
                inputs=tuple(int(each) for each in node.inputs),
                is_parallel=node.name.startswith("Parallel"),
            )
            for number, node in nodes.items()
        }
    except (ImportError, AttributeError, tf.errors.OpError):
        return {}


def plain(name: str) -> str:
    """Return a node's name as a stage's is compared with it: ``ParallelMapV2`` -> ``map``."""
    short = re.sub(r"^(Parallel|Finite|Forever)(?=[A-Z])", "", name)
    return re.sub(r"(Dataset)?(V\d+)?$", "", short).lower()


def between(before: Model, after: Model) -> Model:
    """Return what happened between two looks at a model; iterators that are gone are left out."""
    nothing = Node(name="", elements=0, seconds_s=0.0, output_bytes=0, inputs=())
    found = {}
    for number, node in after.items():
        old = before.get(number, nothing)
        found[number] = replace(
            node,
            elements=max(0, node.elements - old.elements),
            seconds_s=max(0.0, node.seconds_s - old.seconds_s),
            output_bytes=max(0, node.output_bytes - old.output_bytes),
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one stage took and gave."""

    seconds_s: float = 0.0
    output_bytes: int = 0
    elements: int = 0


def matched(dataset: Dataset, model: Model) -> dict[int, Spent]:
    """Return what was spent, by ``id`` of each stage that a node of the model stands for.

    What iterators made by a stage's own function took (the files of an ``interleave``) is the
    stage's.
    """
    found: dict[int, Spent] = {}
    made = {number for node in model.values() for number in node.inputs}
    roots = sorted(set(model) - made)
    if roots:
        _match(dataset, roots[0], model, found)
    return found


def _match(stage: Dataset, number: int, model: Model, found: dict[int, Spent]) -> None:
    inputs = list(stage._inputs())
    if kind(stage) in _UNSEEN and len(inputs) == 1:
        return _match(inputs[0], number, model, found)
    node = model[number]
    if not _is_of(stage, node):
        if len(node.inputs) == 1:
            return _match(stage, node.inputs[0], model, found)
        if len(inputs) == 1:
            return _match(inputs[0], number, model, found)
        return None
    left = list(node.inputs)
    for each in inputs:
        own = next((place for place in left if _leads_to(each, place, model)), None)
        if own is not None:
            left.remove(own)
            _match(each, own, model, found)
    inner = sum(_total_s(place, model) for place in left)
    found[id(stage)] = Spent(
        seconds_s=node.seconds_s + inner, output_bytes=node.output_bytes, elements=node.elements
    )
    return None


def _is_of(stage: Dataset, node: Node) -> bool:
    name = kind(stage)
    return node.name == name.replace("_", "") or node.name in _ALSO.get(name, ())


def _leads_to(stage: Dataset, number: int, model: Model) -> bool:
    """Return whether a node, or one above it that TensorFlow added, stands for the stage."""
    while kind(stage) in _UNSEEN and len(stage._inputs()) == 1:
        stage = stage._inputs()[0]
    node = model[number]
    while node.name in _ADDED and len(node.inputs) == 1:
        node = model[node.inputs[0]]
    return _is_of(stage, node)


def _total_s(number: int, model: Model) -> float:
    node = model[number]
    return node.seconds_s + sum(_total_s(place, model) for place in node.inputs)


def added(stage: Dataset) -> Value:
    """Mark a stage as one that a look has put into the pipeline."""
    object.__setattr__(stage, _ADDED_STAGE, True)
    return stage


def stage_facts(
    dataset: Dataset,
    alike: Value,
    spent: dict[int, Spent],
    batches: int,
    running: Model,
) -> tuple[StageFacts, ...]:
    """Return all stages of a pipeline, sources first.

    Args:
        dataset: Its end.
        alike: The end of the one that ran: the same stages, and ``added`` ones.
        spent: What ``matched`` found of that.
        batches: That it gave.
        running: The model of the pipeline as TensorFlow rewrites it: tells what it made parallel.
    """
    per_batch = 1 / max(1, batches)
    made_parallel = _maps_are_parallel(running)
    is_free = dataset.options().deterministic is False
    again = {id(one._inputs()[0]): id(one) for one in walk(alike) if hasattr(one, _ADDED_STAGE)}
    found = []
    for stage, ran in zip(_seen(dataset), _seen(alike), strict=False):
        took = spent.get(id(ran), Spent())
        # What repeats a source knows of all its passes, the source only of the last.
        gave = spent.get(again.get(id(ran), id(ran)), took)
        calls = parallel_calls(stage)
        if calls == 1 and kind(stage) == "map" and made_parallel:
            calls = -1
        name, used = title(stage), operations(stage)
        found.append(
            StageFacts(
                title=name,
                kind="from_generator" if name == "from_generator" else kind(stage),
                place=made_at(stage) or next(filter(None, map(line_of, _own(stage))), ""),
                own_s=took.seconds_s * per_batch,
                parallel_calls=calls,
                runs_python=any("PyFunc" in each for each in used),
                buffer_size=_number(stage, "_buffer_size"),
                output_bytes=round(gave.output_bytes * per_batch),
                elements=gave.elements * per_batch,
                operations=tuple(used),
                keeps_order=calls != 1 and not order_is_free(stage, free=is_free),
            )
        )
    return tuple(found)


def _seen(dataset: Dataset) -> Iterator[Any]:
    for stage in walk(dataset):
        if kind(stage) not in _UNSEEN and not hasattr(stage, _ADDED_STAGE):
            yield stage


def _maps_are_parallel(running: Model) -> bool:
    """Return whether TensorFlow runs every ``map`` in parallel, also one written otherwise."""
    maps = [node for node in running.values() if node.name in ("map", "mapandbatch")]
    return bool(maps) and all(node.is_parallel and node.name == "map" for node in maps)


def parallel_calls(stage: Dataset) -> int:
    """Return elements that a stage works on at once; -1: TensorFlow chooses."""
    calls = _number(stage, "_num_parallel_calls") or _number(stage, "_num_parallel_reads")
    return calls or 1


def _number(stage: Dataset, name: str) -> int:
    value = getattr(stage, name, None)
    try:
        value = tf.get_static_value(value) if tf.is_tensor(value) else value
        return int(value) if value is not None else 0
    except (TypeError, ValueError):
        return 0


def _own(stage: Dataset) -> Iterator[Callable[..., Any]]:
    for wrapper in stage._functions():
        yield wrapper._func


def operations(stage: Dataset) -> list[str]:
    """Name the TensorFlow operations in a stage's functions, each once, nested ones too."""
    found: dict[str, None] = {}
    for wrapper in stage._functions():
        definition = wrapper.function.graph.as_graph_def()
        nested = [node for each in definition.library.function for node in each.node_def]
        for node in [*definition.node, *nested]:
            if node.op not in _NOISE:
                found.setdefault(node.op)
    return list(found)
