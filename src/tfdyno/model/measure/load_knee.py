"""The search for the knee: the largest rate that a server answers in time and without refusals."""

from __future__ import annotations

from dataclasses import dataclass

PRECISION_RATIO = 1.06
"""The search ends when the lowest rate that failed is no more than this above the best."""
FIRST_RATIO = 0.5
"""The share of what the closed loop reached where the ramp begins."""
RAMP = 1.5
LEAST_RATIO = 1 / 16
"""The share of the same at which a broken promise means that no rate worth serving keeps it."""
TRIES = 2
"""A rate has failed when it failed so often: one stall of a busy machine does not decide."""
MOST_PROBES = 24
MOST_DECIDING = 5
"""Longer stretches; each that fails goes down by twice as many steps of ``PRECISION_RATIO``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A rate that was tried, and whether the server kept the promise."""

    rate_per_s: float
    holds: bool
    decides: bool = False
    """Whether it was a longer stretch, which has to keep the promise for sure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextProbe:
    """A rate to try."""

    rate_per_s: float
    decides: bool


def next_probe(probes: tuple[Probe, ...], closed_per_s: float) -> NextProbe | None:
    """Return what to try next; None: the search is over.

    The search by short stretches takes the best of many, each of which may have been lucky. So
    what it found is repeated in a longer one, and a lower rate where that fails.

    Args:
        probes: What was tried, in order.
        closed_per_s: What the server reached with clients that wait for answers.
    """
    short = tuple(one for one in probes if not one.decides)
    rate = next_rate(short, closed_per_s)
    if rate is not None:
        return NextProbe(rate_per_s=rate, decides=False)
    deciding = [one for one in probes if one.decides]
    if not deciding:
        best = _best(short)
        return None if best is None else NextProbe(rate_per_s=best, decides=True)
    if deciding[-1].holds or len(deciding) >= MOST_DECIDING:
        return None
    lower = deciding[-1].rate_per_s / PRECISION_RATIO**2 ** (len(deciding) - 1)
    is_worth = lower >= closed_per_s * LEAST_RATIO
    return NextProbe(rate_per_s=lower, decides=True) if is_worth else None


def next_rate(probes: tuple[Probe, ...], closed_per_s: float) -> float | None:
    """Return the rate of the next short stretch; None: these are over.

    First a ramp: up by ``RAMP`` while the promise is kept, or down by halves until it is. Then
    bisection, in the logarithm, between the best rate that held and the lowest above it that did
    not. What failed is tried ``TRIES`` times.

    Args:
        probes: What was tried, in order.
        closed_per_s: What the server reached with clients that wait for answers.
    """
    if len(probes) >= MOST_PROBES or closed_per_s <= 0.0:
        return None
    if not probes:
        return closed_per_s * FIRST_RATIO
    last = probes[-1]
    tries = [one for one in probes if one.rate_per_s == last.rate_per_s]
    if len(tries) < TRIES and not any(one.holds for one in tries):
        return last.rate_per_s
    lowest, best = _lowest_failed(probes), _best(probes)
    if lowest is None:
        return max(one.rate_per_s for one in probes) * RAMP
    if best is None:
        lower = lowest / 2
        return lower if lower >= closed_per_s * LEAST_RATIO else None
    return None if lowest / best <= PRECISION_RATIO else float((lowest * best) ** 0.5)


def knee(probes: tuple[Probe, ...]) -> float | None:
    """Return the largest rate that a longer stretch held at; before one, what short ones say.

    None: there is none.
    """
    deciding = [one for one in probes if one.decides]
    if not deciding:
        return _best(probes)
    return max((one.rate_per_s for one in deciding if one.holds), default=None)


def _best(probes: tuple[Probe, ...]) -> float | None:
    """Return the best rate that held below every rate that failed; None: none did."""
    lowest = _lowest_failed(probes)
    good = [one.rate_per_s for one in probes
            if one.holds and (lowest is None or one.rate_per_s < lowest)]  # fmt: skip
    return max(good, default=None)


def _lowest_failed(probes: tuple[Probe, ...]) -> float | None:
    held = {one.rate_per_s for one in probes if one.holds}
    return min((one.rate_per_s for one in probes if one.rate_per_s not in held), default=None)
