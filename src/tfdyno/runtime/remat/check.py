"""Whether a part of a model may run twice: looked at in a graph of its own that never runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfdyno.runtime.base.tensorflow_internals import operation_definition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfdyno.core.base.untyped import Graph

HARMLESS = (
    "ReadVariableOp", "VarHandleOp", "ResourceGather", "Placeholder", "While", "If", "Case",
    "StatefulPartitionedCall", "PartitionedCall", "TensorList", "TensorArray", "Stack", "Assert",
    "Print", "Collective", "Nccl", "SymbolicGradient", "Xla",
)  # fmt: skip
"""Beginnings of the names of operations that TensorFlow calls stateful but that may run twice."""


class Probe(NamedTuple):
    """What a trial run of a part left behind."""

    outputs: list[Any]
    layers: Sequence[Any]
    assigned_weights: list[str]
    remembered: list[Any]
    """Values of variables that the second run is given."""


def why_not(traced: Callable[[Sequence[Any]], Probe], inputs: Sequence[Any]) -> str:
    """Trace a part once more and look for what a second run would change.

    Args:
        traced: Runs the part on placeholders.
        inputs: Tensors that the placeholders stand for.

    Returns:
        The first reason against a second run as the rest of a sentence; empty: none was found.
    """
    graph = tf.__internal__.FuncGraph("remat_check")
    try:
        with graph.as_default():
            stand_ins = [tf.compat.v1.placeholder(x.dtype, x.shape) for x in inputs]
            probe = traced(stand_ins)
    except RuntimeError as error:
        if "merge_call" in str(error):  # replicas meet in it, which no graph of its own allows
            return ""
        raise
    return _lost(graph, probe) or _kept_by_a_layer(graph, probe)


def _lost(graph: Graph, probe: Probe) -> str:
    """Return what a gradient would miss, or what would happen twice."""
    if not probe.outputs:
        return "nothing that comes out of it has a gradient"
    if probe.assigned_weights:
        return f"it assigns its own weight {probe.assigned_weights[0]}"
    known = {id(x) for x in probe.remembered}
    for external, _ in graph.captures:
        constant = isinstance(external, tf.__internal__.EagerTensor) or id(external) in known
        if external.dtype.is_floating and not constant:
            return f"it uses {external.name}, which is not among its arguments"
    for name in _stateful(graph):
        return f"its operation {name} gives or does something else each time"
    return ""


def _kept_by_a_layer(graph: Graph, probe: Probe) -> str:
    """Return a tensor that a layer keeps, through which a gradient might be taken later."""
    for layer in probe.layers:
        for name, value in vars(layer).items():
            if isinstance(value, tf.Tensor) and getattr(value, "graph", None) is graph:
                setattr(layer, name, None)  # of a graph that is thrown away
                return f"{layer.name} keeps a tensor of its call in {name}"
    return ""


def _stateful(graph: Graph) -> Iterator[str]:
    """Yield kinds of operations, also in loops and branches, that must not run twice."""
    for operation in graph.get_operations():
        if operation.op_def.is_stateful and not operation.type.startswith(HARMLESS):
            yield operation.type
    for function in graph.as_graph_def().library.function:
        for node in function.node_def:
            definition = operation_definition(node.op)  # None: a function of the user
            if definition and definition.is_stateful and not node.op.startswith(HARMLESS):
                yield node.op
