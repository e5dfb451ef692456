"""The buffer plan of a compiled module: the compiler's totals, split by part, layer and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Buffer, BufferPlan
from tfdyno.kernels.hlo.buffers import BufferReader, Temporary
from tfdyno.kernels.hlo.kernels import location_of
from tfdyno.kernels.hlo.text import HloModule, Shape, leaves
from tfdyno.kernels.layers import layer_of, phase_of
from tfdyno.kernels.memory.buffer_parts import largest, part_of_role, parts_bytes
from tfdyno.kernels.memory.live_bytes import curve, envelope, live_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.workload import TensorSpec
    from tfdyno.kernels.records import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTotals:
    """What the compiler's buffer assignment needs, at the compiled batch."""

    argument_bytes: int
    output_bytes: int
    aliased_bytes: int
    temporary_bytes: int


def plan_of(
    module: HloModule,
    sizes: Sizes,
    totals: MemoryTotals,
    tensors: tuple[TensorSpec, ...],
    *,
    train: bool,
) -> BufferPlan:
    """Split the compiler's totals by an own liveness analysis of its schedule.

    The analysis says what is alive when, and what grows with the batch; its peak is then scaled to
    the compiler's own (within 2 % of each other), which knows alignment and fragmentation too.
    """
    batch = sizes.batch_size
    reader = BufferReader(module, sizes)
    live = live_bytes(reader.temporaries, reader.steps) or [Scaled()]
    at = max(range(len(live)), key=lambda step: live[step].at(batch))
    factor = totals.temporary_bytes / live[at].at(batch) if live[at].at(batch) else 1.0
    live = [line.times(factor) for line in live]
    argument, output, aliased = _resident(module, sizes, totals)
    resident = argument + output + aliased.times(-1)
    temporary = _exactly(live[at], totals.temporary_bytes, batch)
    alive = [each for each in reader.temporaries if each.start <= at <= each.end]
    held = [*_arguments(module, sizes, tensors), *_results(module, sizes)]
    held += _temporaries(module, sizes, alive, factor, tensors, train=train)
    peak = resident + temporary
    return BufferPlan(
        argument_bytes=argument,
        output_bytes=output,
        aliased_bytes=aliased,
        temporary_bytes=temporary,
        peak_bytes=peak,
        parts_bytes=_parts(held, peak),
        largest=largest(held, batch),
        live_curve=curve(live, resident, batch),
        envelope=tuple(resident + line for line in envelope(live)),
    )


def _resident(
    module: HloModule, sizes: Sizes, totals: MemoryTotals
) -> tuple[Scaled, Scaled, Scaled]:
    """Return arguments, results, and results in arguments' places; at the batch as XLA has them."""
    arguments = [shape for each in module.entry.parameters() for shape in leaves(each.type)]
    results = leaves(module.entry.root.type)
    reused = [shape for number, shape in enumerate(results) if number in module.aliases]
    batch = sizes.batch_size
    return (
        _exactly(sizes.bytes(*arguments), totals.argument_bytes, batch),
        _exactly(sizes.bytes(*results), totals.output_bytes, batch),
        _exactly(sizes.bytes(*reused), totals.aliased_bytes, batch),
    )


def _arguments(
    module: HloModule, sizes: Sizes, tensors: tuple[TensorSpec, ...]
) -> Iterable[Buffer]:
    for number, parameter in enumerate(module.entry.parameters()):
        spec = tensors[number] if number < len(tensors) else None
        name = spec.name if spec else parameter.name
        part = part_of_role(spec.role if spec else "")
        for shape in leaves(parameter.type):
            yield _buffer(sizes, shape, name=name, layer=name.rpartition("/")[0], part=part)


def _results(module: HloModule, sizes: Sizes) -> Iterable[Buffer]:
    """Yield results that have memory of their own: the loss, metrics, predictions."""
    for number, shape in enumerate(leaves(module.entry.root.type)):
        if number not in module.aliases:
            yield _buffer(sizes, shape, name="output", layer="", part="activations")


def _temporaries(
    module: HloModule,
    sizes: Sizes,
    alive: list[Temporary],
    factor: float,
    tensors: tuple[TensorSpec, ...],
    *,
    train: bool,
) -> Iterable[Buffer]:
    weights = {_elements(spec) for spec in tensors if spec.role == "weight"}
    for each in alive:
        location = location_of(module, each.instruction)
        backward = train and phase_of(location) != "forward"
        part = _part(each, sizes, weights, backward=backward)
        name, layer = each.instruction.name, layer_of(location)
        yield _buffer(sizes, each.shape, name=name, layer=layer, part=part, factor=factor)


def _part(each: Temporary, sizes: Sizes, weights: set[int], *, backward: bool) -> str:
    """Return what a temporary is for, by its size and where in the step it is made."""
    elements = each.shape.elements
    if each.scratch:
        return "workspace"
    if sizes.grows(elements):
        return "activations"
    if elements in weights:
        return "gradients" if backward else "weights"
    return "workspace" if sizes.marker else "activations"


def _parts(held: list[Buffer], peak: Scaled) -> dict[str, Scaled]:
    """Return the peak by part; what the compiler needs beyond the buffers counts as workspace."""
    parts = parts_bytes(held)
    parts["workspace"] += peak + sum(parts.values(), start=Scaled()).times(-1)
    return parts


def _buffer(
    sizes: Sizes, shape: Shape, *, name: str, layer: str, part: str, factor: float = 1.0
) -> Buffer:
    size = sizes.bytes(shape).times(factor)
    return Buffer(
        name=name, layer=layer, part=part, dtype=shape.dtype, shape=shape.dims, bytes=size
    )


def _elements(spec: TensorSpec) -> int:
    return Shape("", spec.shape).elements


def _exactly(amount: Scaled, total: float, batch_size: int) -> Scaled:
    """Correct the fixed part of ``amount`` so that it gives ``total`` at the batch."""
    missing = total - amount.at(batch_size)
    return Scaled(fixed=amount.fixed + missing, per_sample=amount.per_sample)
