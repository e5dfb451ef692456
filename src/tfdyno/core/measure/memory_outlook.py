"""How memory moves with the steps of a training, and when there is none left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfdyno.core.base.interval import Interval

CountedBy = Literal["kernel", "allocator", "objects"]
"""Pages of the process; what the allocators have in use; objects that were seen to become more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOutlook:
    """One kind of memory; the steps of warm-up are left out."""

    where: str
    """``host``, or a device: ``GPU:0``."""
    grows: bool
    bytes_per_step: Interval
    """Where nothing grows: what it may be at most, and zero within."""
    counted_by: CountedBy
    """What the interval is of."""
    steps: int
    """That it is told from."""
    used_bytes: int = 0
    """What is in use at the end of the look; 0: not known."""
    free_bytes: int = 0
    """The same."""
    full_in_steps: Interval | None = None
    """Steps from the end of the look; None: it does not grow, or what is free is not known."""
    full_in_s: Interval | None = None
    until_end_bytes: float | None = None
    """Bytes by which it grows in a whole training; None: its length is not known, or nothing grows.
    """
    training_steps: int = 0
    """The steps of a whole training; 0: not known."""
    kind: str = ""
    """The kind of what grows, as ``GrowthFacts`` has it."""
    suspects: tuple[str, ...] = ()
