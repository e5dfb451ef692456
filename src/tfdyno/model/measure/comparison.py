"""Which of two measurements is faster, how sure that is, or why they do not compare."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.units import format_bytes, format_si, significant
from tfdyno.core.measure.measurement import Comparison, SameResults, Verdict
from tfdyno.core.recipe import recipe
from tfdyno.core.recipe.retreat import as_run
from tfdyno.model.measure.same_results import same_results
from tfdyno.model.measure.statistics import CONFIDENCE_RATIO, detrended, median, paired, welch
from tfdyno.model.measure.steady_part import beside_s, is_steady, steady_part
from tfdyno.words.base.language import joined, say
from tfdyno.words.recipe.retreats import cause_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import BenchRun, Measurement

SURER_RATIO = 0.995
"""The confidence at which one batch of 40 equal pairs in 58 holds two false alarms; at 99 % it is
one in 16."""
LEAST_EFFECT_RATIO = 0.01
"""A smaller difference is none, however certain."""
FEWEST_RUNS = 3
FEWEST_ADJUSTED = 8
"""Runs of both sides together from which the machine's own speed is taken out."""
_Pair = tuple[list[float], list[float]]
"""A number for each of A's runs and of B's."""
_PROTOCOL_FIELDS = ("version", "data", "epochs", "target_metric", "target_value")
_TASK_FIELDS = ("mode", "title", "parameter_count", "inputs", "loss", "data_set")
_TASK_LEFT_OUT = ("notes", "reference")
_SAME_PLACE = ("host", "container", "cpu", "cpu_count", "device", "tensorflow")
_SAME_THREADS = ("threads_intra", "threads_inter")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """What is compared, run by run."""

    rates: _Pair
    """Samples per second."""
    places: _Pair | None
    """The places in the common order, where the runs of both alternated."""
    speeds: _Pair | None
    """Logs of the seconds beside the steps, where nothing but the machine's speed changes them."""


def compare(a: Measurement, b: Measurement) -> Comparison:
    """Compare B with A by the throughput of their runs (samples/s over all replicas).

    The interval is Student's t, at 99 %, on logarithms of the trimmed means of the runs. On CPUs of
    one machine, with eight runs or more together, its own speed is taken out by a small computation
    timed beside the steps (analysis of covariance):

        log throughput of a run = level + side * log ratio + slope * log seconds beside its steps

    Where both shared a session and their runs alternated, it is the narrower of two at 99.5 % each,
    which together err in at most 1 of 100 cases: that of the differences of pairs (the machine may
    have changed anyhow between pairs), and the analysis of covariance, in which without that
    computation the place in the session stands for it. Runs of different sessions met the machine
    at different times: the analysis of covariance alone, at 99.5 %, and where it cannot be made
    Welch's, widened by how much the computation changed:

        half width = t * standard error + |log(seconds beside B / seconds beside A)|

    A verdict of faster or slower needs an interval without 1 and an effect of over 1 %. Two
    backends compare where they are proven to compute the same (``same_results``).
    """
    differences = _differences(a, b)
    same = same_results(a, b)
    obstacle = _obstacle(a, b, same)
    if obstacle:
        return Comparison(
            verdict="not_comparable", ratio=0.0, interval=(0.0, 0.0), paired=False,
            confidence_ratio=CONFIDENCE_RATIO, reason=obstacle, differences=differences,
            same=same,
        )  # fmt: skip
    runs = _runs(a, b)
    log_ratio, half = _contrast(runs)
    ratio, interval = math.exp(log_ratio), (math.exp(log_ratio - half), math.exp(log_ratio + half))
    verdict = verdict_of(ratio, interval)
    return Comparison(
        verdict=verdict,
        ratio=ratio,
        interval=interval,
        confidence_ratio=CONFIDENCE_RATIO,
        paired=runs.places is not None,
        reason=joined([_reason(verdict, ratio, interval, runs, a, b), same.text if same else ""]),
        differences=differences,
        same=same,
        scaling_efficiency_ratio=_scaling(a, b, ratio),
    )


def verdict_of(ratio: float, interval: tuple[float, float]) -> Verdict:
    """Say faster or slower where the interval leaves 1 out and the effect is over 1 %."""
    if abs(ratio - 1.0) <= LEAST_EFFECT_RATIO or interval[0] <= 1.0 <= interval[1]:
        return "no_difference"
    return "faster" if ratio > 1.0 else "slower"


def _obstacle(a: Measurement, b: Measurement, same: SameResults | None) -> str:
    """Return why the two do not compare, in one sentence; empty: they do."""
    sides: tuple[tuple[str, object, object, tuple[str, ...]], ...] = (
        ("protocol", a.protocol, b.protocol, _PROTOCOL_FIELDS),
        ("task", a.task, b.task, _TASK_FIELDS),
    )
    for name, one, other, fields in sides:
        for field in fields:
            left, right = getattr(one, field), getattr(other, field)
            if left != right:
                return say(
                    "{field} differs: {left} and {right}.",
                    field=f"{name}.{field}",
                    left=_shown(field, left),
                    right=_shown(field, right),
                )
    if found := _same_after_retreat(a, b):
        return found
    if same and same.kind == "not_proven":
        return same.text
    for name, side in (("A", a), ("B", b)):
        count = len(_steady_runs(side))
        if count < FEWEST_RUNS:
            return say(
                "{name} has {count} of {all} runs with a steady state; a comparison needs {least}.",
                name=name,
                count=count,
                all=len(side.runs),
                least=FEWEST_RUNS,
            )
    return ""


def _same_after_retreat(a: Measurement, b: Measurement) -> str:
    """Return why two recipes that differ are the same run; empty: they are not."""
    steps = [tuple(one.step for one in side.task.retreats) for side in (a, b)]
    if steps[0] == steps[1] or a.recipe == b.recipe:
        return ""
    ran = [as_run(side.recipe, side.task.retreats) for side in (a, b)]
    is_graph = [side.task.execution != "xla" for side in (a, b)]
    known = [
        replace(one, execution="graph") if g else one for one, g in zip(ran, is_graph, strict=True)
    ]
    if known[0] != known[1] or not all(is_graph):
        return ""
    name = "A" if steps[0] else "B"
    side = a if steps[0] else b
    return say(
        "XLA failed to compile {name} ({cause}), which ran in graph execution as the other side "
        "did: both are the same run.",
        name=name,
        cause=cause_words(side.task.retreats[-1]),
    )


def _steady_runs(measurement: Measurement) -> list[BenchRun]:
    """Return runs with a steady state, in order of time."""
    runs = [run for run in measurement.runs if is_steady(run) and steady_part(run).samples_s]
    return sorted(runs, key=lambda run: run.order)


def _pairs(a: Measurement, b: Measurement) -> list[tuple[BenchRun, BenchRun]]:
    """Pair the i-th runs of both where they alternated (A B B A ...) in one session; else none."""
    if not a.session or a.session != b.session or a == b:
        return []
    ordered = sorted([(run.order, 0, run) for run in a.runs] + [(run.order, 1, run)
                     for run in b.runs], key=lambda entry: entry[:2])  # fmt: skip
    couples = [ordered[at : at + 2] for at in range(0, len(ordered) - 1, 2)]
    if any({side for _, side, _ in couple} != {0, 1} for couple in couples):
        return []
    found = []
    for couple in couples:
        left, right = (run for _, _, run in sorted(couple, key=lambda entry: entry[1]))
        if all(is_steady(run) and steady_part(run).samples_s for run in (left, right)):
            found.append((left, right))
    return found if len(found) >= FEWEST_RUNS else []


def _runs(a: Measurement, b: Measurement) -> _Runs:
    pairs = _pairs(a, b)
    left = [run for run, _ in pairs] or _steady_runs(a)
    right = [run for _, run in pairs] or _steady_runs(b)
    is_alike = _equal(a.environment, b.environment, _SAME_PLACE)
    is_alike = is_alike and _equal(a.recipe, b.recipe, _SAME_THREADS)
    places = [float(run.order) for run in left], [float(run.order) for run in right]
    return _Runs(
        rates=([_throughput_per_s(a, run) for run in left],
               [_throughput_per_s(b, run) for run in right]),
        places=places if pairs else None,
        speeds=_machine_speeds(left, right) if is_alike else None,
    )  # fmt: skip


def _equal(one: object, other: object, names: Sequence[str]) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _contrast(runs: _Runs) -> tuple[float, float]:
    """Log of the ratio of throughputs, and half of its interval's width."""
    has_slope = runs.speeds is not None and _tell_a_slope(runs.speeds)
    covariate = runs.speeds if has_slope else runs.places
    ways = [detrended(*runs.rates, places=covariate)] if covariate else []
    ways += [paired(*runs.rates)] if runs.places else []
    if not ways:
        contrast = welch(*runs.rates)
        moved = abs(_change(runs.speeds)) if runs.speeds else 0.0
        return contrast.log_ratio, contrast.half_width(CONFIDENCE_RATIO) + moved
    narrowest = min(ways, key=lambda way: way.half_width(SURER_RATIO))
    return narrowest.log_ratio, narrowest.half_width(SURER_RATIO)


def _throughput_per_s(measurement: Measurement, run: BenchRun) -> float:
    return measurement.task.samples_per_step / steady_part(run).trimmed_mean_s


def _machine_speeds(left: Sequence[BenchRun], right: Sequence[BenchRun]) -> _Pair | None:
    """Return logs of the computation beside the steps, by run; None where a run has none."""
    found = [[beside_s(run) for run in side] for side in (left, right)]
    if min(map(min, found)) <= 0:
        return None
    one, other = ([math.log(seconds) for seconds in side] for side in found)
    return one, other


def _tell_a_slope(speeds: _Pair) -> bool:
    """Return whether there are enough runs, and differences between them, to fit one."""
    both = [*speeds[0], *speeds[1]]
    return len(both) >= FEWEST_ADJUSTED and len(set(both)) > 2


def _change(speeds: _Pair) -> float:
    """Log of B's time beside the steps over A's."""
    return median(speeds[1]) - median(speeds[0])


def _reason(
    verdict: Verdict,
    ratio: float,
    interval: tuple[float, float],
    runs: _Runs,
    a: Measurement,
    b: Measurement,
) -> str:
    low, high = (f"{value:.3f}" for value in interval)
    if verdict != "no_difference":
        said = say("The interval of {low}–{high} leaves 1 out and the effect is over 1 %",
                   low=low, high=high)  # fmt: skip
    elif interval[0] <= 1.0 <= interval[1]:
        said = say("The interval of {low}–{high} holds 1", low=low, high=high)
    else:
        said = say("The effect of {change:+.2f} % is not over 1 %", change=100 * (ratio - 1))
    if runs.speeds and _tell_a_slope(runs.speeds):
        said += say("; the machine's own speed, timed beside the steps, is taken out")
    elif runs.speeds and not runs.places and abs(_change(runs.speeds)) > 0.005:
        said += say(
            "; it is wider because the machine's own speed changed by {change:+.1f} %",
            change=100 * math.expm1(-_change(runs.speeds)),
        )
    sizes = [side.task.batch_size for side in (a, b)]
    if sizes[0] != sizes[1]:
        said += say(
            "; samples per second compare, as the batches differ ({first:,} and {second:,})",
            first=sizes[0],
            second=sizes[1],
        )
    return said + say(".")


def _scaling(a: Measurement, b: Measurement, ratio: float) -> float | None:
    """Divide the ratio by that of replicas, where the cards are of one model."""
    models = {card.name for side in (a, b) for card in side.environment.cards}
    counts = [side.task.replica_count for side in (a, b)]
    if len(models) != 1 or counts[0] == counts[1]:
        return None
    return ratio * counts[0] / counts[1]


def _differences(a: Measurement, b: Measurement) -> tuple[tuple[str, str, str], ...]:
    """Return fields of recipe, task and environment in which the two differ."""
    found = [(f"recipe.{name}", *pair) for name, pair in recipe.diff(a.recipe, b.recipe).items()]
    nouns = (("task", a.task, b.task), ("environment", a.environment, b.environment))
    for where, one, other in nouns:
        for field in dataclasses.fields(one):
            pair = (getattr(one, field.name), getattr(other, field.name))
            if pair[0] != pair[1] and field.name not in _TASK_LEFT_OUT:
                found.append((f"{where}.{field.name}", *pair))
    return tuple((name, _shown(name, left), _shown(name, right)) for name, left, right in found)


def _shown(name: str, value: object) -> str:
    """Return a value in words, by the unit that its field's name ends in."""
    if isinstance(value, tuple):
        return " + ".join(_item(one) for one in value) or say("none")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value) if value not in ("", None) else say("none")
    if name.endswith("_bytes"):
        return format_bytes(value) if value else "0"
    return f"{value:,}" if isinstance(value, int) else significant(value)


def _item(value: object) -> str:
    """Return a card by its name and limits, a step back in words, anything else as it is."""
    if words := getattr(value, "words", ""):
        return say(str(words))
    if not dataclasses.is_dataclass(value):
        return str(value)
    parts = [str(getattr(value, "name", value))]
    if power_w := getattr(value, "power_limit_w", 0.0):
        parts.append(f"{significant(power_w)} W")
    if clock_hz := getattr(value, "graphics_clock_limit_hz", 0.0):
        parts.append(format_si(clock_hz, "Hz"))
    return ", ".join(parts)


def compare_rates(before_per_s: Sequence[float], after_per_s: Sequence[float]) -> Comparison:
    """Return the ratio of two rates whose i-th values were measured one after the other.

    Student's t at 99 % on the logarithms of the ratios of pairs, so that whatever else the machine
    did in a pair meets both sides.

    Raises:
        ValueError: There are fewer than two pairs, or a side has more turns.
    """
    contrast = paired(before_per_s, after_per_s)
    half = contrast.half_width(CONFIDENCE_RATIO)
    ratio, low, high = (math.exp(contrast.log_ratio + way * half) for way in (0, -1, 1))
    return Comparison(
        verdict=verdict_of(ratio, (low, high)),
        ratio=ratio,
        interval=(low, high),
        confidence_ratio=CONFIDENCE_RATIO,
        paired=True,
        reason=say("{count} turns of each side, one after the other.", count=len(before_per_s)),
    )
