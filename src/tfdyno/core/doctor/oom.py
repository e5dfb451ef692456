"""What a report of exhausted memory says: who asked for how much, and what held the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MemoryKind = Literal["", "gpu", "host"]
FAR_BELOW_RATIO = 0.6
"""TensorFlow takes 90 % of what is free, and more; a limit below this share of a card's memory was
not its choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSize:
    """Chunks of one size that were in use."""

    size_bytes: int
    count: int

    @property
    def total_bytes(self) -> int:
        """Bytes of all of them."""
        return self.size_bytes * self.count


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LiveBuffer:
    """A tensor or buffer that was alive, where the report names it; larger ones compare greater."""

    size_bytes: int
    name: str = ""
    """Operation or layer; empty: not told."""
    shape: str = ""
    """The shape as XLA prints it, ``f32[250880,4096]``; empty: not told."""
    step: int = 0
    """Step of training in which it was made; 0: not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OomReport:
    """One exhausted allocator; zero and empty mean that the log does not say."""

    kind: MemoryKind = ""
    allocator: str = ""
    """``GPU_0_bfc``, ``cuda_host_bfc``, ``cpu``."""
    operation: str = ""
    """Operation that asked."""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    requested_bytes: int = 0
    limit_bytes: int = 0
    in_use_bytes: int = 0
    peak_bytes: int = 0
    """Largest use since the allocator was made."""
    pool_bytes: int = 0
    """Taken from the device so far: the regions of the allocator."""
    free_bytes: int = 0
    """The sum of the pool's free pieces."""
    largest_free_bytes: int = 0
    allocation_count: int = 0
    largest_allocation_bytes: int = 0
    """Largest one that ever succeeded."""
    chunks: tuple[ChunkSize, ...] = ()
    """The chunks in use, those with the most bytes first."""
    buffers: tuple[LiveBuffer, ...] = ()
    """Named ones, the largest first."""
    parameter_bytes: int = 0
    """Inputs and weights of an XLA program."""
    output_bytes: int = 0
    temporary_bytes: int = 0
    program_bytes: int = 0
    """All that an XLA program needs at once."""
    approximate: frozenset[str] = frozenset()
    """Names of the fields above that were read from a rounded print such as ``2.17GiB``."""
    count: int = 1
    """How many times memory ran out in this log."""

    @property
    def is_fragmented(self) -> bool:
        """Whether what the allocator already had would have sufficed, but in no one piece."""
        return 0 < self.requested_bytes <= self.room_bytes and self.in_use_bytes > 0

    @property
    def room_bytes(self) -> int:
        """What the allocator has and nobody uses, in however many pieces."""
        return (self.pool_bytes or self.limit_bytes) - self.in_use_bytes

    @property
    def is_refused_by_device(self) -> bool:
        """Whether the limit allowed more and the device had no more: someone else holds it."""
        allowed_bytes = self.limit_bytes - self.pool_bytes
        return self.pool_bytes > 0 and 0 < self.requested_bytes <= allowed_bytes
