"""The step as Keras 3 runs it in TensorFlow's graph: one kernel for every primitive operation.

Keras 2 had fused operations for normalisations (``per_op``); Keras 3 writes them as plain ones. The
operations are those that ``graph_memory`` schedules, with what ``today_rules`` knows of today's
kernels. Nothing is fused, and what a kernel's speed hangs on stands in ``Kernel.dims``.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel
from tfdyno.kernels.launch import LIBRARY, PARTIAL, Fusion, Launch
from tfdyno.kernels.records import IN_PLACE, KernelMaker
from tfdyno.kernels.unfused.cudnn_recurrent import recurrent_kernels
from tfdyno.kernels.unfused.tensorflow_step import tensorflow_operations
from tfdyno.kernels.unfused.today_rules import FLOAT, as_today

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.program import Direction, KernelKind
    from tfdyno.core.choose.workload import TensorSpec
    from tfdyno.kernels.graph import Graph, Node, TensorType
    from tfdyno.kernels.records import Sizes
    from tfdyno.kernels.unfused.tensorflow_ops import Operation

KINDS: dict[str, KernelKind] = {
    "group": "loop",
    "loss": "reduce",
    "tile": "loop",
    "scale": "loop",
    "transpose": "transpose",
    "space_to_batch": "transpose",
    "batch_to_space": "transpose",
}
"""Operations that the traced graph has no node of -> class of kernel."""
Dims = dict[str, tuple[int, ...]]
Names = tuple[str, ...]
IMAGE_AXES = {0, 1, 2}
"""All but the channels of images as Keras orders them."""
VECTOR = 4
"""Elements that a thread takes at a time where all tensors have one shape, or are a number."""
ONE_BY_ONE = frozenset({"convert", "select", "tile"})
"""Kernels whose threads take one element each, whatever the shapes."""


def primitive_kernels(
    graph: Graph,
    sizes: Sizes,
    tensors: tuple[TensorSpec, ...],
    mode: str,
    cudnn_layers: frozenset[str] = frozenset(),
) -> tuple[Kernel, ...]:
    """Return the kernels of a traced step, in program order.

    Args:
        graph: The step.
        sizes: The batch and its marker.
        tensors: The arguments in order.
        mode: ``train`` or ``infer``.
        cudnn_layers: Names of recurrent layers that cuDNN computes: their loops are replaced.

    Raises:
        ToolError: Some operations wait for each other.
    """
    operations = tensorflow_operations(graph)
    made, replaced = recurrent_kernels(graph, sizes, cudnn_layers, mode)
    operations.items = [each for each in operations.items if each.node not in replaced]
    as_today(operations, sizes, replaced)
    maker = _Maker(graph, sizes, tensors, mode, operations.type_of)
    found = [(each.node, maker.of(each)) for each in operations.items]
    return tuple(kernel for _, kernel in sorted([*found, *made], key=lambda one: one[0]))


class _Maker:
    def __init__(
        self,
        graph: Graph,
        sizes: Sizes,
        tensors: tuple[TensorSpec, ...],
        mode: str,
        type_of: Callable[[int], TensorType | None],
    ) -> None:
        self.graph, self.sizes, self.type_of = graph, sizes, type_of
        self.plain = KernelMaker(graph, Fusion([], [], []), sizes, tensors, mode)
        images = [node for node in graph.nodes if node.op == "convolution"]
        kinds = {graph.values[node.operands[0]].type.dtype for node in images}
        self.channels_first = kinds == {FLOAT}
        """Whether the layout optimizer orders images as NCHW: sums over them then jump."""

    def of(self, each: Operation) -> Kernel:
        """Return the record of one operation, loops around it multiplied in."""
        node = self.graph.nodes[each.node]
        reads = {b: (held.bytes, held.elements) for b in each.reads if (held := self.type_of(b))}
        launch = Launch([each.node], reads, 0, each.node, members=[each.node])
        kind = KINDS.get(each.kind) or self.plain.kind(launch)
        if each.kind == "group":
            kind = self.kind_of_group(node)
        phase = self.plain.phase(launch, node)
        trips = node.repeats
        own = each.kind == node.op
        flops, scaled = Scaled(), Names()
        direction: Direction = ""
        dims: Dims = {}
        if own:
            flops, direction, dims, scaled = self.plain.work(launch, node, kind, phase)
        if kind == "reduce":
            dims, scaled = self.summed(each, node)
        elif kind not in ("convolution", "gemm", "window"):
            dims, scaled = self.elements(each, node)
        return Kernel(
            kind=kind,
            dtype=self.dtype(each, node),
            flops=flops.times(trips),
            read_bytes=self.read(each, node).times(trips),
            write_bytes=self.written(each, node).times(trips),
            direction=direction,
            phase=phase,
            layer=self.plain.layer(launch, node, phase),
            name=each.kind,
            dims=dims,
            dims_scaled=scaled,
            repeats=trips,
            count=trips,
        )

    def kind_of_group(self, node: Node) -> KernelKind:
        """Tell random numbers, a softmax or an activation function by the place they stand in."""
        if node.op == "divide":
            return "reduce"
        random = ("_uniform", "_normal", "_randint", "_gumbel", "truncated")
        return "random" if any(word in node.location for word in random) else "loop"

    def dtype(self, each: Operation, node: Node) -> str:
        if each.kind in LIBRARY:
            return self.graph.values[node.operands[0]].type.dtype
        kinds = (self.type_of(buffer) for buffer in (*each.writes, *each.reads))
        return next((kind.dtype for kind in kinds if kind), "")

    def size(self, buffer: int) -> Scaled:
        kind = self.type_of(buffer)
        return self.sizes.bytes(kind) if kind else Scaled()

    def read(self, each: Operation, node: Node) -> Scaled:
        """Return all of what is read, but no more of a table than is taken from it."""
        sizes = [self.size(buffer) for buffer in dict.fromkeys(each.reads)]
        if each.kind in PARTIAL and each.writes and sizes:
            sizes[0] = self.size(each.writes[0])
        if each.kind in IN_PLACE and each.kind != "select_and_scatter" and sizes:
            sizes = sizes[1:]
        return sum(sizes, start=Scaled())

    def written(self, each: Operation, node: Node) -> Scaled:
        """Return the results; in place only what is updated."""
        in_place = IN_PLACE.get(each.kind)
        if in_place is None or each.kind == "select_and_scatter":
            return sum((self.size(buffer) for buffer in each.writes), start=Scaled())
        return self.sizes.bytes(self.graph.values[node.operands[in_place[0]]]).times(in_place[1])

    def elements(self, each: Operation, node: Node) -> tuple[Dims, Names]:
        """Return ``elements`` of the result, and how many a thread takes (``per_thread``)."""
        kinds = [kind for buffer in each.writes if (kind := self.type_of(buffer))]
        count = max((kind.elements for kind in kinds), default=1)
        reads = [kind.elements for b in each.reads if (kind := self.type_of(b))]
        spread = any(1 < elements < count for elements in reads)
        single = each.kind in ONE_BY_ONE or spread or KINDS.get(each.kind) == "transpose"
        dims: Dims = {"elements": (count,), "per_thread": (1 if single else VECTOR,)}
        return dims, ("elements",) if self.sizes.grows(count) else ()

    def summed(self, each: Operation, node: Node) -> tuple[Dims, Names]:
        """Return ``outer``, ``summed`` and ``inner``: axes before, in and behind those added up.

        ``scattered``: what is added up lies in pieces, between which other results' lie.
        """
        if each.kind != "reduce":  # along rows: a softmax, a loss
            kind = self.type_of(each.writes[0]) if each.writes else None
            shape = kind.shape if kind and kind.shape else (1,)
            axes = {len(shape) - 1}
        else:
            shape = self.graph.values[node.operands[0]].type.shape
            axes = set(node.attributes["dimensions"])
        held = [axis for axis, size in enumerate(shape) if size > 1]
        added = [axis for axis in held if axis in axes]
        last, first = max(added, default=-1), min(added, default=0)
        inner, outer = prod(shape[last + 1 :]), prod(shape[:first])
        results = prod(shape) // max(1, prod(shape[axis] for axis in added))
        dims: Dims = {"outer": (outer,), "summed": (prod(shape) // results,), "inner": (inner,)}
        image = self.channels_first and axes == IMAGE_AXES and self.dtype(each, node) == FLOAT
        if image or inner * outer < results:
            dims |= {"outer": (1,), "inner": (results,), "scattered": (1,)}
        return dims, tuple(name for name, size in dims.items() if self.sizes.grows(prod(size)))
