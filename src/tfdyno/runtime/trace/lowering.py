"""A traced step -> the operations that today's XLA makes kernels of.

- A sum over axes of one element is none, nor is a conversion to the same type.
- A matrix product reads its operands in an order of its own: the axes of the batch, then those that
  are summed and those that are not, each in one piece. An operand that lies otherwise in memory is
  written once more, as those of attention are.
- A matrix of 16 bits whose sides are no multiples of eight is filled up, its product cut again.
- Keras' einsum is a product of batches under TensorFlow, and so is the gradient of its weight: one
  for every sample, added up afterwards.
"""

from __future__ import annotations

import re
from itertools import groupby

from tfdyno.kernels.graph import Graph, Node, TensorType
from tfdyno.kernels.launch import NARROW
from tfdyno.kernels.layers import phase_of

_EINSUM = re.compile(r"[/(][a-z]+,[a-z]+->[a-z]+[/)]")
ALIGNED = 8
"""Tensor cores take matrices of 16 bits whose sides are multiples of this."""
Axes = tuple[int, ...]


def lowered(graph: Graph) -> Graph:
    """Return the graph as its own lowering has it."""
    lowering = _Lowering(graph)
    for node in graph.nodes:
        lowering.take(node)
    return lowering.finished()


class _Lowering:
    """Copies a graph by node; ``orders`` has the axes of values as they lie, outermost first."""

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.new = Graph(scopes=graph.scopes, notes=graph.notes, lowering=graph.lowering)
        self.place: dict[int, int] = {}
        self.orders: dict[int, Axes] = {}
        self.written: dict[tuple[int, int, Axes], int] = {}

    def take(self, node: Node) -> None:
        """Copy a node, changed or with others before or behind it."""
        operands = tuple(self.place[value] for value in node.operands)
        types = [self.old.values[value].type for value in node.results]
        if node.op == "dot_general":
            results = self.product(node, operands, types[0])
        elif node.op == "convert" and self.new.values[operands[0]].type == types[0]:
            results = operands
        elif self.adds_nothing(node, operands, types):
            results = self.add(node, "reshape", operands[:1], types)
        else:
            results = self.add(node, node.op, operands, types, dict(node.attributes))
        if node.op == "argument":
            self.new.arguments += results
        if node.op == "transpose":
            order = self.order_of(operands[0])
            moved = {old: new for new, old in enumerate(node.attributes["permutation"])}
            self.orders[results[0]] = tuple(moved[axis] for axis in order)
        self.place.update(zip(node.results, results, strict=True))

    def finished(self) -> Graph:
        """Return the new graph, with what loops feed back and what the step returns."""
        for node in self.new.nodes:
            if "feedback" in node.attributes:
                node.attributes["feedback"] = self.place[node.attributes["feedback"]]
        self.new.outputs = [self.place[value] for value in self.old.outputs]
        return self.new

    def add(
        self,
        node: Node,
        op: str,
        operands: Axes,
        types: list[TensorType],
        attributes: dict[str, object] | None = None,
    ) -> tuple[int, ...]:
        """Append an operation that stands where ``node`` stood."""
        return self.new.add(
            op,
            operands,
            types,
            location=node.location,
            repeats=node.repeats,
            scope=node.scope,
            attributes=attributes,
        )

    def adds_nothing(self, node: Node, operands: Axes, types: list[TensorType]) -> bool:
        """Return whether a node reduces axes of one element only."""
        if node.op != "reduce" or len(types) != 1:
            return False
        return types[0].elements == self.new.values[operands[0]].elements

    def product(self, node: Node, operands: Axes, kind: TensorType) -> tuple[int, ...]:
        """Return a matrix product with its operands as it needs them."""
        batch, contract = node.attributes["batch"], node.attributes["contract"]
        by_sample = self.new.lowering == "tensorflow" and _is_einsum_gradient(node)
        if by_sample:
            batch, contract = (
                tuple((axes[0],) for axes in contract),
                tuple(axes[1:] for axes in contract),
            )
        read = tuple(
            self.laid_out(node, value, *axes)
            for value, *axes in zip(operands, batch, contract, strict=True)
        )
        attributes = {**node.attributes, "batch": batch, "contract": contract}
        if not by_sample:
            return self.multiplied(node, read, kind, attributes)
        samples = self.new.values[operands[0]].type.shape[batch[0][0]]
        each = TensorType((samples, *kind.shape), kind.dtype, kind.element_bits)
        parts = self.add(node, node.op, read, [each], attributes)
        return self.add(node, "reduce", parts, [kind], {"dimensions": (0,)})

    def multiplied(
        self, node: Node, read: Axes, kind: TensorType, attributes: dict[str, object]
    ) -> tuple[int, ...]:
        """Multiply; 16-bit batches have their matrices filled up to multiples of eight.

        Those of no batch are left: the batch of the step is one of their sides, which was traced at
        a size of its own.
        """
        batch, contract = node.attributes["batch"], node.attributes["contract"]
        shapes = [self.new.values[value].type.shape for value in read]
        filled = [_filled(*each) for each in zip(shapes, batch, contract, strict=True)]
        if kind.dtype not in NARROW or not batch[0] or filled == shapes:
            return self.add(node, node.op, read, [kind], attributes)
        operands = []
        for value, shape in zip(read, filled, strict=True):
            held = self.new.values[value].type
            if shape != held.shape:
                wide = TensorType(shape, held.dtype, held.element_bits)
                (padded,) = self.add(node, "pad", (value,), [wide])
                self.orders[padded] = self.order_of(value)
                value = padded  # noqa: PLW2901
            operands.append(value)
        free = [
            tuple(size for axis, size in enumerate(shape) if axis not in (*batch[n], *contract[n]))
            for n, shape in enumerate(filled)
        ]
        shape = (*(filled[0][axis] for axis in batch[0]), *free[0], *free[1])
        if shape == kind.shape:
            return self.add(node, node.op, tuple(operands), [kind], attributes)
        wide = TensorType(shape, kind.dtype, kind.element_bits)
        result = self.add(node, node.op, tuple(operands), [wide], attributes)
        return self.add(node, "slice", result, [kind])

    def laid_out(self, node: Node, value: int, batch: Axes, contract: Axes) -> int:
        """Return the operand itself, or a copy whose axes lie as the product reads them."""
        shape = self.new.values[value].type.shape
        if _fits(self.order_of(value), shape, batch, contract):
            return value
        rest = tuple(axis for axis in range(len(shape)) if axis not in batch)
        order = (*batch, *rest)
        if not _fits(order, shape, batch, contract):
            order = (*batch, *(a for a in rest if a not in contract), *contract)
        source = self.new.strip(value, frozenset({"transpose"}))
        axes = tuple(self.order_of(value).index(axis) for axis in order)
        key = (source, node.scope, axes)
        if key not in self.written:
            kind = self.new.values[value].type
            (self.written[key],) = self.add(node, "layout", (value,), [kind])
            self.orders[self.written[key]] = order
        return self.written[key]

    def order_of(self, value: int) -> Axes:
        """Return the axes of a value as they lie in memory."""
        rank = len(self.new.values[value].type.shape)
        return self.orders.get(value, tuple(range(rank)))


def _fits(order: Axes, shape: Axes, batch: Axes, contract: Axes) -> bool:
    """Return whether axes in this order are those of a batch, then two groups in one piece each."""
    kinds = ["b" if a in batch else "c" if a in contract else "f" for a in order if shape[a] > 1]
    runs = [kind for kind, _ in groupby(kinds)]
    return len(runs) == len(set(runs)) and "b" not in runs[1:]


def _filled(shape: Axes, batch: Axes, contract: Axes) -> Axes:
    """Return the shape with the axis of a matrix that is no multiple of eight filled up."""
    sizes = list(shape)
    for group in (
        contract,
        [axis for axis in range(len(shape)) if axis not in (*batch, *contract)],
    ):
        axes = [axis for axis in group if shape[axis] > 1]
        if len(axes) == 1:
            sizes[axes[0]] = -(-shape[axes[0]] // ALIGNED) * ALIGNED
    return tuple(sizes)


def _is_einsum_gradient(node: Node) -> bool:
    """Return whether it is an einsum weight's gradient, summed over samples and positions."""
    left, right = node.attributes["contract"]
    summed = left == right and len(left) > 1 and left[0] == 0
    return (
        summed
        and not node.attributes["batch"][0]
        and phase_of(node.location) == "backward"
        and _EINSUM.search(node.location) is not None
    )
