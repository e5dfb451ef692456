"""Launches of the fusion rule -> kernel records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Protocol

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Direction, Kernel, KernelKind, Phase
from tfdyno.kernels.flops import (
    ATTENTION,
    attention_work,
    convolution_work,
    matrix_product_work,
)
from tfdyno.kernels.graph import INPUT_ROLES, Graph, Node, depends_on_roles
from tfdyno.kernels.launch import (
    CHEAP,
    COLLECTIVES,
    KERNEL_VIEWS,
    OTHERS,
    VIEWS,
    Fusion,
    Launch,
    is_scan,
)
from tfdyno.kernels.layers import layer_of, phase_of

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import TensorSpec

KIND: dict[str, KernelKind] = {
    "convolution": "convolution",
    "dot_general": "gemm",
    "reduce_window": "window",
    "select_window": "window",
    "select_and_scatter": "scatter",
    "gather": "gather",
    "scatter": "scatter",
    "sort": "sort",
    "top_k": "sort",
    "rng": "random",
    "rng_bit_generator": "random",
    "transpose": "transpose",
    "layout": "transpose",
    **dict.fromkeys(COLLECTIVES, "collective"),
    **dict.fromkeys(OTHERS, "other"),
}
"""Operation that ends a fusion -> class of kernel."""
TARGETS: tuple[tuple[str, KernelKind], ...] = (
    ("threefry", "random"),
    ("TopK", "sort"),
    ("top_k", "sort"),
    (ATTENTION, "attention"),
)
"""Part of a custom call's target -> kind."""


OPERATIONS = {"rng_bit_generator": 12, **dict.fromkeys(("erf", "erfc"), 40)}
"""What TensorFlow computes for an element of these: Philox, and a quotient of polynomials.

Counted in compiled steps of GPT-2 and ConvNeXt.
"""
LONGEST_ROW, LONGEST_COLUMN = 16384, 4096
"""Terms that today's XLA adds up in one kernel, by where they lie in memory; more it splits."""
IN_PLACE = {"dynamic_update_slice": (1, 1), "scatter": (-1, 2), "select_and_scatter": (1, 2)}
"""Operation -> (operand that is written into another, how often its bytes are written)."""


class Sized(Protocol):
    """A value, its type or an array of a compiled program."""

    @property
    def bytes(self) -> int:
        """Size in memory at the program's batch."""

    @property
    def elements(self) -> int:
        """Number of elements."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How sizes grow with the batch: by the marker prime, if there is one."""

    batch_size: int
    marker: int

    def grows(self, elements: int) -> bool:
        """Return whether something with this many elements grows with the batch."""
        return self.marker > 0 and elements > 0 and elements % self.marker == 0

    def scaled(self, amount: float, elements: int) -> Scaled:
        """Return ``amount`` at the program's batch as an affine quantity."""
        if self.grows(elements):
            return Scaled(per_sample=amount / self.batch_size)
        return Scaled(fixed=amount)

    def bytes(self, *held: Sized) -> Scaled:
        """Return what these take in memory."""
        return sum((self.scaled(each.bytes, each.elements) for each in held), start=Scaled())


class KernelMaker:
    """Makes the kernel of a launch; holds what is known of the whole step."""

    def __init__(
        self, graph: Graph, fusion: Fusion, sizes: Sizes, tensors: tuple[TensorSpec, ...], mode: str
    ) -> None:
        self.graph, self.fusion, self.sizes, self.train = graph, fusion, sizes, mode == "train"
        self.from_input = depends_on_roles(graph, tensors, INPUT_ROLES)
        self.specs = dict(zip(graph.arguments, tensors, strict=False))

    def kernels(self, launch: Launch) -> tuple[Kernel, ...]:
        """Return the record of one launch, and of those that add up the parts that it leaves."""
        first = self.kernel(launch)
        if self.graph.lowering == "before":
            return (first,)
        if first.kind in ("convolution", "gemm"):
            return (first, *self._turned(launch, first))
        roots = launch.written or launch.roots
        split = [(node, parts) for node in (self.graph.nodes[index] for index in roots)
                 if (parts := self.parts(node)) > 1]  # fmt: skip
        if not split:
            return (first,)
        rest = [self._adding(node, parts, first) for node, parts in split]
        more = sum((each.read_bytes + each.write_bytes.times(-1) for each in rest), start=Scaled())
        return (replace(first, write_bytes=first.write_bytes + more), *rest)

    def _turned(self, launch: Launch, first: Kernel) -> list[Kernel]:
        """Return a weight gradient after cuDNN's order in the order of Keras' weights."""
        if first.kind != "convolution" or first.direction != "weight_gradient":
            return []
        size = self.write_bytes(launch).times(first.repeats)
        turned = replace(first, kind="transpose", name="transpose", direction="", flops=Scaled())
        return [replace(turned, read_bytes=size, write_bytes=size, dims={}, dims_scaled=())]

    def parts(self, node: Node) -> int:
        """Return how many parts XLA splits a long sum into: the root of its terms, a power of 2."""
        axes = node.attributes.get("dimensions")
        if node.op != "reduce" or not axes:
            return 1
        shape = self.graph.values[node.operands[0]].type.shape
        terms = prod(shape[axis] for axis in axes)
        limit = LONGEST_ROW if max(axes) == len(shape) - 1 else LONGEST_COLUMN
        return 1 if terms <= limit else 1 << (math.isqrt(terms).bit_length() - 1)

    def _adding(self, node: Node, parts: int, first: Kernel) -> Kernel:
        held = self.graph.values[node.results[0]]
        size = self._bytes(node.results[0]).times(node.repeats)
        return replace(
            first,
            kind="reduce",
            dtype=held.type.dtype,
            flops=self.sizes.scaled(held.elements, held.elements).times(parts * node.repeats),
            read_bytes=size.times(parts),
            write_bytes=size,
            name=node.op,
            dims={"inner": (held.elements,)},
            dims_scaled=(),
        )

    def kernel(self, launch: Launch) -> Kernel:
        """Return the record of one launch, loops around it multiplied in."""
        node = self.graph.nodes[launch.roots[0]]
        phase = self.phase(launch, node)
        kind = self.kind(launch)
        flops, direction, dims, scaled = self.work(launch, node, kind, phase)
        trips = node.repeats
        return Kernel(
            kind=kind,
            dtype=self.dtype(node, kind),
            flops=flops.times(trips),
            read_bytes=self.read_bytes(launch, node).times(trips),
            write_bytes=self.write_bytes(launch).times(trips),
            direction=direction,
            phase=phase,
            layer=self.layer(launch, node, phase),
            name=node.op,
            dims=dims,
            dims_scaled=scaled,
            repeats=trips,
            count=trips,
        )

    def kind(self, launch: Launch) -> KernelKind:
        """Return the class of kernel: what its root is, else reduce, transpose or loop."""
        nodes = [self.graph.nodes[index] for index in launch.roots]
        node = nodes[0]
        if any(item.op == "reduce" for item in nodes):
            return "reduce"
        if node.op == "custom_call":
            target = node.attributes["target"]
            return next((kind for part, kind in TARGETS if part in target), "other")
        if node.op == "reduce_window":
            shape = self.graph.values[node.operands[0]].type.shape
            return "scan" if is_scan(node, shape) else "window"
        return KIND.get(node.op, "loop")

    def phase(self, launch: Launch, node: Node) -> Phase:
        """Forward, backward or update; update also where optimizer slots are read."""
        if not self.train:
            return "forward"
        roles = (self.specs[value].role for value in launch.reads if value in self.specs)
        if "optimizer" in roles and node.op not in {"convolution", "dot_general"}:
            return "update"
        return phase_of(node.location)

    def layer(self, launch: Launch, node: Node, phase: Phase) -> str:
        """Return the layer that the trace names; for an update the layer of the weight."""
        if phase == "update":
            for value in launch.reads:
                spec = self.specs.get(value)
                if spec is not None and spec.role == "weight":
                    return spec.name.rpartition("/")[0] or spec.name
        return layer_of(node.location)

    def dtype(self, node: Node, kind: KernelKind) -> str:
        """Return the operand's element type of a library call, else that of the result."""
        library = kind in {"convolution", "gemm", "attention"}
        value = node.operands[0] if library else node.results[0]
        return self.graph.values[value].type.dtype

    def work(
        self, launch: Launch, node: Node, kind: KernelKind, phase: Phase
    ) -> tuple[Scaled, Direction, dict[str, tuple[int, ...]], tuple[str, ...]]:
        """Return FLOPs, direction, sizes and which of them grow.

        FLOPs of fused kernels: one per element of every fused operation and of a reduction's input.
        """
        if kind == "convolution":
            weights = not self.from_input[self.graph.values[node.operands[1]].producer]
            done = convolution_work(self.graph, node, backward=phase == "backward", weights=weights)
            grows: tuple[str, ...] = ("n",) if self.sizes.grows(done.dims["n"][0]) else ()
            flops = self.sizes.scaled(done.flops, done.dims["n"][0])
            return flops, done.direction, done.dims, grows
        if kind == "gemm":
            count, dims = matrix_product_work(self.graph, node)
            grows = tuple(name for name, size in dims.items() if self.sizes.grows(prod(size)))
            direction = _gemm_direction(phase, "k" in grows)
            return self.sizes.scaled(count, count // 2), direction, dims, grows
        if kind == "attention":
            count, dims = attention_work(self.graph, node)
            grows = ("batch",) if self.sizes.grows(dims["batch"][0]) else ()
            return self.sizes.scaled(count, dims["batch"][0]), "", dims, grows
        dims = {}
        if kind == "window":
            dims = {name: node.attributes[name] for name in ("window", "stride")}
        if kind == "reduce":
            dims = {"inner": (self.inner(launch),)}
        return self.elementwise_flops(launch), "", dims, ()

    def inner(self, launch: Launch) -> int:
        """Count elements between two that a reduction adds: 1 along rows, else channels."""
        nodes = [self.graph.nodes[index] for index in launch.roots]
        shapes = (
            self.graph.values[node.operands[0]].type.shape[max(node.attributes["dimensions"]) + 1 :]
            for node in nodes
            if node.op == "reduce" and node.attributes["dimensions"]
        )
        return max(map(prod, shapes), default=1)

    def elementwise_flops(self, launch: Launch) -> Scaled:
        """Count one FLOP per element of every fused operation that computes."""
        total = Scaled()
        for index in launch.members:
            node = self.graph.nodes[index]
            if node.op in CHEAP:
                continue
            reduces = node.op in {"reduce", "reduce_window", "select_window"}
            counted = node.operands[0] if reduces else node.results[0]
            if node.op in IN_PLACE:  # only what is written into the other operand is computed
                counted = node.operands[IN_PLACE[node.op][0]]
            value = self.graph.values[counted]
            times = OPERATIONS.get(node.op, 1) if self.graph.lowering == "tensorflow" else 1
            total += self.sizes.scaled(value.elements * times, value.elements)
        return total

    def read_bytes(self, launch: Launch, node: Node) -> Scaled:
        """Count bytes read: what the launch keeps account of; library operands behind views."""
        reads = launch.reads
        if node.op == "convolution":
            reads = self._operand_reads(node, KERNEL_VIEWS)
        elif node.op == "dot_general":
            reads = self._operand_reads(node, VIEWS)
        total = Scaled()
        for amount, elements in reads.values():
            total += self.sizes.scaled(amount, elements)
        return total

    def write_bytes(self, launch: Launch) -> Scaled:
        """Return bytes written: results; in place, what is updated (twice where it is added up)."""
        total = Scaled()
        for index in launch.written or launch.roots:
            node = self.graph.nodes[index]
            in_place = IN_PLACE.get(node.op)
            if in_place is None:
                for result in node.results:
                    total += self._bytes(result)
                continue
            total += self._bytes(node.operands[in_place[0]]).times(in_place[1])
            initial = node.operands[2 if node.op == "select_and_scatter" else 0]
            if not self.fusion.varying[self.graph.values[initial].producer]:
                total += self._bytes(node.results[0])
        return total

    def _bytes(self, value: int) -> Scaled:
        return self.sizes.bytes(self.graph.values[value])

    def _operand_reads(self, node: Node, views: frozenset[str]) -> dict[int, tuple[int, int]]:
        values = {self.graph.strip(value, views) for value in node.operands[:2]}
        held = ((value, self.graph.values[value]) for value in values)
        return {value: (item.bytes, item.elements) for value, item in held}


def _gemm_direction(phase: Phase, sums_over_batch: bool) -> Direction:
    if phase != "backward":
        return "forward"
    return "weight_gradient" if sums_over_batch else "input_gradient"
