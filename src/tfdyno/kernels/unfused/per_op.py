"""The step as a framework runs it op by op: nothing is fused across the borders of its operations.

TensorFlow without XLA, and eager PyTorch, run one kernel (or a few) for each operation that the
model names: a convolution, a batch normalisation, a rectifier, an addition. What one hands to the
next goes through memory. In a trace the operation is the innermost layer or activation function of
a location; forward and backward pass of one operation share it, as a gradient kernel reads what its
operation read and recomputes the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.kernels.layers import operation_of

if TYPE_CHECKING:
    from tfdyno.kernels.graph import Graph


def per_op(graph: Graph) -> Graph:
    """Return the same graph with every operation of the framework in a region of its own.

    Fusions never cross regions (see ``Node.scope``), so the fusion rule then keeps in memory what
    one operation hands to another.
    """
    regions: dict[tuple[int, str, str], int] = {}
    nodes = []
    for node in graph.nodes:
        # cuDNN's convolution adds no bias: another kernel does
        alone = node.op if node.op == "convolution" else ""
        key = (node.scope, operation_of(node.location), alone)
        region = regions.setdefault(key, len(regions) + graph.scopes)
        nodes.append(replace(node, scope=region))
    return replace(graph, nodes=nodes, scopes=graph.scopes + len(regions))
