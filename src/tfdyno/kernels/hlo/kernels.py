"""Optimised HLO -> the kernels that a GPU launches, in order.

Every instruction of the schedule that is not free is one launch; loops multiply what they hold by
their trip count. A fusion's class comes from what it contains, its bytes from what it really reads.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel, KernelKind, Phase
from tfdyno.kernels.hlo.fusions import (
    UPDATES,
    fusion_kind,
    inner_elements,
    shapes_computed,
    shapes_read,
    shapes_written,
    windows,
)
from tfdyno.kernels.hlo.library import LibraryCall, dot, library_call, scratch_bytes
from tfdyno.kernels.hlo.text import Computation, HloModule, Instruction, Shape, leaves
from tfdyno.kernels.layers import layer_of, phase_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.kernels.records import Sizes

FREE = frozenset({
    "parameter", "get-tuple-element", "tuple", "bitcast", "constant", "after-all", "iota",
    "partition-id", "replica-id", "opt-barrier", "add-dependency", "async-done", "async-update",
    "copy-done", "all-reduce-done", "all-gather-done", "collective-permute-done", "send-done",
    "recv-done",
})  # fmt: skip
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-")
PLAIN: dict[str, KernelKind] = {
    "copy": "copy", "copy-start": "copy", "transpose": "transpose", "sort": "sort", "rng": "random",
    "rng-bit-generator": "random", "rng-get-and-update-state": "random", "gather": "gather",
    "scatter": "scatter", "reduce": "reduce", "reduce-window": "window",
    "select-and-scatter": "window", "fft": "other", "cholesky": "other",
    "triangular-solve": "other", "custom-call": "other",
}  # fmt: skip
"""Instructions that XLA left outside every fusion; others are loops."""
TARGETS: tuple[tuple[str, KernelKind], ...] = (
    ("TopK", "sort"),
    ("topk", "sort"),
    ("Sort", "sort"),
    ("threefry", "random"),
)
"""Part of a custom call's target -> kind."""
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')


class KernelReader:
    """Reads the kernels of one module; ``sizes`` says what grows with the batch."""

    def __init__(self, module: HloModule, sizes: Sizes, *, train: bool) -> None:
        """Take the module apart lazily; nothing is changed in it."""
        self.module, self.sizes, self.train = module, sizes, train

    def kernels(self) -> tuple[Kernel, ...]:
        """Return all launches of a step in order."""
        return tuple(self._of(self.module.entry, 1))

    def _of(self, computation: Computation, repeats: int) -> Iterator[Kernel]:
        for instruction in computation.instructions.values():
            inner, trips = self._inner(instruction)
            if inner is not None:
                yield from self._of(inner, repeats * trips)
            elif instruction.opcode not in FREE:
                yield _repeated(self._kernel(computation, instruction), repeats)

    def _inner(self, instruction: Instruction) -> tuple[Computation | None, int]:
        """Return the computation that the host launches for an instruction, and how often."""
        named = self.module.computations
        match instruction.opcode:
            case "while":
                trips = _TRIPS.search(instruction.attributes)
                return named.get(instruction.attribute("body")), int(trips[1]) if trips else 1
            case "call" | "async-start":
                return named.get(instruction.calls), 1
            case "conditional":
                branches = [named[name] for name in branch_names(instruction) if name in named]
                return max(branches, key=lambda each: len(each.instructions), default=None), 1
        return None, 1

    def _kernel(self, computation: Computation, instruction: Instruction) -> Kernel:
        location = location_of(self.module, instruction)
        phase: Phase = phase_of(location) if self.train else "forward"
        operands = operand_shapes(computation, instruction)
        inside = self.module.computations.get(instruction.calls)
        fused = inside if instruction.opcode == "fusion" else None
        work = _work(instruction, operands, fused, phase, self.sizes)
        kind = work.kind if work else _kind(instruction, fused)
        base = Kernel(
            kind=kind,
            dtype=_dtype(instruction, operands),
            read_bytes=self._read(instruction, operands, fused),
            write_bytes=self._written(instruction, fused),
            phase=phase,
            layer=layer_of(location),
            name=instruction.name,
            workspace_bytes=Scaled(fixed=scratch_bytes(instruction)),
        )
        if work:
            return self._with_work(base, work)
        return replace(base, dims=_dims(kind, fused), flops=self._computed(fused))

    def _with_work(self, kernel: Kernel, work: LibraryCall) -> Kernel:
        grow = ("m", "n", "k", "batch") if work.kind == "gemm" else ("n",)
        scaled = tuple(name for name in grow if self.sizes.grows(work.dims[name][0]))
        return replace(
            kernel,
            flops=self.sizes.scaled(work.flops, prod(prod(work.dims[name]) for name in grow)),
            direction=work.direction,
            dims=work.dims,
            dims_scaled=scaled,
        )

    def _read(
        self, instruction: Instruction, operands: list[Shape], fused: Computation | None
    ) -> Scaled:
        if fused is not None:
            return self.sizes.bytes(*shapes_read(fused))
        return self.sizes.bytes(*operands[instruction.opcode in UPDATES :])

    def _written(self, instruction: Instruction, fused: Computation | None) -> Scaled:
        if fused is not None:
            return self.sizes.bytes(*shapes_written(fused))
        if instruction.opcode == "dynamic-update-slice":
            return Scaled()
        results = leaves(instruction.type)
        return self.sizes.bytes(*(results[:-1] if scratch_bytes(instruction) else results))

    def _computed(self, fused: Computation | None) -> Scaled:
        shapes = shapes_computed(fused) if fused else []
        amounts = (self.sizes.scaled(shape.elements, shape.elements) for shape in shapes)
        return sum(amounts, start=Scaled())


def _dims(kind: KernelKind, fused: Computation | None) -> dict[str, tuple[int, ...]]:
    if fused and kind in ("window", "scan"):
        return windows(fused)
    return {"inner": (inner_elements(fused),)} if fused and kind == "reduce" else {}


def branch_names(instruction: Instruction) -> list[str]:
    """Return the computations among which a conditional chooses."""
    listed = instruction.group("branch_computations")
    if listed:
        return [name.strip().lstrip("%") for name in listed.split(",")]
    pair = (instruction.attribute(f"{side}_computation") for side in ("true", "false"))
    return [name for name in pair if name]


def operand_shapes(computation: Computation, instruction: Instruction) -> list[Shape]:
    """Return the arrays that an instruction reads."""
    found: list[Shape] = []
    for name in instruction.operands:
        if name in computation.instructions:
            found += leaves(computation.instructions[name].type)
    return found


def location_of(module: HloModule, instruction: Instruction) -> str:
    """Return where an instruction comes from: its own scopes, or what it fuses."""
    if instruction.location:
        return instruction.location
    inside = module.computations.get(instruction.calls)
    if inside is None:
        return ""
    locations = [each.location for each in inside.instructions.values() if each.location]
    return locations[-1] if locations else ""


def _kind(instruction: Instruction, fused: Computation | None) -> KernelKind:
    opcode = instruction.opcode
    if fused is not None:
        return fusion_kind(fused, instruction.attribute("kind"))
    if opcode.startswith(COLLECTIVES):
        return "collective"
    if opcode == "custom-call":
        target = instruction.attribute("custom_call_target")
        return next((kind for part, kind in TARGETS if part in target), "other")
    return PLAIN.get(opcode, "loop")


def _work(
    instruction: Instruction,
    operands: list[Shape],
    fused: Computation | None,
    phase: Phase,
    sizes: Sizes,
) -> LibraryCall | None:
    if fused is None:
        return library_call(instruction, operands, phase, sizes)
    products = [each for each in fused.instructions.values() if each.opcode == "dot"]
    if not products:
        return None
    return dot(products[0], operand_shapes(fused, products[0]))


def _dtype(instruction: Instruction, operands: list[Shape]) -> str:
    """Return the type of the first operand with a fraction, else of the result."""
    floats = [each.dtype for each in operands if each.dtype[0] in "fb" and each.elements > 1]
    if instruction.opcode == "custom-call" and operands:
        return operands[0].dtype
    results = leaves(instruction.type)
    return floats[0] if floats else results[0].dtype if results else "f32"


def _repeated(kernel: Kernel, trips: int) -> Kernel:
    if trips == 1:
        return kernel
    return replace(
        kernel,
        flops=kernel.flops.times(trips),
        read_bytes=kernel.read_bytes.times(trips),
        write_bytes=kernel.write_bytes.times(trips),
        repeats=trips,
        count=kernel.count * trips,
    )
