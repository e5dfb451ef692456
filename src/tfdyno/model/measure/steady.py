"""Where warm-up ends: the steady state of a run, found by changepoints of its step times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from tfdyno.model.measure.statistics import mean, median, noise

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_SAMPLES = 10
"""A shorter stretch is no steady state."""
LEVEL_RATIO = 0.02
"""Segments agree whose levels are no further apart than this, or than half a standard deviation
of the noise where that is more."""
ODD_SHARE = 0.2
"""At most so much of the steady state may lie in segments that do not agree: a neighbour on the
machine must not start it afresh each time."""
_LEAST_SEGMENT = 4
_BLOCKS = 100
"""The exact search is quadratic in the number of blocks: 500 or 2,000 samples cost the same."""
_PENALTY = 4.0
"""The price of one more segment, in units of the noise's variance times the log of the number of
blocks. 2 is the Bayesian information criterion (a level and a place); more, as noise is not normal.
"""
_OUTLIER = 3.0
"""Standard deviations from the median of its neighbours at which a sample is no evidence of a new
level."""
_NEIGHBOURS = 3
_LEAST_NOISE = 1e-3
_LONG = 8


def steady_from(samples_s: Sequence[float]) -> int:
    """Index of the first sample of the steady state; the number of samples where there is none.

    1. Work on log times: only ratios count. The noise is that of neighbours' differences.
    2. Replace outliers (over three standard deviations from the median of three neighbours on
       each side) by that median, so that a spike is no changepoint.
    3. Cut into segments of constant level by exact optimal partitioning: least squares plus a
       penalty per segment; over medians of blocks where there are over 100 samples, then each cut
       is moved to its best place among the samples.
    4. From the end, join segments whose levels agree within 2 %. Segments that do not agree may
       take up to a fifth of the stretch if agreeing ones lie before them.
    5. Samples that stand out at the very start of it (the compile) are left out.

    Args:
        samples_s: Seconds per step, in order; all above 0.

    Raises:
        ValueError: A sample is not a positive number.
    """
    if any(not (math.isfinite(sample) and sample > 0) for sample in samples_s):
        raise ValueError("need step times above 0 s")
    count = len(samples_s)
    if count < LEAST_SAMPLES:
        return count
    logs = [math.log(sample) for sample in samples_s]
    spread = max(noise(logs), _LEAST_NOISE)
    kept = _without_outliers(logs, spread)
    wander = max(spread, _long_noise(kept))
    start, level = _stretch(_segments(kept, wander), max(LEVEL_RATIO, wander / 2))
    limit = max(LEVEL_RATIO, _OUTLIER * spread)
    while start < count and abs(logs[start] - level) > limit:
        start += 1
    return start if count - start >= LEAST_SAMPLES else count


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    start: int
    length: int
    level: float


def _without_outliers(logs: Sequence[float], spread: float) -> list[float]:
    """Return the samples, outliers among their neighbours replaced by the neighbours' median."""
    kept = []
    for place, value in enumerate(logs):
        middle = median(logs[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS + 1])
        kept.append(middle if abs(value - middle) > _OUTLIER * spread else value)
    return kept


def _long_noise(values: Sequence[float]) -> float:
    """Return noise of one sample as means over several show it.

    More than that of neighbours where neighbours are alike (a machine that is busy for a while),
    equal where they are independent.
    """
    length = min(_LONG, len(values) // _LONG)
    if length < 2:
        return 0.0
    starts = range(0, len(values) - length + 1, length)
    means = [mean(values[at : at + length]) for at in starts]
    return math.sqrt(length) * noise(means)


def _segments(values: Sequence[float], wander: float) -> list[_Segment]:
    """Return stretches of constant level, in order."""
    count = len(values)
    size = math.ceil(count / _BLOCKS)
    # The rest that fills no block goes to the last one: no block is short and noisy.
    edges = [*range(0, count - size + 1, size), count]
    blocks = [median(values[a:b]) for a, b in pairwise(edges)]
    spread = max(noise(blocks), wander / math.sqrt(size))
    cuts = _partition(blocks, spread, math.ceil(_LEAST_SEGMENT / size))
    bounds = [0, *(edges[cut] for cut in cuts), count]
    if size > 1:
        bounds = _moved(values, bounds, size)
    return [
        _Segment(start=a, length=b - a, level=median(values[a:b]))
        for a, b in pairwise(bounds)
        if b > a
    ]


def _partition(values: Sequence[float], spread: float, least: int) -> list[int]:
    """Cut where squares about the levels, plus a penalty per segment, are least."""
    count = len(values)
    penalty = _PENALTY * spread**2 * math.log(max(count, 2))
    sums = [0.0, *accumulate(values)]
    best = [-penalty] + [math.inf] * count
    last = [0] * (count + 1)
    for end in range(least, count + 1):
        total = sums[end]
        # Squares of the values add the same to every choice, so only -(sum²)/length is compared.
        best[end], last[end] = min(
            (best[cut] + penalty - (total - sums[cut]) ** 2 / (end - cut), cut)
            for cut in range(end - least + 1)
        )
    cuts = []
    at = last[count]
    while at > 0:
        cuts.append(at)
        at = last[at]
    return cuts[::-1]


def _moved(values: Sequence[float], bounds: list[int], size: int) -> list[int]:
    """Return each inner bound at the place, a block around it, that splits its neighbours best."""
    found = list(bounds)
    for index in range(1, len(bounds) - 1):
        low, high = found[index - 1], bounds[index + 1]
        before, after = median(values[low : bounds[index]]), median(values[bounds[index] : high])
        first = max(low + 1, bounds[index] - size)
        gains = accumulate(
            abs(value - after) - abs(value - before)
            for value in values[first : min(high - 1, bounds[index] + size)]
        )
        best, place = max((0.0, 0), *((gain, at) for at, gain in enumerate(gains, start=1)))
        found[index] = first + place if best > 0 else first
    return found


def _stretch(segments: Sequence[_Segment], tolerance: float) -> tuple[int, float]:
    """Start and level of the last stretch of segments that agree; its end where there is none."""
    anchor = next(
        (place for place in reversed(range(len(segments)))
         if segments[place].length >= LEAST_SAMPLES), len(segments) - 1,
    )  # fmt: skip
    level = segments[anchor].level
    start = segments[-1].start + segments[-1].length
    odd = sum(segment.length for segment in segments[anchor + 1 :])
    total = odd
    for segment in reversed(segments[: anchor + 1]):
        total += segment.length
        if abs(segment.level - level) > tolerance:
            odd += segment.length
        elif odd <= ODD_SHARE * total:
            start = segment.start
    return start, level
