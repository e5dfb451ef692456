"""What an allocator did, in order, as TensorFlow's profiler wrote it down."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfdyno.core.base.untyped import Value

ALLOCATOR = "bfc_cpu_allocator_for_gpu"
XLA_PROGRAM = "CpuExecutable"
"""How the event of a program of XLA begins; what it takes has no operation's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An allocation (``freed`` false) or a release."""

    at_ps: int
    freed: bool
    address: int
    requested_bytes: int
    chunk_bytes: int
    """What the allocator handed out: rounded up, and an undivided chunk if it was a little more."""
    operation: str
    region: str
    """``output`` or ``temp``; a release has none."""
    shape: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When a kernel (or a marked part) ran."""

    start_ps: int
    end_ps: int
    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """Memory from its allocation to its release (``None``: it was not released)."""

    allocated: Event
    released_ps: int | None


def memory_events(space: Value) -> list[Event]:
    """The events of TensorFlow's best-fit allocator in a profile (``XSpace``), in order of time."""
    found = [
        event for plane in space.planes for line in plane.lines for event in _events(plane, line)
    ]
    return sorted(found, key=lambda event: event.at_ps)


def spans(space: Value) -> list[Span]:
    """Everything in a profile that took time, in order of its start."""
    found = []
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name, _, kind = (
                    plane.event_metadata[event.metadata_id].name.partition("#")[0].rpartition(":")
                )
                start = _picoseconds(line, event)
                end = start + int(event.duration_ps)
                found.append(Span(start_ps=start, end_ps=end, name=name or kind, kind=kind))
    return sorted(found, key=lambda span: span.start_ps)


def tensors(events: Iterable[Event]) -> list[Tensor]:
    """Pair allocations with their releases, by address."""
    held: dict[int, Event] = {}
    found = []
    for event in events:
        before = held.pop(event.address, None)
        if before is not None:
            found.append(Tensor(allocated=before, released_ps=event.at_ps))
        if not event.freed:
            held[event.address] = event
    found += [Tensor(allocated=event, released_ps=None) for event in held.values()]
    return sorted(found, key=lambda tensor: tensor.allocated.at_ps)


def is_scratch(found: list[Tensor], kernels: list[Span]) -> list[bool]:
    """Which are room that a kernel takes and gives back while it runs, not a tensor.

    Keras hands grouped convolutions to XLA; its programs for CPUs bring scratch room as well.
    """
    by_name: defaultdict[str, list[Span]] = defaultdict(list)
    for span in kernels:
        by_name[XLA_PROGRAM if span.name.startswith(XLA_PROGRAM) else span.name].append(span)
    return [
        tensor.allocated.region != "output"
        and tensor.released_ps is not None
        and any(
            span.start_ps <= tensor.allocated.at_ps and tensor.released_ps <= span.end_ps
            for span in by_name[tensor.allocated.operation or XLA_PROGRAM]
        )
        for tensor in found
    ]


def _events(plane: Value, line: Value) -> Iterator[Event]:
    kinds = {"MemoryAllocation": False, "MemoryDeallocation": True}
    for event in line.events:
        freed = kinds.get(plane.event_metadata[event.metadata_id].name)
        if freed is None:
            continue
        told = dict(_told(plane, event.stats))
        if told.get("allocator_name") == ALLOCATOR:
            yield Event(
                at_ps=_picoseconds(line, event),
                freed=freed,
                address=int(told["addr"]),
                requested_bytes=int(told["requested_bytes"]),
                chunk_bytes=int(told["allocation_bytes"]),
                operation=str(told.get("tf_op", "")),
                region=str(told.get("region_type", "")),
                shape=str(told.get("shape", "")),
            )


def _told(plane: Value, stats: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for stat in stats:
        kind = stat.WhichOneof("value")
        value = getattr(stat, kind)
        name = plane.stat_metadata[stat.metadata_id].name
        yield name, plane.stat_metadata[value].name if kind == "ref_value" else value


def _picoseconds(line: Value, event: Value) -> int:
    return int(line.timestamp_ns) * 1000 + int(event.offset_ps)
