"""The peaks of a step from what was allocated when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graph_memory.events import Tensor

ROUNDED_TO_BYTES = 256
"""BFCAllocator::kMinAllocationSize of TensorFlow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What one step needed; every peak is the highest of its own kind."""

    resident_bytes: int
    """Requested by tensors that were there before: variables, inputs."""
    tensor_peak_bytes: int
    """Requested at once by tensors, without the scratch room of kernels."""
    requested_peak_bytes: int
    """The same with the scratch room."""
    rounded_peak_bytes: int
    """The same, every request rounded up to 256 bytes."""
    in_use_peak_bytes: int
    """The same in whole chunks: TensorFlow's own ``peak_bytes_in_use``."""
    footprint_bytes: int
    """Of all addresses used during the step: with fragmentation."""


def peaks(tensors: Sequence[Tensor], scratch: Sequence[bool], start_ps: int, end_ps: int) -> Peaks:
    """The peaks of the step between two moments."""
    during = [
        (tensor, room)
        for tensor, room in zip(tensors, scratch, strict=True)
        if tensor.allocated.at_ps < end_ps
        and (tensor.released_ps is None or tensor.released_ps > start_ps)
    ]
    everything = [tensor for tensor, _ in during]
    requested = [tensor.allocated.requested_bytes for tensor in everything]
    return Peaks(
        resident_bytes=sum(
            tensor.allocated.requested_bytes
            for tensor in everything
            if tensor.allocated.at_ps < start_ps
        ),
        tensor_peak_bytes=_peak(
            [tensor for tensor, room in during if not room],
            [tensor.allocated.requested_bytes for tensor, room in during if not room],
        ),
        requested_peak_bytes=_peak(everything, requested),
        rounded_peak_bytes=_peak(everything, map(_rounded, requested)),
        in_use_peak_bytes=_peak(everything, [each.allocated.chunk_bytes for each in everything]),
        footprint_bytes=_union(everything),
    )


def _peak(tensors: Iterable[Tensor], sizes: Iterable[int]) -> int:
    changes = []
    for tensor, size in zip(tensors, sizes, strict=True):
        changes.append((tensor.allocated.at_ps, size))
        if tensor.released_ps is not None:
            changes.append((tensor.released_ps, -size))
    held = highest = 0
    for _, change in sorted(changes):
        held += change
        highest = max(highest, held)
    return highest


def _union(tensors: Iterable[Tensor]) -> int:
    """Bytes of the addresses that any of them took."""
    ranges = sorted(
        (tensor.allocated.address, tensor.allocated.address + tensor.allocated.chunk_bytes)
        for tensor in tensors
    )
    total = end = 0
    for low, high in ranges:
        total += max(0, high - max(low, end))
        end = max(end, high)
    return total


def _rounded(size: int) -> int:
    return -(-size // ROUNDED_TO_BYTES) * ROUNDED_TO_BYTES
