"""Child process: a traced step -> what it holds at one batch, moment by moment and by layer."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tfdyno.core.base.errors import ToolError
from tfdyno.core.choose.memory_map import AllocatorNeed, HeldTensor, LayerMemory, MemoryMap, Moment
from tfdyno.core.messages.memory import MEMORY_MAP
from tfdyno.kernels.fusion.memory_order import ordered
from tfdyno.kernels.fusion.rule import fuse, fuse_for_memory
from tfdyno.kernels.layers import layer_of, phase_of
from tfdyno.kernels.memory.buffer_parts import PARTS
from tfdyno.kernels.memory.graph_memory import GraphMemory
from tfdyno.kernels.memory.live_bytes import CURVE_POINTS, live_bytes
from tfdyno.kernels.memory.liveness import lives
from tfdyno.kernels.records import Sizes
from tfdyno.kernels.unfused.per_op import per_op
from tfdyno.process import child

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.program import Buffer
    from tfdyno.core.messages.memory import MapMemory
    from tfdyno.kernels.graph import Graph
    from tfdyno.kernels.memory.live_bytes import Life

MOST_TENSORS = 40
MOST_LAYERS = 40


class _Course(NamedTuple):
    """What is held, and where each step of the schedule stands in the traced program."""

    held: list[Life]
    locations: list[str]
    allocator: AllocatorNeed | None = None
    notes: tuple[str, ...] = ()


def map_step(request: MapMemory, progress: child.Progress) -> MemoryMap:
    """Read the step and map its memory.

    Raises:
        ToolError: The file is no traced step.
    """
    from tfdyno.runtime.trace.stablehlo import read_graph, read_module
    from tfdyno.runtime.trace.widening import widened

    progress("laying out its memory")
    graph = read_graph(read_module(request.stablehlo))
    return map_of(widened(graph) if request.widen else graph, request)


def map_of(graph: Graph, request: MapMemory) -> MemoryMap:
    """Return what a step holds at the batch that is asked about."""
    batch_size, sizes = request.batch_size, Sizes(request.traced_batch_size, request.marker)
    course = _executed(graph, sizes, request)
    steps = max(1, len(course.locations))
    live = [amount.at(batch_size) for amount in live_bytes(course.held, steps)]
    at = max(range(steps), key=live.__getitem__)
    alive = [life for life in course.held if life.start <= at <= life.end]
    alive.sort(key=lambda life: -life.size.at(batch_size))
    where = course.locations[at] if course.locations else ""
    always = sum(life.size.at(batch_size) for life in course.held
                 if life.start == 0 and life.end == steps - 1)  # fmt: skip
    return MemoryMap(
        batch_size=batch_size,
        execution=request.execution,
        moments=_moments(course.held, live, batch_size),
        peak_share=_share(at, steps),
        peak_bytes=live[at],
        peak_layer=layer_of(where),
        peak_phase=phase_of(where) if request.mode == "train" else "forward",
        parts_bytes=_parts(alive, batch_size),
        tensors=tuple(_tensor(life, sizes, batch_size, steps) for life in alive[:MOST_TENSORS]),
        layers=_layers(alive, batch_size),
        held_count=len(alive),
        allocator=course.allocator,
        temporary_bytes=0.0 if course.allocator else live[at] - always,
        notes=course.notes,
    )


def _executed(graph: Graph, sizes: Sizes, request: MapMemory) -> _Course:
    """Return what is held as XLA plans it, or as TensorFlow's executor holds it."""
    tensors, mode = request.tensors, request.mode
    notes: tuple[str, ...] = ()
    if request.execution == "graph":
        try:
            memory = GraphMemory(graph, sizes, tensors, mode)
        except ToolError as error:
            notes = (f"Memory is that of XLA's order: {error}",)
            graph = per_op(graph)
        else:
            held = memory.lives()
            where = [graph.nodes[each.node].location for each in memory.schedule]
            return _Course(held, where, _allocator(memory, held, request))
    fused = fuse_for_memory(graph) if request.keeps else fuse(graph)
    fusion = ordered(graph, fused, sizes, tensors, mode)
    where = [graph.nodes[launch.roots[0]].location for launch in fusion.launches]
    return _Course(lives(graph, fusion, sizes, tensors, mode), where, None, notes)


def _allocator(memory: GraphMemory, held: Sequence[Life], request: MapMemory) -> AllocatorNeed:
    batch_size, pool_bytes = request.batch_size, request.pool_bytes
    done = memory.allocations(batch_size=batch_size, limit_bytes=round(pool_bytes))
    return AllocatorNeed(
        largest_request_bytes=max((life.size.at(batch_size) for life in held), default=0.0),
        requested_peak_bytes=done.requested_peak_bytes,
        in_use_peak_bytes=done.in_use_peak_bytes,
        footprint_bytes=done.footprint_bytes,
        pool_bytes=pool_bytes,
        free_bytes=done.free_bytes,
        largest_free_bytes=done.largest_free_bytes,
        failed_bytes=done.failed_bytes,
    )


def _moments(held: Sequence[Life], live: Sequence[float], batch_size: int) -> tuple[Moment, ...]:
    """Return the worst moment of each of at most ``CURVE_POINTS`` stretches, split into parts."""
    steps = len(live)
    by_part = {
        part: [amount.at(batch_size) for amount in
               live_bytes([life for life in held if life.buffer.part == part], steps)]
        for part in PARTS
    }  # fmt: skip
    width = max(1, -(-steps // CURVE_POINTS))
    found = []
    for start in range(0, steps, width):
        at = max(range(start, min(steps, start + width)), key=live.__getitem__)
        parts = {part: amounts[at] for part, amounts in by_part.items() if amounts[at] > 0.0}
        found.append(Moment(share=_share(start, steps), live_bytes=live[at], parts_bytes=parts))
    return tuple(found)


def _tensor(life: Life, sizes: Sizes, batch_size: int, steps: int) -> HeldTensor:
    one = life.buffer
    return HeldTensor(
        name=one.name,
        layer=one.layer,
        part=one.part,
        dtype=one.dtype,
        shape=_shape_at(one, sizes, batch_size),
        held_bytes=one.bytes.at(batch_size),
        first_share=_share(life.start, steps),
        last_share=_share(life.end, steps),
    )


def _shape_at(one: Buffer, sizes: Sizes, batch_size: int) -> tuple[int, ...]:
    """Return the shape at the batch asked: the first dimension that the marker divides grows."""
    if not one.bytes.per_sample:
        return one.shape
    place = next((n for n, size in enumerate(one.shape) if sizes.grows(size)), None)
    if place is None:
        return one.shape
    grown = round(one.shape[place] * batch_size / sizes.batch_size)
    return (*one.shape[:place], grown, *one.shape[place + 1 :])


def _parts(alive: Sequence[Life], batch_size: int) -> dict[str, float]:
    parts = dict.fromkeys(PARTS, 0.0)
    for life in alive:
        parts[life.buffer.part] += life.size.at(batch_size)
    return {part: amount for part, amount in parts.items() if amount > 0.0}


def _layers(alive: Sequence[Life], batch_size: int) -> tuple[LayerMemory, ...]:
    groups: defaultdict[str, list[Life]] = defaultdict(list)
    named = {life.buffer.layer for life in alive}
    for life in alive:
        layer = life.buffer.layer
        # weights of a Sequential have its name before that of the layer, operations have not
        inner = layer.partition("/")[2]
        groups[inner if inner and inner in named else layer].append(life)
    found = [
        LayerMemory(
            layer=layer,
            held_bytes=sum(life.size.at(batch_size) for life in some),
            tensor_count=len(some),
            parts_bytes=_parts(some, batch_size),
        )
        for layer, some in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.held_bytes)[:MOST_LAYERS])


def _share(step: int, steps: int) -> float:
    return step / max(1, steps - 1)


if __name__ == "__main__":
    child.leave(child.serve(map_step, MEMORY_MAP))
