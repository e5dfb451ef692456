"""The bus bandwidth of measured all-reduces, and what a ring over given links should reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.model.measure.statistics import quantile
from tfdyno.model.time.scaling import ring_all_reduce_s

if TYPE_CHECKING:
    from collections.abc import Sequence

MIDDLE = 0.90
"""Share of repeats between the bounds that are told."""


def bus_bytes_per_s(size_bytes: float, replicas: int, time_s: float) -> float:
    """Return ``2 (n - 1) / n * size / time``: what each link of a ring carries, whatever n is.

    Args:
        size_bytes: Of the buffer of one replica.
        replicas: At least 2: one has nothing to exchange.
        time_s: Of the whole all-reduce, above 0.

    Raises:
        ValueError: There is nothing to exchange, or no time was taken.

    Source:
        NVIDIA/nccl-tests, doc/PERFORMANCE.md: "busbw".
    """
    if replicas < 2 or time_s <= 0:
        raise ValueError(f"need two replicas and a time, got {replicas} and {time_s}")
    return 2.0 * (replicas - 1) / replicas * size_bytes / time_s


def spread_bytes_per_s(
    size_bytes: float, replicas: int, times_s: Sequence[float]
) -> tuple[float, float, float]:
    """Return low, median and high bus bandwidth of repeats, 90 % of them between low and high."""
    half = MIDDLE / 2.0
    slow, middle, quick = (quantile(times_s, share) for share in (0.5 + half, 0.5, 0.5 - half))
    low, best, high = (bus_bytes_per_s(size_bytes, replicas, t) for t in (slow, middle, quick))
    return low, best, high


def expected_bytes_per_s(
    size_bytes: float, replicas: int, link_bytes_per_s: float, latency_s: float
) -> float:
    """Return a ring's bus bandwidth at this size, in which the hops' latency is time as well."""
    time_s = ring_all_reduce_s(
        size_bytes, replicas, bus_bytes_per_s=link_bytes_per_s, latency_s=latency_s
    )
    return bus_bytes_per_s(size_bytes, replicas, time_s)
