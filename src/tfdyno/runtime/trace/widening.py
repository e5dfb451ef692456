"""The step as XLA runs it on cards without bfloat16: every bfloat16 value is a float32 one.

XLA computes bfloat16 in float32 there and keeps the results so; only arguments and results of the
step stay as the user has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.kernels.graph import Graph, TensorType

if TYPE_CHECKING:
    from tfdyno.kernels.graph import Node

NARROW, WIDE = "bf16", "f32"
MORE_BITS = 16


def has_bfloat16(graph: Graph) -> bool:
    """Return whether any value of the step is bfloat16."""
    return any(value.type.dtype == NARROW for value in graph.values)


def widened(graph: Graph) -> Graph:
    """Return the graph with float32 in place of bfloat16; casts between the two are gone.

    An argument that is bfloat16 is cast once behind it, a result once before it.
    """
    wide = Graph(scopes=graph.scopes, notes=list(graph.notes), lowering=graph.lowering)
    place: dict[int, int] = {}
    for node in graph.nodes:
        operands = tuple(place[value] for value in node.operands)
        types = [graph.values[value].type for value in node.results]
        if node.op == "argument":
            found = _argument(wide, types[0], node)
        elif node.op == "convert" and wide.values[operands[0]].type == wider(types[0]):
            found = operands
        else:
            found = _copied(wide, node, operands, [wider(kind) for kind in types])
        place.update(zip(node.results, found, strict=True))
    for node in wide.nodes:  # what a loop feeds back is computed after its state
        if "feedback" in node.attributes:
            node.attributes["feedback"] = place[node.attributes["feedback"]]
    wide.outputs = [_result(graph, wide, value, place[value]) for value in graph.outputs]
    return wide


def wider(kind: TensorType) -> TensorType:
    """Return what takes the place of ``kind``; indices that lie beside a value stay with it."""
    if kind.dtype != NARROW:
        return kind
    return TensorType(kind.shape, WIDE, kind.element_bits + MORE_BITS)


def _argument(wide: Graph, kind: TensorType, node: Node) -> tuple[int, ...]:
    held = wide.add("argument", (), [kind], location=node.location)
    wide.arguments += held
    return wide.add("convert", held, [wider(kind)]) if kind.dtype == NARROW else held


def _copied(
    wide: Graph, node: Node, operands: tuple[int, ...], types: list[TensorType]
) -> tuple[int, ...]:
    return wide.add(
        node.op,
        operands,
        types,
        location=node.location,
        repeats=node.repeats,
        scope=node.scope,
        attributes=dict(node.attributes),
    )


def _result(graph: Graph, wide: Graph, value: int, placed: int) -> int:
    """Return the step's result in the type that it has outside."""
    held = graph.values[value]
    if held.type == wide.values[placed].type:
        return placed
    location = graph.nodes[held.producer].location
    return wide.add("convert", (placed,), [held.type], location=location)[0]
