"""TensorFlow's best-fit allocator with coalescing, replayed on a list of requests.

The rules are those of ``tsl/framework/bfc_allocator.cc``: requests are rounded up to 256 bytes;
free chunks lie in bins by the power of two of their size; the smallest chunk that is large enough
is taken and divided when it is twice as large or 128 MiB larger; a released chunk joins its free
neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ALIGNMENT_BYTES = 256
"""``kMinAllocationSize``."""
LARGEST_WASTE_BYTES = 128 << 20
"""A chunk that is larger than the request by this much is divided in any case."""
BINS = 21
FIRST_REGION_BYTES = 2 << 20
"""The bytes that the allocator first asks for with growth; then for twice as much each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``bytes`` for a buffer, or its release (``bytes`` is None)."""

    buffer: int
    bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a list of requests made of the allocator; each peak is the highest of its own kind."""

    requested_peak_bytes: int
    in_use_peak_bytes: int
    """The peak in whole chunks: what TensorFlow reports as its peak."""
    footprint_bytes: int
    """All memory that was ever part of a chunk in use: with fragmentation."""
    failed_bytes: int = 0
    """What the request asked for that found no chunk; 0: all were served."""
    free_bytes: int = 0
    """What is free under a limit, at the failure or else when most was in use."""
    largest_free_bytes: int = 0
    """The largest piece of that, which is the most that one more request could have had."""


@dataclass(slots=True)
class _Chunk:
    address: int
    size: int
    requested: int = 0
    """0: free."""
    before: _Chunk | None = None
    after: _Chunk | None = None


@dataclass(slots=True)
class _Allocator:
    limit_bytes: int | None
    growth: bool
    bins: list[list[tuple[int, int]]] = field(default_factory=lambda: [[] for _ in range(BINS)])
    """Free chunks of each bin as (size, address), smallest first."""
    chunks: dict[int, _Chunk] = field(default_factory=dict)
    """The chunks by address."""
    reserved: int = 0
    next_region: int = FIRST_REGION_BYTES

    def free(self) -> tuple[int, int]:
        """Return all that is free under the limit, and the largest piece of it."""
        if self.limit_bytes is None:
            return 0, 0
        unasked = self.limit_bytes - self.reserved
        pieces = [size for chunks in self.bins for size, _ in chunks]
        return unasked + sum(pieces), max([unasked, *pieces])

    def take(self, requested: int) -> _Chunk | None:
        rounded = -(-requested // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        chunk = self._find(rounded)
        while chunk is None:
            if not self._extend(rounded):
                return None
            chunk = self._find(rounded)
        if chunk.size >= 2 * rounded or chunk.size - rounded >= LARGEST_WASTE_BYTES:
            self._divide(chunk, rounded)
        chunk.requested = requested
        return chunk

    def give(self, chunk: _Chunk) -> None:
        chunk.requested = 0
        for first, second in ((chunk, chunk.after), (chunk.before, chunk)):
            if first is None or second is None or first.requested or second.requested:
                continue
            for each in (first, second):
                if each is not chunk:
                    self._forget(each)
            chunk = self._join(first, second)
        self._remember(chunk)

    def _find(self, rounded: int) -> _Chunk | None:
        for chunks in self.bins[_bin(rounded) :]:
            at = bisect_left(chunks, (rounded, -1))
            if at < len(chunks):
                return self.chunks[chunks.pop(at)[1]]
        return None

    def _extend(self, rounded: int) -> bool:
        """Add a region that is free; false if the limit leaves no room."""
        left = None if self.limit_bytes is None else self.limit_bytes - self.reserved
        if left is not None:
            left -= left % ALIGNMENT_BYTES
            if rounded > left:
                return False
        size = self._region(rounded, left)
        chunk = _Chunk(self.reserved, size)
        self.chunks[chunk.address] = chunk
        self.reserved += size
        self._remember(chunk)
        return True

    def _region(self, rounded: int, left: int | None) -> int:
        if not self.growth:
            return left if left is not None else 1 << 62
        doubled = False
        while rounded > self.next_region:
            self.next_region, doubled = 2 * self.next_region, True
        size = self.next_region if left is None else min(self.next_region, left)
        if not doubled:
            self.next_region *= 2
        return size

    def _divide(self, chunk: _Chunk, size: int) -> None:
        rest = _Chunk(chunk.address + size, chunk.size - size, 0, chunk, chunk.after)
        if chunk.after is not None:
            chunk.after.before = rest
        chunk.after, chunk.size = rest, size
        self.chunks[rest.address] = rest
        self._remember(rest)

    def _join(self, first: _Chunk, second: _Chunk) -> _Chunk:
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        del self.chunks[second.address]
        return first

    def _remember(self, chunk: _Chunk) -> None:
        insort(self.bins[_bin(chunk.size)], (chunk.size, chunk.address))

    def _forget(self, chunk: _Chunk) -> None:
        chunks = self.bins[_bin(chunk.size)]
        chunks.pop(bisect_left(chunks, (chunk.size, chunk.address)))


def replay(
    requests: Iterable[Request], *, limit_bytes: int | None = None, growth: bool = False
) -> Replay:
    """Serve requests in order.

    Without ``growth`` the allocator owns all memory up to the limit as one region from the start,
    as on a GPU; with it regions come as they are needed, as on a CPU. A request for no bytes takes
    nothing, as in TensorFlow.

    Raises:
        ValueError: A buffer is taken twice or released without having been taken.
    """
    allocator = _Allocator(limit_bytes, growth)
    held: dict[int, _Chunk | None] = {}
    used: list[tuple[int, int]] = []
    requested = in_use = requested_peak = in_use_peak = failed_bytes = 0
    free = allocator.free()
    for number, request in enumerate(requests):
        if (request.bytes is None) != (request.buffer in held):
            raise ValueError(f"request {number} takes or releases buffer {request.buffer} twice")
        if request.bytes is None:
            chunk = held.pop(request.buffer)
            if chunk is not None:
                requested -= chunk.requested
                in_use -= chunk.size
                allocator.give(chunk)
            continue
        chunk = allocator.take(request.bytes) if request.bytes else None
        if chunk is None and request.bytes:
            failed_bytes, free = request.bytes, allocator.free()
            break
        held[request.buffer] = chunk
        if chunk is not None:
            requested += chunk.requested
            in_use += chunk.size
            used.append((chunk.address, chunk.address + chunk.size))
        if in_use > in_use_peak:
            free = allocator.free()
        requested_peak, in_use_peak = max(requested_peak, requested), max(in_use_peak, in_use)
    return Replay(
        requested_peak_bytes=requested_peak,
        in_use_peak_bytes=in_use_peak,
        footprint_bytes=_union(used),
        failed_bytes=failed_bytes,
        free_bytes=free[0],
        largest_free_bytes=free[1],
    )


def _bin(size: int) -> int:
    return min(BINS - 1, (size // ALIGNMENT_BYTES).bit_length() - 1)


def _union(ranges: list[tuple[int, int]]) -> int:
    total = end = 0
    for low, high in sorted(ranges):
        total += max(0, high - max(low, end))
        end = max(end, high)
    return total
