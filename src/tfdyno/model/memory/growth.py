"""Whether a series grows for good, and by how much per step: a slope with an interval.

Memory moves in jumps and plateaus: an allocator keeps what it once took. So a trend is believed
only where it goes on through nearly all of the series, not where one jump carries it.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.model.measure.statistics import median

if TYPE_CHECKING:
    from collections.abc import Sequence

STEADY_RATIO = 0.5
"""The first half is left out: caches, thread arenas and first traces grow in it."""
FEWEST_POINTS = 14
"""The fewest points of the steady half: two for each of the fewest blocks that can give 95 %."""
_FEWEST_BLOCKS, _MOST_BLOCKS = 7, 16
WARM_FITS = 2


def slope(
    steps: Sequence[float], values: Sequence[float], *, confidence_ratio: float = 0.95
) -> Interval | None:
    """Return how fast a series grows in its steady half, with bounds at ``confidence_ratio``.

    The half is cut into 7-16 blocks, each of which stands for its least value: what is held for a
    moment drops out. Where memory grows in jumps, as by an iterator at every 16th step, blocks are
    long enough to hold two of them. ``best`` is the median of the slopes of all pairs of blocks.
    The interval is that of the median of the slopes from each block to the next, by their order
    (sign test): no shape of noise is assumed, and a single jump between two plateaus gives
    ``low = 0``. ``high`` is at least the slope from the first block to the last, for a few jumps
    may well be a growth.

    Args:
        steps: Rising numbers.
        values: One for each.
        confidence_ratio: Of the interval, at least; the fewest blocks give no more than 96.9 %.

    Returns:
        None where the steady half has fewer than 14 points.

    Raises:
        ValueError: The lengths differ.

    Source:
        Theil 1950 and Sen 1968 for the slope; Conover, Practical Nonparametric Statistics,
        section 3.2, for the interval of a median.
    """
    pairs = list(zip(steps, values, strict=True))
    steady = pairs[int(len(pairs) * STEADY_RATIO) :]
    if len(steady) < FEWEST_POINTS:
        return None
    most = min(_MOST_BLOCKS, len(steady) // 4, rises([value for _, value in steady]) // 2)
    return _slope_of(steady, max(_FEWEST_BLOCKS, most), confidence_ratio)


def slope_of_fits(values: Sequence[float]) -> Interval | None:
    """Do the same from one fit to the next: few, each exact to what an allocator tells.

    The first two are left out: in them TensorFlow makes what all later ones share. Seven blocks
    then need no more than a value each.

    Args:
        values: In use at the begin of each fit, one after the other.

    Returns:
        None where there are fewer than nine.
    """
    steady = list(enumerate(map(float, values)))[WARM_FITS:]
    return _slope_of(steady, _FEWEST_BLOCKS, 0.95) if len(steady) >= _FEWEST_BLOCKS else None


def _slope_of(
    steady: Sequence[tuple[float, float]], count: int, confidence_ratio: float
) -> Interval:
    edges = [round(number * len(steady) / count) for number in range(count + 1)]
    blocks = [min(steady[begin:end], key=lambda one: one[1]) for begin, end in pairwise(edges)]
    nexts = sorted(_rise(one, two) for one, two in pairwise(blocks))
    rank = _rank(len(nexts), confidence_ratio)
    best = median([_rise(one, two) for one, two in combinations(blocks, 2)])
    high = max(nexts[-1 - rank], best, _rise(blocks[0], blocks[-1]))
    return Interval(low=min(nexts[rank], best), best=best, high=high)


def rises(values: Sequence[float]) -> int:
    """Return how often a series rises for good: to a level that it does not fall below again."""
    count, level = 0, float("inf")
    for value in reversed(values):
        count += value < level < float("inf")
        level = min(level, value)
    return count


def steps_until(free_bytes: float, bytes_per_step: float) -> float:
    """Return steps until so much memory is used up; infinite where nothing grows.

    Raises:
        ValueError: ``free_bytes`` is negative.
    """
    if free_bytes < 0:
        raise ValueError(f"need free_bytes >= 0, got {free_bytes}")
    return free_bytes / bytes_per_step if bytes_per_step > 0 else math.inf


def _rise(one: tuple[float, float], two: tuple[float, float]) -> float:
    return (two[1] - one[1]) / (two[0] - one[0])


def _rank(count: int, confidence_ratio: float) -> int:
    """Return how many of the sorted values may be left out at each end."""
    rest, rank, below = (1.0 - confidence_ratio) / 2, 0, 0.5**count
    while rank + 1 < count / 2:
        below += math.comb(count, rank + 1) * 0.5**count
        if below > rest:
            break
        rank += 1
    return rank
