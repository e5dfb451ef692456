"""The stages of a ``tf.data`` pipeline: their names, and what in them is not the same every time.

A stage is a python ``Dataset`` object. The functions of a pipeline are read as the graphs that
TensorFlow made of them, nested functions included.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.base.tensorflow_internals import operation_definition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Dataset, Function

SOURCES = {
    "range", "tensor", "tensor_slice", "sparse_tensor_slice", "text_line", "tf_record",
    "fixed_length_record", "csv", "enumerate",
}  # fmt: skip
"""Kinds of stages that read the same elements in the same order every time."""
PLAIN = {
    "map", "interleave", "flat_map", "filter", "batch", "padded_batch", "rebatch", "take", "skip",
    "shard", "prefetch", "options", "restructured", "unbatch", "window", "zip", "concatenate",
    "take_while", "scan", "unique", "group_by_window", "directed_interleave", "cache",
    "dense_to_ragged", "assert_cardinality",
}  # fmt: skip
"""Kinds of stages that add no randomness but that of their functions."""
_CALLED = {"tensor": "from_tensors", "tensor_slice": "from_tensor_slices"}
_HARMLESS = re.compile(
    r"(?!Snapshot|DataService|Sampling).*Dataset(V\d+)?|Dummy\w+|Anonymous(SeedGenerator|MemoryCache)"
    r"|Lookup\w+(Find|Size|Export)(V2)?|HashTable(V2)?|Assert|Print(V2)?|Stateful\w*PartitionedCall"
    r"|If|While|Case|VarHandleOp|ReadVariableOp|ResourceGather(Nd)?|(Eager)?PyFunc\w*|MatchingFiles"
)
"""Operations that TensorFlow calls stateful but that change nothing, or that are told apart."""
_READS = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What the functions of a stage do besides computing; empty: they do not."""

    draws: str = ""
    """An operation of the graph that draws random numbers; it begins anew with each iterator."""
    python: str = ""
    """An operation that calls Python code."""
    keeps: str = ""
    """An operation that changes something which lives on after the iterator."""
    reads: str = ""
    """An operation that reads a variable."""
    shuffles: str = ""
    """A dataset made inside of the function whose order is random."""
    captures: str = ""
    """Another dataset or iterator that the function uses but did not make."""


def kind(stage: Dataset) -> str:
    """Name the method that makes such a stage, as ``map`` for a ``_ParallelMapDataset``."""
    name = re.sub(r"^_?(Parallel)?|Dataset(V\d)?$|V\d$", "", type(stage).__name__)
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=TF)(?=R)", "_", name).lower()
    return "enumerate" if name == "variant" and _counts(stage) else name


def _counts(stage: Dataset) -> bool:
    """Return whether it is the count that ``enumerate`` zips with its input: numbers without end.

    It comes out of a rewrite of TensorFlow's, so that the range itself cannot be seen.
    """
    counts = stage.element_spec == tf.TensorSpec([], tf.int64)
    return counts and int(stage.cardinality()) == tf.data.INFINITE_CARDINALITY


def title(stage: Dataset) -> str:
    """Return how a person finds the stage in the script: ``map(decode)``, ``shuffle``."""
    name = _CALLED.get(kind(stage), kind(stage))
    functions = [each._func for each in stage._functions()]
    if any(
        getattr(f, "__name__", "") == "generator_next_fn" or _is_generator(f) for f in functions
    ):
        return "from_generator"
    return f"{name}({_function_title(functions[0])})" if functions else name


def _is_generator(function: Function) -> bool:
    return "_from_generator.<locals>" in getattr(function, "__qualname__", "")


def _function_title(function: Function) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if name != "<lambda>" or code is None:
        return str(name)
    return f"lambda of {Path(code.co_filename).name}, line {code.co_firstlineno}"


def of_keras_arrays(dataset: Dataset) -> bool:
    """Return whether it is Keras' pipeline of arrays: it gathers each batch at once."""
    return any(title(stage) == "map(grab_batch)" for stage in walk(dataset))


def walk(dataset: Dataset) -> Iterator[Any]:
    """Walk all stages, each after its inputs: from the sources to the end."""
    for below in dataset._inputs():
        yield from walk(below)
    yield dataset


def effects(stage: Dataset) -> Effects:
    """Return what the functions of one stage do, functions that they call included."""
    found: dict[str, str] = {}
    for wrapper in stage._functions():
        graph = wrapper.function.graph
        definition = graph.as_graph_def()
        nested = [node for function in definition.library.function for node in function.node_def]
        for node in [*definition.node, *nested]:
            for name in _effects_of(node.op):
                found.setdefault(name, node.op)
        for captured in wrapper.function.captured_inputs:
            if captured.dtype == tf.variant:
                found.setdefault("captures", "a dataset made outside of it")
    return Effects(**found)


def _effects_of(operation: str) -> Iterator[str]:
    definition = operation_definition(operation)
    if "PyFunc" in operation:
        yield "python"
    if operation in _READS:
        yield "reads"
    if re.search(r"(Shuffle|Random|Sampling)\w*Dataset", operation):
        yield "shuffles"
    if definition is None or not definition.is_stateful:
        return
    if {"seed", "seed2"} <= {attribute.name for attribute in definition.attr}:
        yield "draws"
    elif not _HARMLESS.fullmatch(operation):
        yield "keeps"


def reshuffles(stage: Dataset) -> bool:
    """Return whether each new iterator of the stage takes the next seed, so its order differs."""
    if kind(stage) == "shuffle":
        return stage._reshuffle_each_iteration is not False
    return kind(stage) == "random" and bool(stage._rerandomize)


def times(stage: Dataset) -> int:
    """Return how often a ``repeat`` gives its input; -1: without end."""
    return int(stage._count)


def order_is_free(stage: Dataset, *, free: bool) -> bool:
    """Return whether a stage works in parallel and gives elements in whatever order they are done.

    Args:
        stage: Any stage.
        free: What holds for stages that do not say it: ``Options.deterministic`` is False.
    """
    if "Parallel" not in type(stage).__name__:
        return False
    return getattr(stage, "_deterministic", "default") in (
        {"false", "default"} if free else {"false"}
    )
