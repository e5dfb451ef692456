"""What the kernels of today's Keras on TensorFlow are, where those of a JAX trace differ.

Keras 3 writes normalisations as plain operations. The rules were read off the graphs of
``model.train_step`` after Grappler (TensorFlow 2.21, Keras 3.15, a virtual GPU): which operations
are one kernel there, which are none, and which come on top.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.kernels.graph import live_nodes, varying_nodes
from tfdyno.kernels.unfused.tensorflow_ops import ELEMENTWISE, Operation, buffer_of, merge

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tfdyno.kernels.graph import Node, TensorType
    from tfdyno.kernels.records import Sizes
    from tfdyno.kernels.unfused.tensorflow_ops import Operations

VARIANCE = "jit(_var)"
SOFTMAX = "softmax "
FLOAT = "f32"
SPREADING = ELEMENTWISE | {"convert"}
"""Kernels that read the gradient of a sum as if it were as large as what was summed."""
IMAGE = 2
"""Spatial dimensions of the convolutions that TensorFlow's layout optimizer moves."""


def as_today(found: Operations, sizes: Sizes, replaced: Collection[int] = ()) -> None:
    """Change the kernels in place: fewer for statistics and gradients, more for what is moved.

    ``replaced`` are nodes that run in another way: nothing is moved for them.
    """
    rule = _Rules(found, sizes)
    rule.drop_sums_of_one()
    rule.one_mean()
    rule.divide_inside()
    rule.no_gradient_through_the_mean()
    rule.join()
    rule.add_at_once()
    rule.tiles()
    rule.transposes(replaced)


class _Rules:
    def __init__(self, found: Operations, sizes: Sizes) -> None:
        self.found, self.graph, self.sizes = found, found.graph, sizes

    def node(self, each: Operation) -> Node:
        return self.graph.nodes[each.node]

    def elements(self, buffer: int) -> int:
        kind = self.found.type_of(buffer)
        return kind.elements if kind else 0

    def replace_reads(self, instead: dict[int, int]) -> None:
        """Let every kernel read other buffers; chains are followed."""

        def final(buffer: int) -> int:
            while buffer in instead:
                buffer = instead[buffer]
            return buffer

        for each in self.found.items:
            each.reads = [final(buffer) for buffer in each.reads]
        self.found.outputs = [final(buffer) for buffer in self.found.outputs]

    def drop(self, instead: dict[int, int]) -> None:
        """Drop the kernels that write buffers instead of which others are read."""
        items = self.found.items
        self.found.items = [each for each in items if instead.keys().isdisjoint(each.writes)]
        self.replace_reads(instead)

    def drop_sums_of_one(self) -> None:
        """Drop a sum over axes of length one: it only reshapes."""
        gone = {
            each.writes[0]: each.reads[0]
            for each in self.found.items
            if each.kind == "reduce"
            and len(each.writes) == 1
            and each.reads
            and self.elements(each.reads[0]) == self.elements(each.writes[0])
        }
        self.drop(gone)

    def one_mean(self) -> None:
        """``tf.nn.moments`` takes the mean that its variance needs once; JAX takes it again."""
        first: dict[tuple[int, str], int] = {}
        gone: dict[int, int] = {}
        for each in self.found.items:
            if each.kind != "reduce" or self.found.backward[each.node] or len(each.writes) != 1:
                continue
            inside = VARIANCE in self.node(each).location
            place = self.node(each).location.partition(f"/{VARIANCE}")[0].rpartition("/reduce")[0]
            place = place or self.node(each).location.partition(f"/{VARIANCE}")[0]
            key = (each.reads[0], place)
            if inside and key in first:
                gone[each.writes[0]] = first[key]
            first.setdefault(key, each.writes[0])
        self.drop(gone)

    def divide_inside(self) -> None:
        """A mean is one kernel; what guards a variance against too few values is none."""
        makers = self.found.producers()
        gone: dict[int, int] = {}
        for each in self.found.items:
            if len(each.reads) != 1 or len(each.writes) != 1:
                continue
            made = makers.get(each.reads[0])
            of_sum = each.kind == "divide" and made is not None and made.kind == "reduce"
            guard = each.kind == "select" and VARIANCE in self.node(each).location
            if (of_sum and not self.found.backward[each.node]) or guard:
                gone[each.writes[0]] = each.reads[0]
        self.drop(gone)

    def no_gradient_through_the_mean(self) -> None:
        """``tf.nn.moments`` stops the gradient at the mean inside its variance."""
        readers = self.found.readers()
        gone: set[int] = set()
        instead: dict[int, int] = {}
        kept = []
        for each in self.found.items:
            inside = self.found.backward[each.node] and VARIANCE in self.node(each).location
            if inside and each.kind == "negate":
                next_ones = [reader.kind for reader in readers[each.writes[0]]]
                if next_ones == ["reduce"]:
                    gone.update(each.writes)
                    continue
            lost = [buffer for buffer in each.reads if buffer in gone]
            if not (inside and lost):
                kept.append(each)
                continue
            left = [buffer for buffer in each.reads if buffer not in gone]
            if each.kind == "add" and left:
                instead[each.writes[0]] = left[0]
            else:
                gone.update(each.writes)
        self.found.items = kept
        self.replace_reads(instead)

    def join(self) -> None:
        """Join one kernel of a squared difference, of a rectifier's gradient and of a softmax."""
        self._pairs(("subtract", "square"), backward=False)
        self._pairs(("compare", "select"), backward=True)

        members = self._softmaxes()
        merge(self.found, lambda each: members.get(id(each)))

    def _softmaxes(self) -> dict[int, str]:
        """Map kernels of the forward pass that are parts of a softmax to a name of that softmax."""
        makers = self.found.producers()
        found: dict[int, str] = {}

        def maker(buffer: int, *kinds: str) -> Operation | None:
            made = makers.get(buffer)
            return made if made and made.kind in kinds and made.reads else None

        for each in self.found.items:
            if each.kind != "divide" or len(each.reads) != 2 or self.found.backward[each.node]:
                continue
            made, total = maker(each.reads[0], "exponential"), makers.get(each.reads[1])
            parts = [each, made, total]
            if total and total.kind == "convert":
                total = makers.get(total.reads[0])
                parts.append(total)
            if made is None or total is None or total.kind != "reduce":
                continue
            wide = maker(total.reads[0], "convert")
            if (wide.reads if wide else total.reads)[0] != made.writes[0]:
                continue
            shifted = maker(made.reads[0], "subtract")
            most = maker(shifted.reads[-1], "reduce", "maximum") if shifted else None
            first = maker(most.reads[0], "reduce") if most and most.kind == "maximum" else None
            parts += [wide, shifted, most, first]
            found.update({id(part): SOFTMAX + str(each.node) for part in parts if part})
        return found

    def _pairs(self, kinds: tuple[str, str], *, backward: bool) -> None:
        """Let a kernel that only one other reads be part of that."""
        readers, makers = self.found.readers(), self.found.producers()
        gone: set[int] = set()
        for each in self.found.items:
            if each.kind != kinds[1] or self.found.backward[each.node] is not backward:
                continue
            for buffer in tuple(each.reads):
                made = makers.get(buffer)
                alone = made is not None and made.kind == kinds[0] and len(readers[buffer]) == 1
                if made is None or not alone or (self.found.backward[made.node] and not backward):
                    continue
                each.reads = [*(b for b in each.reads if b != buffer), *made.reads]
                gone.add(id(made))
        self.found.items = [each for each in self.found.items if id(each) not in gone]

    def add_at_once(self) -> None:
        """Add gradients that meet in one kernel, however many there are."""
        readers, makers = self.found.readers(), self.found.producers()
        gone: set[int] = set()
        for each in self.found.items:
            if each.kind != "add" or not self.node(each).location.endswith("add_any"):
                continue
            reads: list[int] = []
            for buffer in each.reads:
                made = makers.get(buffer)
                alone = made is not None and made.kind == "add" and len(readers[buffer]) == 1
                if made and alone and self.node(made).location.endswith("add_any"):
                    reads += made.reads
                    gone.add(id(made))
                else:
                    reads.append(buffer)
            each.reads = reads
        self.found.items = [each for each in self.found.items if id(each) not in gone]

    def tiles(self) -> None:
        """The gradient of a sum is written out in full, that of a mean divided in full, too."""
        makers = self.found.producers()
        items: list[Operation] = []
        divided: dict[int, int] = {}
        for each in self.found.items:
            if self.found.backward[each.node] and each.kind in SPREADING:
                for value in self.node(each).operands:
                    items += self._tile(each, value, makers, divided)
            items.append(each)
        wanted = {b for each in items for b in each.reads}.union(self.found.outputs)
        self.found.items = [
            each
            for each in items
            if divided.keys().isdisjoint(each.writes) or each.writes[0] in wanted
        ]

    def _tile(
        self,
        each: Operation,
        value: int,
        makers: dict[int, Operation],
        divided: dict[int, int],
    ) -> list[Operation]:
        spread = self.graph.producer(value)
        name = spread.location.rpartition("/")[2]
        whole = self.graph.values[value].type
        if spread.op != "broadcast_in_dim" or name != "broadcast_in_dim":
            return []
        if not self.found.backward[self.graph.values[value].producer]:
            return []
        source = self._source(each, value)
        if (
            source is None
            or self.elements(source) >= whole.elements
            or "softmax" in spread.location
        ):
            return []
        index = self.graph.values[value].producer
        buffer = self.found.new(whole)
        maker = makers.get(source)
        mean = maker is not None and maker.kind == "divide" and len(maker.reads) == 1
        first = maker.reads[0] if maker is not None and mean else source
        made = [Operation(index, "tile", [first], [buffer])]
        if mean:
            divided[source] = first
            scaled = self.found.new(whole)
            made.append(Operation(index, "scale", [buffer], [scaled]))
            buffer = scaled
        each.reads = [buffer if b == source else b for b in each.reads]
        return made

    def _source(self, each: Operation, value: int) -> int | None:
        """Return which of a kernel's reads an operand lies in."""
        elements = {self.elements(b): b for b in each.reads}
        buffer = buffer_of(self.graph, value)[0]
        if buffer in each.reads:
            return buffer
        return elements.get(self.graph.values[buffer].elements)

    def transposes(self, replaced: Collection[int]) -> None:
        """Add kernels that only move elements, for products over heads and float32 images."""
        live, varying = live_nodes(self.graph), varying_nodes(self.graph)
        moved = [
            Operation(
                index,
                "transpose",
                [buffer_of(self.graph, node.operands[0])[0]],
                [self.found.new(self.graph.values[node.results[0]].type)],
            )
            for index, node in enumerate(self.graph.nodes)
            if node.op == "transpose"
            and live[index]
            and varying[index]
            and index not in replaced
            and self._moves(node)
        ]
        seen: set[int] = set()
        for each in self.found.items:
            if each.kind == "dot_general":
                moved += self._for_product(each, seen)
            elif each.kind == "convolution":
                moved += self._for_image(each)
        self.found.items = sorted([*self.found.items, *moved], key=lambda each: each.node)

    def _moves(self, node: Node) -> bool:
        """Return whether it moves activations; products take transposed matrices as they are."""
        shape = self.graph.values[node.results[0]].type.shape
        return len(shape) > 2 and self._of_batch(shape)

    def _of_batch(self, shape: Iterable[int]) -> bool:
        unit = self.sizes.marker or self.sizes.batch_size
        return any(size % unit == 0 for size in shape)

    def _for_product(self, each: Operation, seen: set[int]) -> list[Operation]:
        """Put a product's batches on its first axes."""
        node = self.node(each)
        moved = []
        for value, batch in zip(node.operands, node.attributes["batch"], strict=True):
            buffer = buffer_of(self.graph, value)[0]
            if batch and batch != tuple(range(len(batch))) and buffer not in seen:
                seen.add(buffer)
                moved.append(self._move(each, buffer, self.graph.values[value].type))
        return moved

    def _for_image(self, each: Operation) -> list[Operation]:
        """Change float32 images to NCHW before each convolution, and back behind it."""
        node = self.node(each)
        types = [self.graph.values[value].type for value in (*node.operands[:2], node.results[0])]
        if types[0].dtype != FLOAT or len(node.attributes["stride"]) != IMAGE:
            return []
        images = [kind for kind in types if self._of_batch(kind.shape)]
        return [self._move(each, each.writes[0], kind) for kind in images]

    def _move(self, each: Operation, buffer: int, kind: TensorType) -> Operation:
        source = self.found.new(kind) if buffer in each.writes else buffer
        return replace(
            each,
            kind="transpose",
            reads=[source],
            writes=[self.found.new(kind)],
            over=[],
            after=set(),
        )
