"""The kernels of a step as TensorFlow runs it, its own ways with gradients and images included."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.kernels.unfused.tensorflow_dilation import rearrange_dilated
from tfdyno.kernels.unfused.tensorflow_ops import operations_of
from tfdyno.kernels.unfused.tensorflow_rules import with_gradients_of_tensorflow

if TYPE_CHECKING:
    from tfdyno.kernels.graph import Graph
    from tfdyno.kernels.unfused.tensorflow_ops import Operations

_KNOWN = "operations of TensorFlow"


def tensorflow_operations(graph: Graph) -> Operations:
    """Return the kernels, which the caller may change: found once for a graph, copied for each."""
    if _KNOWN not in graph.known:
        made = operations_of(graph)
        with_gradients_of_tensorflow(made)
        rearrange_dilated(made)
        graph.known[_KNOWN] = made
    known: Operations = graph.known[_KNOWN]
    items = [
        replace(
            each, reads=[*each.reads], writes=[*each.writes], over=[*each.over],
            after=set(each.after),
        )
        for each in known.items
    ]  # fmt: skip
    return replace(known, items=items, outputs=[*known.outputs], types=dict(known.types))
