"""What more GPUs bring: step, throughput and money over the number of replicas."""

from __future__ import annotations

from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """What an hour of one GPU costs, and where that was read."""

    usd_per_h: float
    offer: str
    """Slug of the offer, the cheapest that stays."""
    gpu_count: int
    """That the offer has; its price is shared among them."""
    priced_on: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRow:
    """So many GPUs beside one."""

    estimate: Estimate
    gain_ratio: Interval
    """Samples a second over those of one GPU."""
    efficiency_ratio: Interval
    """The gain over the number of GPUs."""
    added_ratio: float
    """What each GPU more than in the row before brings, in GPUs alone; 1 in the first row.

    Where the program changes, the row before is one GPU that runs the new one.
    """
    million_samples_usd: Interval | None
    """None where no price is known, as the next."""
    usd_per_epoch: Interval | None
    capped: bool = False
    """Whether the gain was above the number of GPUs, which another program alone brings about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOut:
    """One kind of GPU over the number of replicas."""

    gpu: str
    holds: Literal["batch per replica", "global batch"]
    """Weak scaling, or strong."""
    rows: tuple[ScaleRow, ...]
    """The rows by number of replicas; one GPU first."""
    pays_until: int
    """Most replicas up to which each added GPU brings ``PAYS_RATIO`` or more of what one does
    alone in the same program; 1 where that many are no faster than one."""
    price: GpuPrice | None
    switched_to: str = ""
    """Execution of several GPUs where one runs another; empty: all run the same."""
    switch_ratio: float | None = None
    """Time of a step in that program over one GPU's own, the exchange apart; None: the same
    program, or another batch."""

    through_host: bool = False
    """Whether the cards have no way to each other but the host's memory, which they share."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Replicas of every row."""
        return tuple(row.estimate.replicas for row in self.rows)
