"""What a bench found, in sentences: the answer, and what each part of its page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.measure.measurement_document import metrics_of
from tfdyno.view.base.template import sentence
from tfdyno.view.choose.sentences import Finding
from tfdyno.words.base.amounts import listed, plural, step_unit
from tfdyno.words.bench.measurement import (
    batch_words,
    device_words,
    rate_words,
    seconds_words,
    step_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import Comparison
    from tfdyno.core.measure.measurement_document import MeasurementReport
    from tfdyno.view.bench.runs import ShownRun


AGREEING_RATIO = 0.1
"""Runs further apart than this cannot be said to agree."""


def headline(told: Sequence[MeasurementReport], comparison: Comparison | None) -> str:
    """Return the answer: the step of one measurement, the verdict on two."""
    if comparison is None:
        one = told[0]
        step, _ = step_words(one.summary.median_s, one.summary.interval_s)
        task = one.measurement.task
        return f"{task.title} takes {step} a step at {batch_words(task)}"
    if comparison.verdict == "not_comparable":
        return "A and B do not compare"
    if comparison.verdict == "no_difference":
        return "No difference between A and B"
    if comparison.verdict == "faster":
        return f"B is {_percent(comparison.ratio - 1.0)} faster than A"
    return f"B is {_percent(1.0 - comparison.ratio)} slower than A"


def answer(told: Sequence[MeasurementReport], comparison: Comparison | None) -> str:
    """Return what stands under the headline: how sure it is, and where it was measured."""
    one = told[0]
    where = device_words(one.measurement.environment)
    if comparison is None:
        _, bounds = step_words(one.summary.median_s, one.summary.interval_s)
        _, unit = step_unit(one.summary.median_s)
        runs = plural(one.summary.run_count, "run")
        return (
            f"The median lies in {bounds} {unit} (95 %), over {runs} in fresh processes and "
            f"{one.summary.sample_count:,} samples of the steady state. Measured on {where}."
        )
    how = "Their runs took turns" if comparison.paired else "They were measured one after the other"
    if comparison.verdict == "not_comparable":
        return f"{comparison.reason} What each of them measured stands below."
    return (
        f"B has {comparison.ratio:.3f} times the throughput of A. {comparison.reason} Intervals "
        f"are at {_percent(comparison.confidence_ratio)}. {how}, on {where}."
    )


def boxes(told: Sequence[MeasurementReport]) -> list[dict[str, object]]:
    """Return a box of numbers for each measurement."""
    return [_box(one, name) for one, name in zip(told, "AB", strict=False)]


def _box(one: MeasurementReport, name: str) -> dict[str, object]:
    found, task = one.summary, one.measurement.task
    step, bounds = step_words(found.median_s, found.interval_s)
    rate, _, unit = rate_words(task, found.throughput_per_s).rpartition(" ")
    numbers = [
        ("Step", step, f"{bounds}, 95 %"),
        ("Throughput", rate, unit),
        ("First step", seconds_words(found.first_step_s), "compiling included"),
        ("Memory", format_bytes(found.peak_memory_bytes), _whose(one)),
    ]
    if found.energy_j_per_step is not None:
        power = f"at {found.power_w:,.0f} W" if found.power_w is not None else ""
        numbers.append(("Energy", f"{found.energy_j_per_step:,.3g} J", f"a step {power}".strip()))
    if found.utilisation_ratio is not None:
        numbers.append(("GPU busy", _percent(found.utilisation_ratio), "of the steady time"))
    numbers += [(metric.replace("_", " ").capitalize(), f"{_middle(values):.4g}", _spread(values))
                for metric, values in metrics_of(one.measurement).items()]  # fmt: skip
    return {"name": name, "title": one.measurement.label or task.title, "numbers": numbers}


def _whose(one: MeasurementReport) -> str:
    runs = one.measurement.runs
    return "whole process" if runs[0].memory_kind == "process" else "TensorFlow on the GPU"


def _middle(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _spread(values: Sequence[float]) -> str:
    if len(values) == 1:
        return "last epoch"
    return f"{min(values):.4g}–{max(values):.4g} over runs"


def doubts(told: Sequence[MeasurementReport]) -> list[str]:
    """Return reasons to trust the numbers less, with the side they concern."""
    names = ("A: ", "B: ") if len(told) == 2 else ("",)
    return [f"{name}{doubt.text}" for name, one in zip(names, told, strict=True)
            for doubt in one.summary.instabilities]  # fmt: skip


def checked(told: Sequence[MeasurementReport]) -> str:
    """Return what was looked at where nothing was found."""
    looked = ["steady state", "number of samples", "spread and drift of the runs"]
    if any(one.measurement.environment.device == "gpu" for one in told):
        looked += ["throttling", "other processes on the card"]
    return f"Checked: {listed([*looked, 'other processes on the CPUs'])}."


def left_out(told: Sequence[MeasurementReport], runs: Sequence[ShownRun]) -> list[str]:
    """Return what the numbers do not hold, one sentence each."""
    samples = sum(len(one.left_out_s) for one in runs)
    steps = sum(sum(one.run.steps_per_sample[: one.start]) for one in runs)
    firsts_s = [one.run.first_step_s for one in runs]
    first = seconds_words(max(firsts_s))
    found = [f"The first step of each run, tracing and compiling included: {first} at most."]
    if samples:
        found.append(
            f"Warm-up: {plural(steps, 'step')} in {plural(samples, 'sample')} over all runs, up "
            "to the changepoint after which the time stays level."
        )
    before_s = max(one.run.import_s + one.run.build_s for one in runs)
    found.append(f"Imports and the code before fit: {seconds_words(before_s)} at most.")
    notes = dict.fromkeys(note for one in told for note in one.measurement.task.notes)
    return [*found, *(sentence(note) for note in notes)]


def steps(told: Sequence[MeasurementReport], runs: Sequence[ShownRun]) -> Finding:
    """Return how far the runs agree."""
    medians_s = [one.median_s for one in runs]
    if len(told) == 2:
        heading = "How the two are spread"
    else:
        spread = max(medians_s) / min(medians_s) - 1.0
        verb = "agree within" if spread <= AGREEING_RATIO else "differ by up to"
        heading = f"The runs {verb} {_percent(spread)}" if len(runs) > 1 else "One run only"
    return Finding(
        heading=heading,
        lead="Each row is a fresh process, each dot the mean of a few steps that followed each "
        "other. A run counts with its median; the bar below is the 95 % interval of the median "
        "over runs.",
    )


def over_time(runs: Sequence[ShownRun]) -> Finding:
    """Tell where the warm-up ends."""
    found = sum(one.steady for one in runs)
    steps_out = sorted(sum(one.run.steps_per_sample[: one.start]) for one in runs)
    if found == len(runs) and steps_out[-1] == 0:
        heading = "Every run was steady after its first step"
    elif found == len(runs):
        heading = f"Every run found its steady state, after {plural(steps_out[-1], 'step')} at most"
    else:
        heading = f"{found} of {plural(len(runs), 'run')} found a steady state"
    lead = (
        "The first step stands apart. Of what follows, the steady state begins where the last "
        "change of level ends; only the tinted part counts."
    )
    if found < len(runs):
        lead += (
            " A run without a steady state counts only where none has one: with its second half."
        )
    return Finding(heading=heading, lead=lead)


def telemetry(told: Sequence[MeasurementReport], runs: Sequence[ShownRun]) -> Finding:
    """Return what the sampling is, and what it cost."""
    recorded = [one.run.telemetry for one in runs if one.run.telemetry.at_s]
    if not recorded:
        return Finding(heading="No telemetry was recorded", lead="The runs were too short for it.")
    costs = max(one.cost_ratio for one in recorded)
    kinds = ["the processes and the disk"]
    if any(one.cards for one in recorded):
        kinds.insert(0, "the card")
    else:
        kinds[0] += "; there was no card to watch"
    busy = [one.summary.utilisation_ratio for one in told]
    known = [_percent(share) for share in busy if share is not None]
    heading = f"The GPU was busy {listed(known)} of the steady time" if known else (
        "What the machine did meanwhile"
    )  # fmt: skip
    return Finding(
        heading=heading,
        lead=f"About every {recorded[0].interval_s:g} s, from outside, a side thread asked about "
        f"{listed(kinds)}. It took {_percent(costs)} of one CPU at most.",
    )


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.2g} %" if ratio < 1.0 else f"{100 * ratio:,.0f} %"
