"""A traced step as a flat graph of operations: calls inlined, branches chosen, loops counted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfdyno.core.choose.program import Lowering

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import TensorSpec

INPUT_ROLES = frozenset({"input", "target", "sample_weight"})
SOURCES = frozenset({"argument", "loop_state"})
"""Operations that hold a value without computing it."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape and element type (HLO spelling) of a value."""

    shape: tuple[int, ...]
    dtype: str
    element_bits: int
    elements: int = field(init=False)
    """1 for a scalar."""
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        """Work out the size once."""
        elements = math.prod(self.shape)
        object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "bytes", (elements * self.element_bits + 7) // 8)


@dataclass(slots=True)
class Value:
    """What one operation hands to others."""

    type: TensorType
    producer: int
    bytes: int
    elements: int


@dataclass(slots=True)
class Node:
    """One operation; ``operands`` and ``results`` are indices of values."""

    op: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    location: str
    repeats: int
    """Trips of the loops around it."""
    scope: int
    """Region it stands in; fusions never cross from one to another."""
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Graph:
    """Nodes in program order with the values between them."""

    nodes: list[Node] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    arguments: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    scopes: int = 1
    notes: list[str] = field(default_factory=list)
    lowering: Lowering = "before"
    """Whose program it becomes."""
    known: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was found of all nodes since the last one was added; whoever finds it names it."""

    def add(
        self,
        op: str,
        operands: tuple[int, ...],
        types: list[TensorType],
        *,
        location: str = "",
        repeats: int = 1,
        scope: int = 0,
        attributes: dict[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """Append a node and return the indices of its results."""
        index, first = len(self.nodes), len(self.values)
        self.values.extend(Value(kind, index, kind.bytes, kind.elements) for kind in types)
        results = tuple(range(first, first + len(types)))
        self.known.clear()
        self.nodes.append(Node(op, operands, results, location, repeats, scope, attributes or {}))
        return results

    def producer(self, value: int) -> Node:
        """Return the node that computes a value."""
        return self.nodes[self.values[value].producer]

    def strip(self, value: int, views: frozenset[str]) -> int:
        """Follow a value back through operations that only look at it differently."""
        node = self.producer(value)
        while node.op in views:
            value = node.operands[0]
            node = self.producer(value)
        return value


def live_nodes(graph: Graph) -> list[bool]:
    """Return which nodes some result of the step needs; loops keep what they carry."""
    outputs = ("live", *graph.outputs)
    if outputs not in graph.known:
        graph.known[outputs] = _live_nodes(graph)
    live: list[bool] = graph.known[outputs]
    return live


def _live_nodes(graph: Graph) -> list[bool]:
    live = [False] * len(graph.nodes)
    producers = [value.producer for value in graph.values]
    queue = [producers[value] for value in graph.outputs]
    while queue:
        index = queue.pop()
        if not live[index]:
            live[index] = True
            queue += [producers[value] for value in _sources(graph.nodes[index])]
    return live


def depends_on(graph: Graph, roots: frozenset[int]) -> list[bool]:
    """Return which nodes depend on any of the nodes ``roots``, carried values of loops included."""
    if roots not in graph.known:
        graph.known[roots] = _depends_on(graph, roots)
    found: list[bool] = graph.known[roots]
    return found


def _depends_on(graph: Graph, roots: frozenset[int]) -> list[bool]:
    found = [index in roots for index in range(len(graph.nodes))]
    producers = [value.producer for value in graph.values]
    changed = True
    while changed:
        changed = False
        for index, node in enumerate(graph.nodes):
            if found[index]:
                continue
            for value in _sources(node):
                if found[producers[value]]:
                    found[index] = True
                    changed = changed or node.op == "loop_result"
                    break
    return found


def varying_nodes(graph: Graph) -> list[bool]:
    """Return which nodes depend on an argument, a random generator or a loop counter.

    The others (causal masks, ``iota`` chains) are folded into their readers and cost nothing.
    """
    random = ("rng", "rng_bit_generator", "custom_call", "argument", "loop_state")
    roots = frozenset(index for index, node in enumerate(graph.nodes) if node.op in random)
    return depends_on(graph, roots)


def depends_on_roles(
    graph: Graph, tensors: tuple[TensorSpec, ...], roles: frozenset[str]
) -> list[bool]:
    """Return which nodes depend on an argument with one of these roles."""
    roots = {
        graph.values[value].producer
        for value, spec in zip(graph.arguments, tensors, strict=False)
        if spec.role in roles
    }
    return depends_on(graph, frozenset(roots))


def _sources(node: Node) -> tuple[int, ...]:
    feedback = node.attributes.get("feedback")
    return node.operands if feedback is None else (*node.operands, feedback)
