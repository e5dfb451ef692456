"""Identical kernels as one record with a count: compact storage that costs the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tfdyno.core.program import Kernel, Program


def merged(program: Program) -> Program:
    """The program with like kernels merged, whatever their layer and name.

    Merged are kernels of the same kind, dtype, direction, phase, sizes, FLOPs and bytes; the record
    left holds their sums and the number of launches in ``count``. Layer, name and order are lost; a
    cost model that adds up kernels answers the same.
    """
    found: dict[Hashable, Kernel] = {}
    number: dict[Hashable, int] = {}
    for kernel in program.kernels:
        key = _key(kernel)
        found.setdefault(key, kernel)
        number[key] = number.get(key, 0) + 1
    return replace(
        program, kernels=tuple(_times(kernel, number[key]) for key, kernel in found.items())
    )


def _key(kernel: Kernel) -> Hashable:
    return (
        (kernel.kind, kernel.dtype, kernel.direction, kernel.phase),
        (kernel.flops, kernel.read_bytes, kernel.write_bytes, kernel.workspace_bytes),
        (tuple(sorted(kernel.dims.items())), kernel.dims_scaled, kernel.repeats, kernel.count),
    )


def _times(kernel: Kernel, number: int) -> Kernel:
    return replace(
        kernel,
        layer="",
        name="",
        count=kernel.count * number,
        flops=kernel.flops.times(number),
        read_bytes=kernel.read_bytes.times(number),
        write_bytes=kernel.write_bytes.times(number),
    )
