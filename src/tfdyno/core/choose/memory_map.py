"""What a step holds over its course: the moments, the tensors of the worst one, the allocator."""

from __future__ import annotations

from dataclasses import dataclass

from tfdyno.core.choose.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTensor:
    """A tensor or buffer that the step holds at the moment of its peak."""

    name: str
    layer: str
    """The layer of the user's model; empty where it belongs to none."""
    part: str
    """weights, gradients, optimizer, activations, inputs, workspace."""
    dtype: str
    shape: tuple[int, ...]
    """The shape at the batch asked."""
    held_bytes: float
    first_share: float
    """When in the step, from 0 to 1, it is made; 0 for what is there from the start."""
    last_share: float
    """When it is read for the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerMemory:
    """What one layer holds at the peak."""

    layer: str
    """Empty: what belongs to no layer."""
    held_bytes: float
    tensor_count: int
    parts_bytes: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The worst moment of a stretch of the step."""

    share: float
    """Where in the step, from 0 to 1, the stretch begins."""
    live_bytes: float
    parts_bytes: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorNeed:
    """What TensorFlow's allocator (BFC) makes of one step that starts in an empty pool."""

    largest_request_bytes: float
    """The largest single piece that is asked for."""
    requested_peak_bytes: float
    in_use_peak_bytes: float
    """The peak in whole chunks: each is at least as large as what was asked for."""
    footprint_bytes: float
    """All memory that was ever in use: what lies between pieces in use counts."""
    pool_bytes: float
    """What the allocator has to give on the card."""
    free_bytes: float
    """What is free of the pool when most is in use, or where a request fails."""
    largest_free_bytes: float
    """The largest piece of it."""
    failed_bytes: float = 0.0
    """The request that finds no piece; 0: all find one."""

    @property
    def fragment_bytes(self) -> float:
        """What the step has to have beyond the chunks in use, because the free pieces lie apart."""
        return max(0.0, self.footprint_bytes - self.in_use_peak_bytes)

    @property
    def is_fragmented(self) -> bool:
        """Whether a request fails though enough is free in all."""
        return 0 < self.failed_bytes <= self.free_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMap:
    """The memory of one step at one batch, from the traced program."""

    batch_size: int
    execution: str
    moments: tuple[Moment, ...]
    """The moments in order, at most 200."""
    peak_share: float
    peak_bytes: float
    peak_layer: str
    """Whose operation runs at the peak; empty: none of a layer."""
    peak_phase: str
    """forward, backward, recompute, update."""
    parts_bytes: dict[str, float]
    """The parts of the peak."""
    tensors: tuple[HeldTensor, ...]
    """The largest at the peak, largest first."""
    layers: tuple[LayerMemory, ...]
    """Those that hold most at the peak, most first."""
    held_count: int
    """How many tensors there are at the peak."""
    allocator: AllocatorNeed | None = None
    """None where XLA plans the memory: it asks for its temporaries as one piece."""
    temporary_bytes: float = 0.0
    """That one piece, where XLA plans."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CardMemory:
    """The memory of a step on one card: what an estimate says, and what the traced step holds."""

    estimate: Estimate
    map: MemoryMap
