"""What a step holds in memory when TensorFlow runs its graph operation by operation.

The kernels are those of ``tensorflow_ops`` and ``tensorflow_rules``, the order and the lives of
their results those of ``executor``; no number is fitted. ``scripts/graph_memory_truth`` holds it
against TensorFlow's own allocator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Buffer, BufferPlan
from tfdyno.kernels.graph import TensorType
from tfdyno.kernels.layers import layer_of
from tfdyno.kernels.memory.buffer_parts import (
    DONATED,
    TemporaryParts,
    largest,
    part_of_role,
    parts_bytes,
)
from tfdyno.kernels.memory.executor import Stay, run
from tfdyno.kernels.memory.live_bytes import Life, curve, envelope, live_bytes
from tfdyno.kernels.unfused.tensorflow_step import tensorflow_operations
from tfdyno.model.memory.bfc import Replay, Request, replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.choose.workload import TensorSpec
    from tfdyno.kernels.graph import Graph
    from tfdyno.kernels.records import Sizes

NOTHING = TensorType((0,), "token", 0)


@dataclass(slots=True)
class _Span:
    """A stay with its size."""

    start: int
    end: int
    size: Scaled


class GraphMemory:
    """The schedule of a step in TensorFlow's graph mode, and what it holds.

    Raises:
        ToolError: Some operations wait for each other.
    """

    def __init__(
        self, graph: Graph, sizes: Sizes, tensors: tuple[TensorSpec, ...], mode: str
    ) -> None:
        self.graph, self.sizes = graph, sizes
        self.specs = dict(zip(graph.arguments, tensors, strict=False))
        self.operations = tensorflow_operations(graph)
        donated = (v for v, spec in self.specs.items() if mode == "train" and spec.role in DONATED)
        self.schedule, self.stays = run(self.operations, frozenset(donated))
        self.parts = TemporaryParts(graph, sizes, tensors)
        self.makers = {b: each.node for each in self.operations.items for b in each.writes}

    def plan(self) -> BufferPlan:
        """Plan arguments, outputs and temporaries, with the peak and what is alive at it.

        New values of variables count as temporaries: they have memory of their own until they
        replace the old ones.
        """
        batch = self.sizes.batch_size
        spans = [_Span(stay.start, stay.end, self._size(stay.buffer)) for stay in self.stays]
        live = live_bytes(spans, max(1, len(self.schedule)))
        at = max(range(len(live)), key=lambda step: live[step].at(batch))
        argument = sum(map(self._size, self.graph.arguments), start=Scaled())
        output = sum(map(self._size, self.operations.outputs), start=Scaled())
        made = [(stay, self._buffer(stay)) for stay in self.stays]

        def held_at(moment: int) -> list[Buffer]:
            return [buffer for stay, buffer in made if stay.start <= moment <= stay.end]

        held, lines = held_at(at), envelope(live)
        return BufferPlan(
            argument_bytes=argument,
            output_bytes=output,
            aliased_bytes=output,
            temporary_bytes=live[at] + argument.times(-1),
            peak_bytes=live[at],
            parts_bytes=parts_bytes(held),
            largest=largest(held, batch),
            live_curve=curve(live, Scaled(), batch),
            envelope=tuple(lines),
            envelope_parts=tuple(parts_bytes(held_at(live.index(line))) for line in lines),
        )

    def lives(self) -> list[Life]:
        """Return every buffer with the kernels of the schedule that need it."""
        return [
            Life(start=stay.start, end=stay.end, buffer=self._buffer(stay)) for stay in self.stays
        ]

    def allocations(
        self, *, batch_size: int = 0, limit_bytes: int | None = None, growth: bool = False
    ) -> Replay:
        """Return what TensorFlow's allocator makes of it (see ``bfc``); 0: the traced batch."""
        requests = self._requests(batch_size or self.sizes.batch_size)
        return replay(requests, limit_bytes=limit_bytes, growth=growth)

    def _requests(self, batch_size: int) -> Iterator[Request]:
        starts: dict[int, list[int]] = {}
        ends: dict[int, list[int]] = {}
        for number, stay in enumerate(self.stays):
            starts.setdefault(stay.start, []).append(number)
            ends.setdefault(stay.end, []).append(number)
        for step in range(max(1, len(self.schedule))):
            for number in starts.get(step, ()):
                size = self._size(self.stays[number].buffer).at(batch_size)
                yield Request(buffer=number, bytes=round(size))
            for number in ends.get(step, ()):
                yield Request(buffer=number, bytes=None)

    def _size(self, buffer: int) -> Scaled:
        kind = self.operations.type_of(buffer)
        return Scaled() if kind is None else self.sizes.bytes(kind)

    def _buffer(self, stay: Stay) -> Buffer:
        spec = self.specs.get(stay.buffer)
        kind = self.operations.type_of(stay.buffer) or NOTHING
        if spec is not None:
            name, layer = spec.name, spec.name.rpartition("/")[0]
            part = part_of_role(spec.role)
        else:
            index = self.makers[stay.buffer]
            node = self.graph.nodes[index]
            name, layer, part = node.op, layer_of(node.location), self.parts.of(index, kind)
        return Buffer(
            name=name,
            layer=layer,
            part=part,
            dtype=kind.dtype,
            shape=kind.shape,
            bytes=self._size(stay.buffer),
        )
