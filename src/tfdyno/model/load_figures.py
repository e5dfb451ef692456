"""What follows from one stretch of load: rates, quantiles with intervals, errors, cost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.interval import Interval
from tfdyno.core.load_test import ACCEPTED, CODE_WORDS, REFUSALS, StageFigures

if TYPE_CHECKING:
    from tfdyno.core.load_test import StageRun

    Array = np.ndarray

SLICES = 20
"""Of a stretch; they are drawn again and again, because neighbours in time wait together."""
RESAMPLES = 400
QUANTILES = (0.5, 0.95, 0.99, 0.999)
LEAST_FOR_INTERVAL = 2
FULL_CPU_RATIO = 0.9
"""Of one CPU, from which on a client with one thread is taken to be at its end."""
LATE_RATIO, LATE_S = 0.25, 0.010
"""A client later than both, this share of the p99 and this time, tells latencies of its own."""
SECONDS_PER_H = 3600.0
MILLION = 1e6


def stage_figures(run: StageRun, *, usd_per_h: float | None = None) -> StageFigures:
    """The figures of one stretch.

    A request counts from the warm-up on, by when it was meant to start; the rate is that of the
    answers that came in the same span of time. The intervals (95 %) are a bootstrap over
    ``SLICES`` equal slices of time, since requests that wait in one queue are not independent.

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
    """Dollars per million accepted requests at this rate; None without a price or a rate."""
    if usd_per_h is None or accepted_per_s <= 0.0:
        return None
    return usd_per_h / SECONDS_PER_H / accepted_per_s * MILLION


def errors_of(run: StageRun) -> dict[str, int]:
    """What went wrong, refusals left out -> how often, the warm-up included."""
    wrong = Counter(code for code in run.codes if code != ACCEPTED and code not in REFUSALS)
    return {CODE_WORDS.get(code, str(code)): count for code, count in sorted(wrong.items())}


def refusals_of(run: StageRun) -> dict[str, int]:
    """429 and 503 -> how often, the warm-up included."""
    found = Counter(code for code in run.codes if code in REFUSALS)
    return {str(code): count for code, count in sorted(found.items())}


def _span(run: StageRun) -> tuple[float, float]:
    """Where the part that counts begins, and how long it is: shorter after Ctrl-C."""
    begin = min(run.plan.warmup_s, run.length_s / 2 if run.stopped else run.plan.warmup_s)
    return begin, max(0.0, run.length_s - begin)


def _limits(run: StageRun, cpu_ratio: float, p99_s: float) -> bool:
    late = run.lag_p99_s > LATE_S and run.lag_p99_s > LATE_RATIO * p99_s
    return cpu_ratio >= FULL_CPU_RATIO or late


def _quantiles(latency: Array, start: Array, begin: float, span_s: float) -> list[Interval | None]:
    if latency.size == 0:
        return [None] * len(QUANTILES)
    order = np.argsort(latency, kind="stable")
    values = latency[order]
    slices = np.minimum((start[order] - begin) / span_s * SLICES, SLICES - 1).astype(np.int64)
    best = _weighted(values, np.ones(values.size))
    filled = np.unique(slices)
    if filled.size < LEAST_FOR_INTERVAL:
        return [Interval(low=one, best=one, high=one) for one in best]
    draws = np.random.default_rng(0).choice(filled, (RESAMPLES, filled.size))
    table = np.array(
        [_weighted(values, np.bincount(draw, minlength=SLICES)[slices]) for draw in draws]
    )
    low, high = np.quantile(table, 0.025, axis=0), np.quantile(table, 0.975, axis=0)
    return [
        Interval(low=min(float(a), b), best=b, high=max(float(c), b))
        for a, b, c in zip(low, best, high, strict=True)
    ]


def _weighted(values: Array, weights: Array) -> list[float]:
    """The least value with this share of the weight up to it, for every quantile."""
    upto = np.cumsum(weights)
    places = np.searchsorted(upto, np.asarray(QUANTILES) * upto[-1] - 1e-9, side="left")
    return [float(values[min(int(place), values.size - 1)]) for place in places]
