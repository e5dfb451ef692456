"""What TensorFlow keeps for the backward pass, where that differs from what JAX would keep.

A traced step computes what its backward pass will need in the forward pass. TensorFlow's gradient
functions start from inputs and outputs of an operation and compute the rest when the gradient has
come. Sparse gradients of embeddings never become whole tables.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.kernels.layers import phase_of
from tfdyno.kernels.unfused.tensorflow_ops import (
    ELEMENTWISE,
    Operation,
    Operations,
    buffer_of,
    merge,
    without_phase,
)

if TYPE_CHECKING:
    from collections import defaultdict

FROM_INPUT = frozenset({"silu", "swish", "leaky_relu", "softplus", "soft_sign"})
"""Activation functions that are one operation whose gradient reads its input."""
FROM_OUTPUT = frozenset({"relu", "relu6", "elu", "selu"})
"""Activation functions whose gradient reads the output."""
ONE_KERNEL = (FROM_INPUT | FROM_OUTPUT) - {"silu", "swish"}
"""Activation functions with one kernel for the gradient, too; the others' is made of several."""
SCALED = frozenset({"multiply", "negate", "convert", "divide"})
_ACTIVATION = re.compile(rf"^(.*?\bjit\(({'|'.join(sorted(FROM_INPUT | FROM_OUTPUT))})\))")


def with_gradients_of_tensorflow(operations: Operations) -> None:
    """Change the kernels in place to those of TensorFlow's gradient functions."""
    _sparse_gradients(operations)
    rule = _Rule(operations)
    rule.recompute()
    rule.join()
    rule.wait_for_gradients()


class _Rule:
    """Knows which kernels only serve the backward pass, and what it may compute again."""

    def __init__(self, operations: Operations) -> None:
        self.all = operations
        self.nodes = operations.graph.nodes
        self.producers = operations.producers()
        self.readers: defaultdict[int, list[Operation]] = operations.readers()
        self.late = self._late()
        self.groups = {each.node: self._activation(each) for each in operations.items}
        self.softmax = self._softmax()
        self.copies: dict[int, int] = {}
        self.added: list[Operation] = []

    def recompute(self) -> None:
        """Let the backward pass read what its operations keep, and compute the rest anew."""
        for each in self.all.items:
            if self._serves_backward(each):
                masks = each.kind == "compare" and each.node in self.late
                each.reads = [
                    self._mask_of(buffer) if masks else self._kept(buffer) for buffer in each.reads
                ]
                each.over = [buffer for buffer in each.over if buffer in each.reads]
        self.all.items = sorted([*self.all.items, *self.added], key=lambda each: each.node)
        self.producers, self.readers = self.all.producers(), self.all.readers()

    def join(self) -> None:
        """Make one kernel of an activation function, and one of its gradient."""
        copies = {id(each) for each in self.added}

        def key(each: Operation) -> str | None:
            match = _ACTIVATION.match(self.nodes[each.node].location)
            if match is None or match[2] not in ONE_KERNEL:
                return None
            gradient = id(each) in copies or self._serves_backward(each)
            return f"{gradient} {without_phase(match[1])}"

        merge(self.all, key)
        self.producers, self.readers = self.all.producers(), self.all.readers()

    def wait_for_gradients(self) -> None:
        """Let what only serves a gradient wait until that gradient has come."""
        copies = {id(each) for each in self.added}
        waiting = [each for each in self.all.items if id(each) in copies or each.node in self.late]
        names = {id(each) for each in waiting}
        first: dict[int, Operation | None] = {}
        for each in reversed(waiting):  # readers before what they read
            first[id(each)] = self._first_reader(each, names, first)
        arguments = set(self.all.graph.arguments)  # penalties on weights wait for nothing
        for each in waiting:
            reader = first[id(each)]
            if reader is not None and not (each.reads and arguments.issuperset(each.reads)):
                each.after.update(
                    buffer
                    for buffer in reader.reads
                    if buffer in self.producers
                    and id(self.producers[buffer]) not in names
                    and self.all.backward[self.producers[buffer].node]
                )

    def _late(self) -> set[int]:
        """Return nodes whose results only the backward pass reads, and what it begins with."""
        late: set[int] = set()
        outputs = set(self.all.outputs)
        for each in reversed(self.all.items):
            if self.all.backward[each.node] or each.kind not in ELEMENTWISE | {"convert"}:
                continue
            readers = [reader for buffer in each.writes for reader in self.readers[buffer]]
            only = all(self.all.backward[r.node] or r.node in late for r in readers)
            if readers and only and not outputs.intersection(each.writes):
                late.add(each.node)
        for each in self.all.items:
            made = (self.producers[buffer] for buffer in each.reads if buffer in self.producers)
            if self.all.backward[each.node] and not any(self.all.backward[m.node] for m in made):
                late.add(each.node)
        return late

    def _softmax(self) -> dict[int, int]:
        """Map exponentials to the softmax made of them, which is all that its gradient reads."""
        found = {}
        for each in self.all.items:
            if each.kind != "divide" or self._serves_backward(each) or len(each.reads) != 2:
                continue
            made, total = (self.producers.get(buffer) for buffer in each.reads)
            pair = made and total and (made.kind, total.kind) == ("exponential", "reduce")
            if made and total and pair and made.writes[0] in total.reads:
                found[made.writes[0]] = each.writes[0]
        return found

    def _serves_backward(self, each: Operation) -> bool:
        return self.all.backward[each.node] or each.node in self.late

    def _activation(self, each: Operation) -> tuple[str, str] | None:
        """Find the activation function that a forward kernel is part of, and its name."""
        if self.all.backward[each.node] or each.kind not in ELEMENTWISE | {"convert"}:
            return None
        match = _ACTIVATION.match(self.nodes[each.node].location)
        return (match[1], match[2]) if match else None

    def _kept(self, buffer: int) -> int:
        """Return the buffer to read: itself where TensorFlow keeps it, else a computed copy."""
        buffer = self.softmax.get(buffer, buffer)
        made = self.producers.get(buffer)
        if made is None or made.node in self.late or self.all.backward[made.node]:
            return buffer
        group = self.groups[made.node]
        if group is None and not self._is_centered(made):
            return buffer
        if group is not None and self._leaves(buffer, group):
            return buffer
        if buffer not in self.copies:
            self.copies[buffer] = self.all.new(self.all.type_of(buffer))
            reads = [
                self._inside(read, group) if group is not None else read for read in made.reads
            ]
            over = [new for old, new in zip(made.reads, reads, strict=True) if old in made.over]
            copy = Operation(made.node, made.kind, reads, [self.copies[buffer]], over)
            self.added.append(copy)
        return self.copies[buffer]

    def _inside(self, buffer: int, group: tuple[str, str]) -> int:
        """Return what a copied part of an activation function reads."""
        made = self.producers.get(buffer)
        if made is not None and self.groups[made.node] == group:
            return self._kept(buffer)
        return self._output_for(buffer, group) if group[1] in FROM_OUTPUT else buffer

    def _mask_of(self, buffer: int) -> int:
        """Return what a rectifier's mask reads: its output, which the next layer keeps anyway."""
        for reader in self.readers[buffer]:
            group = self.groups[reader.node]
            if group and group[1] in FROM_OUTPUT and reader.node not in self.late:
                return self._output_for(buffer, group)
        return self._kept(buffer)

    def _output_for(self, buffer: int, group: tuple[str, str]) -> int:
        """Return the result of an activation function that reads ``buffer``."""
        queue, seen = [buffer], {buffer}
        while queue:
            source = queue.pop(0)
            for reader in self.readers[source]:
                result = reader.writes[0]
                if self.groups[reader.node] != group or result in seen:
                    continue
                same = self.all.bytes(result) == self.all.bytes(buffer)
                if reader.node not in self.late and same and self._leaves(result, group):
                    return result
                seen.add(result)
                queue.append(result)
        return buffer

    def _leaves(self, buffer: int, group: tuple[str, str]) -> bool:
        """Return whether the forward pass outside an activation function reads a buffer of it."""
        return any(
            self.groups[reader.node] != group and not self._serves_backward(reader)
            for reader in self.readers[buffer]
        )

    def _is_centered(self, made: Operation) -> bool:
        """Return whether it is the difference inside a variance: SquaredDifference keeps none."""
        if made.kind != "subtract" or not made.writes:
            return False
        readers = [r for r in self.readers[made.writes[0]] if not self._serves_backward(r)]
        return bool(readers) and all(
            reader.kind == "square"
            or (reader.kind == "multiply" and reader.reads[:1] * 2 == reader.reads)
            for reader in readers
        )

    def _first_reader(
        self, each: Operation, names: set[int], first: dict[int, Operation | None]
    ) -> Operation | None:
        """Return the first kernel of the backward pass proper that a kernel leads to."""
        found: Operation | None = None
        for reader in (reader for buffer in each.writes for reader in self.readers[buffer]):
            candidate = reader if self.all.backward[reader.node] else None
            if id(reader) in names:
                candidate = first.get(id(reader))
            if candidate and (found is None or candidate.node < found.node):
                found = candidate
        return found


def _sparse_gradients(operations: Operations) -> None:
    """Gradients of looked-up rows stay rows until something makes them whole."""
    graph, types = operations.graph, operations.types
    sparse: set[int] = set()
    arguments, outputs = set(graph.arguments), set(operations.outputs)
    for each in operations.items:
        node = graph.nodes[each.node]
        if each.kind == "scatter" and phase_of(node.location) == "backward":
            table = graph.producer(buffer_of(graph, node.operands[0])[0])
            if table.op == "constant" and len(each.writes) == 1:
                types[each.writes[0]] = graph.values[node.operands[-1]].type
                sparse.add(each.writes[0])
            continue
        rows = [buffer for buffer in each.reads if buffer in sparse]
        if not rows or len(each.writes) != 1:
            continue
        (result,) = each.writes
        own = graph.values[result].bytes
        whole = [b for b in each.reads if b not in sparse and operations.bytes(b) >= own]
        if each.kind in SCALED and not whole:
            types[result] = types[rows[0]]
            sparse.add(result)
        elif each.kind in {"add", "subtract"} and result in outputs and arguments & set(whole):
            types[result] = None  # rows are added to the variable where it lies
