"""What is typical of measured times, and how well it is known, without any distribution."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.rules.bottleneck.tables import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEW = 6
"""The fewest values: with fewer the whole range is the interval of their median."""
_NORMAL_95 = 0.98
"""Half of 1.96: ranks of the median's 95 % interval are ``n / 2 +- 0.98 sqrt n``."""
_BLOCK = 4


def typical(values: Sequence[float]) -> float:
    """Return the median of positive times; where they come in bursts, of means of four neighbours.

    A pipeline that hands over several batches at once makes steps of 0, 0, 0, 40 ms: their median
    is 0, yet a step takes 10 ms. Of too few for that it is the mean.

    Raises:
        UsageError: No value is finite and positive or 0.
    """
    usable = _usable(values)
    if not usable:
        raise UsageError("no steady step was seen", remedy="let the script run more steps")
    return statistics.median(_smoothed(usable)) or statistics.fmean(usable)


def half_width(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of what ``typical`` gives, by order statistics.

    The interval between the values of ranks ``n / 2 +- 0.98 sqrt n`` holds the median of any
    distribution in 95 % of all samples. Of less than 6 values it is the range of all. 0 for one.

    Source:
        Conover, Practical Nonparametric Statistics, section 3.2 (quantiles).
    """
    ordered = sorted(_smoothed(_usable(values)))
    if len(ordered) < 2:
        return 0.0
    if len(ordered) < _FEW:
        return (ordered[-1] - ordered[0]) / 2.0
    rank = max(0, math.floor(len(ordered) / 2.0 - _NORMAL_95 * math.sqrt(len(ordered))))
    return (ordered[-1 - rank] - ordered[rank]) / 2.0


def in_bursts(values: Sequence[float]) -> bool:
    """Return whether neighbours differ so much that the median alone is not what a step takes."""
    usable = _usable(values)
    return len(_smoothed(usable)) != len(usable)


def _usable(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value) and value >= 0.0]


def _smoothed(values: list[float]) -> list[float]:
    if len(values) < _FEW * _BLOCK:
        return values
    starts = range(0, len(values) - _BLOCK + 1, _BLOCK)
    blocks = [statistics.fmean(values[start : start + _BLOCK]) for start in starts]
    middle, of_blocks = statistics.median(values), statistics.median(blocks)
    return blocks if abs(of_blocks - middle) > limits()["bursts_ratio"] * of_blocks else values
