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
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named

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
    return say(
        "{count} of {runs} found no steady state; the second half of each counts."
        if restless == len(runs)
        else "{count} of {runs} found no steady state; they are left out.",
        count=restless,
        runs=_runs(len(runs)),
    )


def _few_samples(measurement: Measurement, runs: Sequence[BenchRun]) -> str:
    protocol = measurement.protocol
    counts = [len(steady_part(run).samples_s) for run in runs]
    if len(runs) < protocol.least_runs:
        return say(
            "{runs} count; the protocol asks for {least}.",
            runs=_runs(len(runs)),
            least=protocol.least_runs,
        )
    if min(counts, default=0) < protocol.least_samples:
        return say(
            "A run has {count} samples in its steady state; the protocol asks for {least}.",
            count=min(counts),
            least=protocol.least_samples,
        )
    return ""


def _noise(runs: Sequence[BenchRun]) -> str:
    logs = [math.log(value) for value in run_medians_s(runs)]
    spread = math.sqrt(variance(logs))
    if spread <= NOISE_LIMIT_RATIO:
        return ""
    return say(
        "The medians of the runs spread by {spread} (standard deviation); up to {limit} is usual.",
        spread=_percent(spread),
        limit=_percent(NOISE_LIMIT_RATIO),
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
    return say(
        "Steps became {change} slower from the first to the last of {count} runs."
        if change > 0
        else "Steps became {change} faster from the first to the last of {count} runs.",
        change=_change_size(change),
        count=len(runs),
    )


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
    return say(
        "Within a run, steps became {change} slower from its first to its last third."
        if usual > 0
        else "Within a run, steps became {change} faster from its first to its last third.",
        change=_change_size(usual),
    )


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
    shares = say(", ").join(f"{named(name)} {_percent(share)}" for name, share in often)
    return say(
        "The card lowered its clock for part of the steady state: {shares} of the time.",
        shares=shares,
    )


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
    return say("Other processes held up to {size} of a card.", size=format_bytes(most))


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
    return say(
        "Other processes kept {share} of the machine's CPUs busy on average; up to {limit} is "
        "usual.",
        share=_percent(mean(shares)),
        limit=_percent(OTHER_CPU_LIMIT_RATIO),
    )


def _runs(count: int) -> str:
    return say("1 run") if count == 1 else say("{count} runs", count=count)


def _percent(ratio: float) -> str:
    return say("{share} %", share=significant(100 * ratio, 2))


def _change_size(log_ratio: float) -> str:
    return _percent(abs(math.expm1(log_ratio)))
