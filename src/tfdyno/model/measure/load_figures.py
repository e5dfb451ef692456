"""What follows from one stretch of load: rates, quantiles with intervals, errors, cost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.base.interval import Interval
from tfdyno.core.base.units import HOUR_S
from tfdyno.core.measure.load import ACCEPTED, CODE_WORDS, REFUSALS, StageFigures

if TYPE_CHECKING:
    from tfdyno.core.measure.load import StageRun

    Array = np.ndarray

SLICES = 20
"""The slices of a stretch; they are drawn again and again, because neighbours in time wait
together."""
RESAMPLES = 400
QUANTILES = (0.5, 0.95, 0.99, 0.999)
LEAST_FOR_DRAWS = 2
"""Slices that hold requests."""
_BELOW, _ABOVE = 0.025, 0.975
_SPREADS = 12.0
"""Standard deviations of a binomial distribution beyond which nothing of it counts."""
FULL_CPU_RATIO = 0.9
"""The share of one CPU from which on a client with one thread is taken to be at its end."""
LATE_RATIO, LATE_S = 0.25, 0.010
"""A client later than both, this share of the p99 and this time, tells latencies of its own."""
MILLION = 1e6


def stage_figures(run: StageRun, *, usd_per_h: float | None = None) -> StageFigures:
    """Return the figures of one stretch.

    A request counts from the warm-up on, by when it was meant to start; the rate is that of the
    answers that came in the same span of time. The intervals (95 %) hold two: that of the order of
    the latencies (``ranks``), right for requests that are independent, and a bootstrap over
    ``SLICES`` equal slices of time, since those that wait in one queue are not. Where too few
    latencies lie beyond a quantile, nothing bounds it: its upper end is infinite.

    Args:
        run: As it was measured.
        usd_per_h: Price of the server.
    """
    start, latency = np.asarray(run.start_s), np.asarray(run.latency_s)
    codes = np.asarray(run.codes, dtype=np.int64)
    begin, span_s = _span(run)
    counts = start >= begin
    good = codes == ACCEPTED
    end = start + latency
    in_span = good & (end >= begin) & (end < begin + span_s)
    per_s = float(in_span.sum()) / span_s if span_s > 0.0 else 0.0
    kept = counts & good
    quantiles = _quantiles(latency[kept], start[kept], begin, span_s)
    refused = int((counts & np.isin(codes, REFUSALS)).sum())
    p99 = quantiles[2]
    cpu_ratio = run.client_cpu_s / run.length_s if run.length_s > 0.0 else 0.0
    return StageFigures(
        requests=int(counts.sum()),
        accepted=int(kept.sum()),
        refused=refused,
        errors=errors_of(run),
        accepted_per_s=per_s,
        rows_per_s=per_s * run.rows_per_request,
        p50_s=quantiles[0],
        p95_s=quantiles[1],
        p99_s=p99,
        p999_s=quantiles[3],
        worst_s=float(latency[kept].max()) if kept.any() else 0.0,
        refused_ratio=refused / int(counts.sum()) if counts.any() else 0.0,
        mean_batch_rows=run.batch_rows / run.batch_count if run.batch_count else 0.0,
        client_cpu_ratio=cpu_ratio,
        client_is_limit=_limits(run, cpu_ratio, p99.best if p99 else 0.0),
        usd_per_million=usd_per_million(usd_per_h, per_s),
    )


def usd_per_million(usd_per_h: float | None, accepted_per_s: float) -> float | None:
    """Return dollars per million accepted requests at this rate; None without a price or a rate."""
    if usd_per_h is None or accepted_per_s <= 0.0:
        return None
    return usd_per_h / HOUR_S / accepted_per_s * MILLION


def errors_of(run: StageRun) -> dict[str, int]:
    """Return what went wrong, refusals left out -> how often, the warm-up included."""
    wrong = Counter(code for code in run.codes if code != ACCEPTED and code not in REFUSALS)
    return {CODE_WORDS.get(code, str(code)): count for code, count in sorted(wrong.items())}


def refusals_of(run: StageRun) -> dict[str, int]:
    """Count 429 and 503, the warm-up included."""
    found = Counter(code for code in run.codes if code in REFUSALS)
    return {str(code): count for code, count in sorted(found.items())}


def _span(run: StageRun) -> tuple[float, float]:
    """Return where the part that counts begins, and how long it is: shorter after Ctrl-C."""
    begin = min(run.plan.warmup_s, run.length_s / 2 if run.stopped else run.plan.warmup_s)
    return begin, max(0.0, run.length_s - begin)


def _limits(run: StageRun, cpu_ratio: float, p99_s: float) -> bool:
    late = run.lag_p99_s > LATE_S and run.lag_p99_s > LATE_RATIO * p99_s
    return cpu_ratio >= FULL_CPU_RATIO or late


def ranks(count: int, share: float) -> tuple[int, int]:
    """Return which of ``count`` sorted latencies, from 1 on, bound a quantile with 95 % confidence.

    How many latencies are no larger than the quantile has a binomial distribution, whatever that
    of the latencies is. 0 and ``count + 1``: none is known to be below, or above.

    Args:
        count: Latencies, at least 1.
        share: The quantile, 0 to 1.
    """
    spread = (count * share * (1.0 - share)) ** 0.5
    first = max(0, int(count * share - _SPREADS * (spread + 1.0)))
    last = min(count, int(count * share + _SPREADS * (spread + 1.0)))
    known = np.arange(first, last + 1)
    steps = np.log((count - known[:-1]) / known[1:]) + np.log(share / (1.0 - share))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    upto = np.cumsum(np.exp(logs - logs.max()))
    upto /= upto[-1]
    low = first + int(np.searchsorted(upto, _BELOW, side="right"))
    high = first + int(np.searchsorted(upto, _ABOVE, side="left")) + 1
    return low, high


def least_for_end(share: float) -> int:
    """Count the latencies that give a quantile an upper end: one is above it with 97.5 %."""
    return int(np.ceil(np.log(_BELOW) / np.log(share)))


def _quantiles(latency: Array, start: Array, begin: float, span_s: float) -> list[Interval | None]:
    if latency.size == 0:
        return [None] * len(QUANTILES)
    order = np.argsort(latency, kind="stable")
    values = latency[order]
    slices = np.minimum((start[order] - begin) / span_s * SLICES, SLICES - 1).astype(np.int64)
    best = _weighted(values, np.ones(values.size))
    drawn = _drawn(values, slices)
    padded = np.concatenate([[0.0], values, [np.inf]])
    found: list[Interval | None] = []
    for place, (share, middle) in enumerate(zip(QUANTILES, best, strict=True)):
        low, high = (float(padded[rank]) for rank in ranks(values.size, share))
        if drawn is not None:
            low, high = min(low, float(drawn[0][place])), max(high, float(drawn[1][place]))
        found.append(Interval(low=min(low, middle), best=middle, high=max(high, middle)))
    return found


def _drawn(values: Array, slices: Array) -> tuple[Array, Array] | None:
    """Return low and high of every quantile by slices drawn again; None: all are of one slice."""
    filled = np.unique(slices)
    if filled.size < LEAST_FOR_DRAWS:
        return None
    draws = np.random.default_rng(0).choice(filled, (RESAMPLES, filled.size))
    table = np.array(
        [_weighted(values, np.bincount(draw, minlength=SLICES)[slices]) for draw in draws]
    )
    return np.quantile(table, _BELOW, axis=0), np.quantile(table, _ABOVE, axis=0)


def _weighted(values: Array, weights: Array) -> list[float]:
    """Return the least value with this share of the weight up to it, for every quantile."""
    upto = np.cumsum(weights)
    places = np.searchsorted(upto, np.asarray(QUANTILES) * upto[-1] - 1e-9, side="left")
    return [float(values[min(int(place), values.size - 1)]) for place in places]
