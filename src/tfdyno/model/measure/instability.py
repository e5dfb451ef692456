"""Reasons to trust a measurement less, each with its numbers."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.measure.measurement import Instability
from tfdyno.model.measure.statistics import mean, median, student_t_quantile, variance
from tfdyno.model.measure.steady_part import (
    is_steady,
    judged_runs,
    run_medians_s,
    steady_part,
    steady_points,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import BenchRun, InstabilityKind, Measurement

NOISE_LIMIT_RATIO = 0.03
"""Standard deviation of the runs' medians."""
DRIFT_LIMIT_RATIO = 0.02
"""Change over all runs, or from the first to the last third of a run."""
THROTTLING_LIMIT_RATIO = 0.05
"""Share of the points of the steady parts."""
OTHER_MEMORY_LIMIT_BYTES = 256 << 20
"""What other processes may hold on a card; a desktop without programs takes less."""
OTHER_CPU_LIMIT_RATIO = 0.1
"""The share of the machine's CPUs that other processes may keep busy."""
_FEWEST_FOR_TREND = 5
_FEWEST_IN_THIRD = 5


def instabilities(measurement: Measurement) -> tuple[Instability, ...]:
    """Return every instability of a measurement; empty where there is nothing to say."""
    runs = judged_runs(measurement)
    found: list[tuple[InstabilityKind, str]] = [
        ("no_steady_state", _no_steady_state(measurement)),
        ("few_samples", _few_samples(measurement, runs)),
        ("noise", _noise(runs)),
        ("drift", _drift_over_runs(runs)),
        ("drift", _drift_in_runs(runs)),
        ("throttling", _throttling(runs)),
        ("busy_card", _busy_card(runs)),
        ("busy_host", _busy_host(runs)),
    ]
    return tuple(Instability(kind=kind, text=text) for kind, text in found if text)


def _no_steady_state(measurement: Measurement) -> str:
    runs = measurement.runs
    restless = sum(not is_steady(run) for run in runs)
    if not restless:
        return ""
    judged = "the second half of each counts" if restless == len(runs) else "they are left out"
    return f"{restless} of {_runs(len(runs))} found no steady state; {judged}."


def _few_samples(measurement: Measurement, runs: Sequence[BenchRun]) -> str:
    protocol = measurement.protocol
    counts = [len(steady_part(run).samples_s) for run in runs]
    if len(runs) < protocol.least_runs:
        return f"{_runs(len(runs))} count; the protocol asks for {protocol.least_runs}."
    if min(counts, default=0) < protocol.least_samples:
        return (
            f"A run has {min(counts)} samples in its steady state; the protocol asks for "
            f"{protocol.least_samples}."
        )
    return ""


def _noise(runs: Sequence[BenchRun]) -> str:
    logs = [math.log(value) for value in run_medians_s(runs)]
    spread = math.sqrt(variance(logs))
    if spread <= NOISE_LIMIT_RATIO:
        return ""
    return (
        f"The medians of the runs spread by {_percent(spread)} (standard deviation); up to "
        f"{_percent(NOISE_LIMIT_RATIO)} is usual."
    )


def _drift_over_runs(runs: Sequence[BenchRun]) -> str:
    """Find a trend, certain at 99 %, that changes the step by over 2 % from first to last run."""
    if len(runs) < _FEWEST_FOR_TREND:
        return ""
    ordered = sorted(runs, key=lambda run: run.order)
    places = [float(run.order) for run in ordered]
    logs = [math.log(value) for value in run_medians_s(ordered)]
    slope, error = _slope(places, logs)
    change = slope * (places[-1] - places[0])
    certain = abs(slope) > student_t_quantile(0.995, len(runs) - 2.0) * error
    if not certain or abs(change) <= DRIFT_LIMIT_RATIO:
        return ""
    return f"Steps became {_changed(change)} from the first to the last of {len(runs)} runs."


def _slope(places: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the least-squares slope and its standard error; 0 and 0 where all places are equal."""
    middle, level = mean(places), mean(values)
    square = sum((place - middle) ** 2 for place in places)
    if square == 0.0:
        return 0.0, 0.0
    pairs = list(zip(places, values, strict=True))
    slope = sum((place - middle) * (value - level) for place, value in pairs) / square
    rest = sum((value - level - slope * (place - middle)) ** 2 for place, value in pairs)
    return slope, math.sqrt(rest / (len(places) - 2) / square)


def _drift_in_runs(runs: Sequence[BenchRun]) -> str:
    """Return the median change over runs, where four of five change in that direction."""
    changes = []
    for run in runs:
        samples_s = steady_part(run).samples_s
        third = len(samples_s) // 3
        if third >= _FEWEST_IN_THIRD:
            changes.append(math.log(median(samples_s[-third:]) / median(samples_s[:third])))
    if not changes:
        return ""
    usual = median(changes)
    agreeing = sum(change * usual > 0 for change in changes)
    if abs(usual) <= DRIFT_LIMIT_RATIO or agreeing < 0.8 * len(changes):
        return ""
    return f"Within a run, steps became {_changed(usual)} from its first to its last third."


def _throttling(runs: Sequence[BenchRun]) -> str:
    points, seen = 0, Counter[str]()
    for run in runs:
        told = [card.throttle for card in run.telemetry.cards if card.throttle]
        for at in steady_points(run) if told else ():
            points += 1
            seen.update({reason for reasons in told for reason in reasons[at]})
    often = [(name, n / points) for name, n in seen.most_common()
             if n / points > THROTTLING_LIMIT_RATIO]  # fmt: skip
    if not often:
        return ""
    named = ", ".join(f"{name} {_percent(share)}" for name, share in often)
    return f"The card lowered its clock for part of the steady state: {named} of the time."


def _busy_card(runs: Sequence[BenchRun]) -> str:
    most = max(
        (
            card.other_memory_bytes[at]
            for run in runs
            for card in run.telemetry.cards
            if card.other_memory_bytes
            for at in steady_points(run)
        ),
        default=0,
    )
    if most <= OTHER_MEMORY_LIMIT_BYTES:
        return ""
    return f"Other processes held up to {format_bytes(most)} of a card."


def _busy_host(runs: Sequence[BenchRun]) -> str:
    shares = [
        run.telemetry.other_cpu_ratio[at]
        for run in runs
        if run.telemetry.other_cpu_ratio
        for at in steady_points(run)
        if run.telemetry.other_cpu_ratio[at] >= 0.0  # below: this point could not be read
    ]
    if not shares or mean(shares) <= OTHER_CPU_LIMIT_RATIO:
        return ""
    return (
        f"Other processes kept {_percent(mean(shares))} of the machine's CPUs busy on average; "
        f"up to {_percent(OTHER_CPU_LIMIT_RATIO)} is usual."
    )


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _percent(ratio: float) -> str:
    return f"{significant(100 * ratio, 2)} %"


def _changed(log_ratio: float) -> str:
    word = "slower" if log_ratio > 0 else "faster"
    return f"{_percent(abs(math.expm1(log_ratio)))} {word}"
