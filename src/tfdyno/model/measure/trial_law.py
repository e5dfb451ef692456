"""Which trials of a tuning need no run: laws with a stated probability, from what is known.

Three things are sure at ``PROBABILITY``, each by itself: that a trial is slower than the best (from
its runs so far), that it would be (from an estimate, or from a line through other trials), and that
it would not fit. All errors are taken as normal on a scale of ratios.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.model.measure.statistics import mean, student_t_quantile, variance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROBABILITY = 0.99
"""The probability of each judgement; one-sided."""
LEAST_DEGREES = 3
"""Degrees of freedom from which a spread is believed."""
LEAST_SPREAD_RATIO = 0.01
"""Runs that agree better than this did so by chance."""
LEAST_MARGIN_RATIO = 0.02
"""What is less than this behind the best goes on: a machine changes between two trials."""
UNTIMED_MARGIN_RATIO = 0.15
"""The same where nothing is timed beside the steps, so that a change of the machine's own speed is
not seen. By simulation (``test_trial_law``): of 40 trials whose runs spread by 1 %, on a machine
that drifts by 5 % from trial to trial, the best, 5 % faster than all others, is ended in 2 of 100
studies at most."""
REACH = 2.0
"""How far beyond the batches that were measured a line is believed, as a factor."""
_NORMAL_95, _NORMAL_99 = 1.6449, 2.3263
"""Quantiles of the normal distribution at 95 % and 99 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Standard deviation from run to run, on logarithms, with the degrees it rests on."""

    log_ratio: float
    degrees: int

    @property
    def is_known(self) -> bool:
        """Whether it rests on enough runs."""
        return self.degrees >= LEAST_DEGREES

    def half_width(self, runs: int) -> float:
        """Return half of the two-sided interval of the mean of so many runs, as a logarithm."""
        quantile = student_t_quantile(0.5 + PROBABILITY / 2, self.degrees)
        return quantile * self.log_ratio / math.sqrt(runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A quantity that was measured at a batch; all with one ``arm`` lie on one line."""

    arm: str
    """All settings but the batch."""
    batch_size: int
    value: float
    """The value, above 0: seconds of a step, or bytes."""


def spread(groups: Sequence[Sequence[float]]) -> Spread:
    """Pool the spread of runs of the same trial over all trials.

        variance = sum of squares of log rates about their trial's mean / (runs - trials)

    It is at least ``LEAST_SPREAD_RATIO``. Groups of fewer than two runs tell nothing.

    Args:
        groups: Rates of the runs of each trial, all above 0.
    """
    several = [[math.log(value) for value in group] for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in several)
    squares = math.fsum(variance(group) * (len(group) - 1) for group in several)
    deviation = math.sqrt(squares / degrees) if degrees else 0.0
    return Spread(log_ratio=max(deviation, LEAST_SPREAD_RATIO), degrees=degrees)


def middle(rates: Sequence[float]) -> float:
    """Return the geometric mean; raises ``ValueError`` where there is none."""
    return math.exp(mean([math.log(rate) for rate in rates]))


def interval(rates: Sequence[float], found: Spread) -> tuple[float, float]:
    """Return the geometric mean's, two-sided at ``PROBABILITY``; both 0: spread not known."""
    if not rates or not found.is_known:
        return 0.0, 0.0
    half = found.half_width(len(rates))
    return middle(rates) * math.exp(-half), middle(rates) * math.exp(half)


def noise(runs: int, others: int, found: Spread) -> float:
    """Return how far, as a logarithm, two trials' middles differ by chance; 0: not known.

    Args:
        runs: Of the one trial.
        others: Of the other one.
        found: Pooled over all trials.
    """
    if not found.is_known:
        return 0.0
    error = found.log_ratio * math.sqrt(1 / runs + 1 / others)
    return student_t_quantile(PROBABILITY, found.degrees) * error


def moved_ratio(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Log of how much slower the machine itself was beside one trial than beside the other.

    Args:
        one: Seconds of the small computation beside the steps, by run.
        other: Those of the other trial.

    Returns:
        None: nothing tells, since one of them has none.
    """
    if not one or not other or min(*one, *other) <= 0:
        return None
    return math.log(middle(one) / middle(other))


def allowance(moved: float | None) -> float:
    """Return how far, as a logarithm, two trials may be apart for the machine's own reasons.

    Args:
        moved: What ``moved_ratio`` says of them.
    """
    if moved is None:
        return math.log1p(UNTIMED_MARGIN_RATIO)
    return abs(moved) + math.log1p(LEAST_MARGIN_RATIO)


def is_behind(
    rates: Sequence[float], best: Sequence[float], found: Spread, *, moved: float | None
) -> bool:
    """Return whether the trial is surely slower than the best, by its runs so far.

        log(best / trial) > t * spread * sqrt(1 / runs + 1 / runs of the best) + allowance

    Args:
        rates: Samples per second of its runs.
        best: Those of the best trial.
        found: Pooled over all trials; an unknown one proves nothing. A trial whose own runs spread
            more is judged by its own.
        moved: By how much the machine's own speed differed between the two; None: nothing tells.
    """
    if not found.is_known or not rates or not best:
        return False
    own = spread([rates]).log_ratio
    widest = replace(found, log_ratio=max(found.log_ratio, own))
    by_chance = noise(len(rates), len(best), widest)
    return math.log(middle(best) / middle(rates)) > by_chance + allowance(moved)


def surest(rate_per_s: Interval) -> tuple[float, float]:
    """Return low and high end at ``PROBABILITY`` each of a rate that was estimated.

    An estimate's interval leaves 1 of 20 out on either side, so its width in the logarithm grows by
    2.326 / 1.645, the ratio of the normal quantiles.

    Args:
        rate_per_s: As estimated.
    """
    best, wider = rate_per_s.best, _NORMAL_99 / _NORMAL_95
    return best * (rate_per_s.low / best) ** wider, best * (rate_per_s.high / best) ** wider


def learned(best: float, known: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Move the same ends by how far estimates were off in trials of this study.

    Their errors have a mean (the same card and model) and a spread; the next one lies within

        mean +- t * spread * sqrt(1 + 1 / trials)

    Args:
        best: As estimated.
        known: Pairs of a rate that was measured, and what had been estimated of it.

    Returns:
        None: there are not more than ``LEAST_DEGREES`` of them.
    """
    if len(known) <= LEAST_DEGREES:
        return None
    errors = [math.log(measured / estimated) for measured, estimated in known]
    deviation = max(math.sqrt(variance(errors)), LEAST_SPREAD_RATIO)
    quantile = student_t_quantile(PROBABILITY, len(errors) - 1)
    half = quantile * deviation * math.sqrt(1 + 1 / len(errors))
    return best * math.exp(mean(errors) - half), best * math.exp(mean(errors) + half)


def line(
    points: Sequence[Point], arm: str, batch_size: int, *, least_ratio: float = LEAST_SPREAD_RATIO
) -> Interval | None:
    """Return what a line through the arm's points says at a batch, each end at ``PROBABILITY``.

        value = fixed + per_sample * batch

    Every arm has a line of its own, by least squares of relative errors. Their spread is pooled
    over the arms, so that it holds how badly a line describes any of them; the interval is that of
    a new measurement (Student's t).

    Args:
        points: Of all arms.
        arm: Whose line.
        batch_size: Where.
        least_ratio: The spread is at least so much: that of runs of the same trial.

    Returns:
        None: the arm has fewer than two batches, the batch is more than ``REACH`` times beyond
        them, all arms together leave fewer than ``LEAST_DEGREES`` degrees of freedom, or the line
        gives no positive value.
    """
    by_arm: dict[str, list[Point]] = {}
    for point in points:
        by_arm.setdefault(point.arm, []).append(point)
    fits = {name: fit for name, own in by_arm.items() if (fit := _Fit.of(own))}
    own = fits.get(arm)
    degrees = sum(fit.count - 2 for fit in fits.values())
    if own is None or degrees < LEAST_DEGREES or not own.reaches(batch_size):
        return None
    squares = math.fsum(fit.squares for fit in fits.values())
    deviation = max(math.sqrt(squares / degrees), least_ratio)
    best = own.at(batch_size)
    error = deviation * math.sqrt(own.leverage(batch_size) + best * best)
    half = student_t_quantile(PROBABILITY, degrees) * error
    if best <= 0:
        return None
    return Interval(low=max(0.0, best - half), best=best, high=best + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A line by least squares of relative errors: rows (1, batch) / value, right side 1."""

    fixed: float
    per_sample: float
    count: int
    squares: float
    """The sum of the squares of relative errors."""
    inverse: tuple[float, float, float]
    """The inverse of the normal matrix: first, off the diagonal, last."""
    batches: tuple[int, int]
    """The smallest and the largest."""

    @classmethod
    def of(cls, points: Sequence[Point]) -> _Fit | None:
        """Make it; None where all points have one batch."""
        batches = [point.batch_size for point in points]
        if len(set(batches)) < 2:
            return None
        weights = [1 / point.value**2 for point in points]
        s0 = math.fsum(weights)
        s1 = math.fsum(w * b for w, b in zip(weights, batches, strict=True))
        s2 = math.fsum(w * b * b for w, b in zip(weights, batches, strict=True))
        free = s0 * s2 - s1 * s1
        if free <= 1e-12 * s0 * s2:
            return None
        r0 = math.fsum(1 / point.value for point in points)
        r1 = math.fsum(b / point.value for b, point in zip(batches, points, strict=True))
        fixed, per_sample = (r0 * s2 - r1 * s1) / free, (r1 * s0 - r0 * s1) / free
        errors = [
            1 - (fixed + per_sample * b) / point.value
            for b, point in zip(batches, points, strict=True)
        ]
        return cls(
            fixed=fixed,
            per_sample=per_sample,
            count=len(points),
            squares=math.fsum(error * error for error in errors),
            inverse=(s2 / free, -s1 / free, s0 / free),
            batches=(min(batches), max(batches)),
        )

    def at(self, batch_size: int) -> float:
        return self.fixed + self.per_sample * batch_size

    def leverage(self, batch_size: int) -> float:
        """Return the variance of the line at a batch, over the squared relative spread."""
        first, off, last = self.inverse
        return first + 2 * off * batch_size + last * batch_size * batch_size

    def reaches(self, batch_size: int) -> bool:
        low, high = self.batches
        return low / REACH <= batch_size <= high * REACH


def suspects(
    failed: Mapping[str, str], worked: Sequence[Mapping[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Return settings of a trial that failed which no trial that ran has: one of them is the cause.

    Args:
        failed: Changes of the trial that failed.
        worked: Those of the trials that ran.
    """
    proven = {pair for changes in worked for pair in changes.items()}
    return tuple(pair for pair in failed.items() if pair not in proven)
