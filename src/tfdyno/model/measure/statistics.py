"""Medians, spreads and intervals of measured times, in plain Python."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

NORMAL_MAD = 1.4826
"""Standard deviation of normal noise over its median absolute deviation."""
RESAMPLES = 500
CONFIDENCE_RATIO = 0.99
"""Of the intervals of comparisons."""
_CUT_RATIO = 0.1
_TINY = 1e-300


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` (0–1) of the values lie, interpolated linearly.

    Raises:
        ValueError: There is no value, or the share is no share.
    """
    if not values or not 0.0 <= share <= 1.0:
        raise ValueError(f"need values and a share of 0–1, got {len(values)} and {share}")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def median(values: Sequence[float]) -> float:
    """Return the middle value; raises ``ValueError`` where there is none."""
    return quantile(values, 0.5)


def weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the value with half of the weight on either side; of two such values their mean.

    With equal weights it is ``median``. Raises ``ValueError`` where there is no value.
    """
    if not values:
        raise ValueError("need values")
    return _Sorted.of(values, weights).middle()


def trimmed_mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Average by weight, without the lowest and the highest tenth of the values (rounded down).

    Raises:
        ValueError: There is no value.
    """
    if not values:
        raise ValueError("need values")
    ordered = sorted(zip(values, weights or (1.0,) * len(values), strict=True))
    cut = int(len(ordered) * _CUT_RATIO)
    kept = ordered[cut : len(ordered) - cut]
    return sum(value * weight for value, weight in kept) / sum(weight for _, weight in kept)


def noise(values: Sequence[float]) -> float:
    """Return the standard deviation of the noise, from differences of neighbours.

    ``1.4826 * median |d - median d| / sqrt 2``: neither outliers nor changes of the level count,
    and a steady trend drops out. 0 for fewer than three values.
    """
    steps = [after - before for before, after in pairwise(values)]
    if len(steps) < 2:
        return 0.0
    middle = median(steps)
    return NORMAL_MAD * median([abs(step - middle) for step in steps]) / math.sqrt(2.0)


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; raises ``ValueError`` where there is no value."""
    if not values:
        raise ValueError("need values")
    return math.fsum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Return the variance of the population behind the values (n - 1); 0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)


@lru_cache(maxsize=64)
def student_t_quantile(share: float, degrees: float) -> float:
    """Return what Student's t with ``degrees`` of freedom stays below in ``share`` of cases.

    Found by bisection of the distribution function, which is ``1 - I(degrees / (degrees + t²);
    degrees / 2, 1 / 2) / 2`` with I the regularised incomplete beta function (Abramowitz and
    Stegun 26.7.1).

    Raises:
        ValueError: The share is not inside 0–1, or the degrees are not positive.
    """
    if not 0.0 < share < 1.0 or degrees <= 0.0:
        raise ValueError(f"need a share inside 0–1 and degrees > 0, got {share}, {degrees}")
    if share < 0.5:
        return -student_t_quantile(1.0 - share, degrees)
    tail = 2.0 * (1.0 - share)
    low, high = 0.0, 1.0
    while _beta_ratio(degrees / 2, 0.5, degrees / (degrees + high * high)) > tail:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2
        if _beta_ratio(degrees / 2, 0.5, degrees / (degrees + middle * middle)) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Mean difference of two sets of logarithms, with its standard error."""

    log_ratio: float
    standard_error: float
    degrees: float

    def half_width(self, confidence_ratio: float) -> float:
        """Return half of the interval's width, as a logarithm."""
        share = 0.5 + confidence_ratio / 2
        return student_t_quantile(share, self.degrees) * self.standard_error


def paired(a: Sequence[float], b: Sequence[float]) -> Contrast:
    """Compare B with A where the i-th values belong together: log of B over A.

    Raises:
        ValueError: Fewer than two pairs, or the lengths differ.
    """
    if len(a) < 2:
        raise ValueError(f"need two pairs, got {len(a)}")
    ratios = [math.log(y / x) for x, y in zip(a, b, strict=True)]
    return Contrast(
        log_ratio=mean(ratios),
        standard_error=math.sqrt(variance(ratios) / len(ratios)),
        degrees=len(ratios) - 1.0,
    )


def welch(a: Sequence[float], b: Sequence[float]) -> Contrast:
    """Compare B with A as independent sets whose spreads may differ: log of B over A.

    Degrees of freedom after Welch and Satterthwaite. Raises ``ValueError`` for a set of fewer
    than two.
    """
    if min(len(a), len(b)) < 2:
        raise ValueError(f"need two values on each side, got {len(a)} and {len(b)}")
    logs_a, logs_b = [math.log(x) for x in a], [math.log(x) for x in b]
    part_a, part_b = variance(logs_a) / len(a), variance(logs_b) / len(b)
    total = part_a + part_b
    below = part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1)
    return Contrast(
        log_ratio=mean(logs_b) - mean(logs_a),
        standard_error=math.sqrt(total),
        degrees=total**2 / below if below > _TINY else len(a) + len(b) - 2.0,
    )


def detrended(
    a: Sequence[float], b: Sequence[float], *, places: tuple[Sequence[float], Sequence[float]]
) -> Contrast:
    """Compare B with A where all values share one linear trend of their log over their places.

    Least squares of ``log = level + side * log_ratio + slope * place``.

    Args:
        a: Values of A.
        b: Values of B.
        places: Where each value of A, and each of B, stood in the common order.

    Raises:
        ValueError: There are fewer than four values, or the places tell the sides apart so well
            that no trend can be told from a difference.
    """
    logs = [math.log(value) for value in (*a, *b)]
    count = len(logs)
    sides = _centred([0.0] * len(a) + [1.0] * len(b))
    orders = _centred([*places[0], *places[1]])
    values = _centred(logs)
    side2, order2, both = _dot(sides, sides), _dot(orders, orders), _dot(sides, orders)
    free = side2 * order2 - both * both
    if count < 4 or free <= 1e-9 * side2 * order2:
        raise ValueError("need four values whose order does not follow the sides")
    with_side, with_order = _dot(sides, values), _dot(orders, values)
    ratio = (with_side * order2 - with_order * both) / free
    slope = (with_order * side2 - with_side * both) / free
    rest = [v - ratio * s - slope * o for v, s, o in zip(values, sides, orders, strict=True)]
    return Contrast(
        log_ratio=ratio,
        standard_error=math.sqrt(_dot(rest, rest) / (count - 3) * order2 / free),
        degrees=count - 3.0,
    )


def _centred(values: Sequence[float]) -> list[float]:
    middle = mean(values)
    return [value - middle for value in values]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(one, other, strict=True))


def bootstrap_median(
    runs: Sequence[Sequence[float]],
    weights: Sequence[Sequence[float]] | None = None,
    *,
    confidence_ratio: float = 0.95,
) -> tuple[float, float]:
    """Return the interval of the median over runs of the median in a run.

    Resampled on both levels: runs, then samples in the runs. The median of ``n`` samples drawn
    with replacement is the quantile of the samples at the middle order statistic of ``n`` uniform
    numbers, which is a beta variate: no sample needs to be drawn. With few runs (5) such an
    interval is somewhat too narrow.

    Args:
        runs: Samples of every run, none of them empty.
        weights: Of the samples, in proportion to which they are drawn; None: equal.
        confidence_ratio: Share of resamples inside.

    Raises:
        ValueError: There is no run, or one without samples.
    """
    if not runs or not all(runs):
        raise ValueError("need runs, each with samples")
    known = weights or [(1.0,) * len(run) for run in runs]
    ordered = [_Sorted.of(*pair) for pair in zip(runs, known, strict=True)]
    draw = random.Random(0)
    middles = [
        median([one.resampled_median(draw) for one in draw.choices(ordered, k=len(ordered))])
        for _ in range(RESAMPLES)
    ]
    rest = (1.0 - confidence_ratio) / 2
    return quantile(middles, rest), quantile(middles, 1.0 - rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sorted:
    """Values in order, with the weight up to and including each."""

    values: tuple[float, ...]
    upto: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float], weights: Sequence[float]) -> _Sorted:
        ordered = sorted(zip(values, weights, strict=True))
        return cls(
            values=tuple(value for value, _ in ordered),
            upto=tuple(accumulate(weight for _, weight in ordered)),
        )

    def at(self, share: float) -> float:
        """Return the first value with more than ``share`` of the weight up to it."""
        found = bisect_right(self.upto, share * self.upto[-1])
        return self.values[min(found, len(self.values) - 1)]

    def middle(self) -> float:
        half = self.upto[-1] / 2
        at = bisect_right(self.upto, half)
        if at and math.isclose(self.upto[at - 1], half):
            return (self.values[at - 1] + self.values[at]) / 2
        return self.values[at]

    def resampled_median(self, draw: random.Random) -> float:
        count = len(self.values)
        if count % 2:
            return self.at(draw.betavariate((count + 1) / 2, (count + 1) / 2))
        low = draw.betavariate(count / 2, count / 2 + 1)
        # The next of the count/2 uniform numbers above ``low``: the least of them.
        above = 1.0 - draw.random() ** (2 / count)
        return (self.at(low) + self.at(low + (1.0 - low) * above)) / 2


def _beta_ratio(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Sum the continued fraction of I_x by Lentz (Abramowitz and Stegun 26.5.8)."""
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away(1.0 + term * d)
            c = _away(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return value


def _away(value: float) -> float:
    """Return the value, kept away from 0, which it is divided by."""
    return value if abs(value) > _TINY else _TINY
