"""What a bench found, in sentences: the answer, and what each part of its page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.measure.measurement_document import metrics_of
from tfdyno.view.base.template import sentence
from tfdyno.view.choose.sentences import Finding
from tfdyno.words.base.amounts import listed, plural, step_unit
from tfdyno.words.base.language import joined, say
from tfdyno.words.bench.comparison import side_names
from tfdyno.words.bench.measurement import (
    batch_words,
    device_words,
    rate_words,
    seconds_words,
    step_words,
)
from tfdyno.words.bench.told import note_words

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
        return say(
            "{title} takes {step} a step at {batch}",
            title=task.title,
            step=step,
            batch=batch_words(task),
        )
    base, other = side_names(*(one.measurement.task for one in told))
    if comparison.verdict == "not_comparable":
        return say("{base} and {other} do not compare", base=base, other=other)
    if comparison.verdict == "no_difference":
        return say("No difference between {base} and {other}", base=base, other=other)
    share = _percent(abs(comparison.ratio - 1.0))
    if comparison.verdict == "faster":
        return say("{other} is {share} faster than {base}", other=other, share=share, base=base)
    return say("{other} is {share} slower than {base}", other=other, share=share, base=base)


def answer(told: Sequence[MeasurementReport], comparison: Comparison | None) -> str:
    """Return what stands under the headline: how sure it is, and where it was measured."""
    one = told[0]
    where = device_words(one.measurement.environment)
    if comparison is None:
        _, bounds = step_words(one.summary.median_s, one.summary.interval_s)
        _, unit = step_unit(one.summary.median_s)
        runs = plural(one.summary.run_count, "run")
        return say(
            "The median lies in {bounds} {unit} (95 %), over {runs} in fresh processes and "
            "{count:,} samples of the steady state. Measured on {where}.",
            bounds=bounds,
            unit=unit,
            runs=runs,
            count=one.summary.sample_count,
            where=where,
        )
    if comparison.verdict == "not_comparable":
        return joined([comparison.reason, say("What each of them measured stands below.")])
    return joined([
        say("B has {ratio:.3f} times the throughput of A.", ratio=comparison.ratio),
        comparison.reason,
        say("Intervals are at {share}.", share=_percent(comparison.confidence_ratio)),
        say(
            "Their runs took turns, on {where}."
            if comparison.paired
            else "They were measured one after the other, on {where}.",
            where=where,
        ),
    ])  # fmt: skip


def boxes(told: Sequence[MeasurementReport]) -> list[dict[str, object]]:
    """Return a box of numbers for each measurement."""
    return [_box(one, name) for one, name in zip(told, "AB", strict=False)]


def _box(one: MeasurementReport, name: str) -> dict[str, object]:
    found, task = one.summary, one.measurement.task
    step, bounds = step_words(found.median_s, found.interval_s)
    rate, _, unit = rate_words(task, found.throughput_per_s).rpartition(" ")
    numbers = [
        (say("Step"), step, say("{bounds}, 95 %", bounds=bounds)),
        (say("Throughput"), rate, unit),
        (say("First step"), seconds_words(found.first_step_s), say("compiling included")),
        (say("Memory||of a run"), format_bytes(found.peak_memory_bytes), _whose(one)),
    ]
    if found.energy_j_per_step is not None:
        per = (
            say("a step")
            if found.power_w is None
            else say("a step at {power:,.0f} W", power=found.power_w)
        )
        numbers.append((say("Energy"), f"{found.energy_j_per_step:,.3g} J", per))
    if found.utilisation_ratio is not None:
        busy = _percent(found.utilisation_ratio)
        numbers.append((say("GPU busy"), busy, say("of the steady time")))
    numbers += [(metric.replace("_", " ").capitalize(), f"{_middle(values):.4g}", _spread(values))
                for metric, values in metrics_of(one.measurement).items()]  # fmt: skip
    return {"name": name, "title": one.measurement.label or task.title, "numbers": numbers}


def _whose(one: MeasurementReport) -> str:
    runs = one.measurement.runs
    is_process = runs[0].memory_kind == "process"
    return say("whole process") if is_process else say("TensorFlow on the GPU")


def _middle(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _spread(values: Sequence[float]) -> str:
    if len(values) == 1:
        return say("last epoch")
    return say("{low:.4g}–{high:.4g} over runs", low=min(values), high=max(values))


def doubts(told: Sequence[MeasurementReport]) -> list[str]:
    """Return reasons to trust the numbers less, with the side they concern."""
    names = ("A: ", "B: ") if len(told) == 2 else ("",)
    return [f"{name}{doubt.text}" for name, one in zip(names, told, strict=True)
            for doubt in one.summary.instabilities]  # fmt: skip


def checked(told: Sequence[MeasurementReport]) -> str:
    """Return what was looked at where nothing was found."""
    looked = [say("steady state"), say("number of samples"), say("spread and drift of the runs")]
    if any(one.measurement.environment.device == "gpu" for one in told):
        looked += [say("throttling"), say("other processes on the card")]
    return say("Checked: {looked}.", looked=listed([*looked, say("other processes on the CPUs")]))


def left_out(told: Sequence[MeasurementReport], runs: Sequence[ShownRun]) -> list[str]:
    """Return what the numbers do not hold, one sentence each."""
    samples = sum(len(one.left_out_s) for one in runs)
    steps = sum(sum(one.run.steps_per_sample[: one.start]) for one in runs)
    firsts_s = [one.run.first_step_s for one in runs]
    first = seconds_words(max(firsts_s))
    found = [
        say("The first step of each run, tracing and compiling included: {time} at most.",
            time=first)
    ]  # fmt: skip
    if samples:
        found.append(
            say(
                "Warm-up: {steps} in {samples} over all runs, up to the changepoint after which "
                "the time stays level.",
                steps=plural(steps, "step"),
                samples=plural(samples, "sample||of time"),
            )
        )
    before_s = max(one.run.import_s + one.run.build_s for one in runs)
    found.append(
        say("Imports and the code before fit: {time} at most.", time=seconds_words(before_s))
    )
    tasks = [one.measurement.task for one in told]
    notes = dict.fromkeys(note_words(note, one.retreats) for one in tasks for note in one.notes)
    return [*found, *map(sentence, notes)]


def steps(told: Sequence[MeasurementReport], runs: Sequence[ShownRun]) -> Finding:
    """Return how far the runs agree."""
    medians_s = [one.median_s for one in runs]
    if len(told) == 2:
        heading = say("How the two are spread")
    elif len(runs) == 1:
        heading = say("One run only")
    else:
        spread = max(medians_s) / min(medians_s) - 1.0
        heading = say(
            "The runs agree within {share}"
            if spread <= AGREEING_RATIO
            else "The runs differ by up to {share}",
            share=_percent(spread),
        )
    return Finding(
        heading=heading,
        lead=say(
            "Each row is a fresh process, each dot the mean of a few steps that followed each "
            "other. A run counts with its median; the bar below is the 95 % interval of the median "
            "over runs."
        ),
    )


def over_time(runs: Sequence[ShownRun]) -> Finding:
    """Tell where the warm-up ends."""
    found = sum(one.steady for one in runs)
    steps_out = sorted(sum(one.run.steps_per_sample[: one.start]) for one in runs)
    if found == len(runs) and steps_out[-1] == 0:
        heading = say("Every run was steady after its first step")
    elif found == len(runs):
        heading = say(
            "Every run found its steady state, after {steps} at most",
            steps=plural(steps_out[-1], "step"),
        )
    else:
        heading = say(
            "{count} of {runs} found a steady state", count=found, runs=plural(len(runs), "run")
        )
    lead = [
        say(
            "The first step stands apart. Of what follows, the steady state begins where the last "
            "change of level ends; only the tinted part counts."
        )
    ]
    if found < len(runs):
        lead.append(
            say(
                "A run without a steady state counts only where none has one: with its second half."
            )
        )
    return Finding(heading=heading, lead=joined(lead))


def telemetry(told: Sequence[MeasurementReport], runs: Sequence[ShownRun]) -> Finding:
    """Return what the sampling is, and what it cost."""
    recorded = [one.run.telemetry for one in runs if one.run.telemetry.at_s]
    if not recorded:
        return Finding(
            heading=say("No telemetry was recorded"), lead=say("The runs were too short for it.")
        )
    busy = [one.summary.utilisation_ratio for one in told]
    known = [_percent(share) for share in busy if share is not None]
    return Finding(
        heading=say("The GPU was busy {shares} of the steady time", shares=listed(known))
        if known
        else say("What the machine did meanwhile"),
        lead=say(
            "About every {seconds:g} s, from outside, a side thread asked about the card and the "
            "processes and the disk. It took {share} of one CPU at most."
            if any(one.cards for one in recorded)
            else "About every {seconds:g} s, from outside, a side thread asked about the processes "
            "and the disk; there was no card to watch. It took {share} of one CPU at most.",
            seconds=recorded[0].interval_s,
            share=_percent(max(one.cost_ratio for one in recorded)),
        ),
    )


def _percent(ratio: float) -> str:
    number = f"{100 * ratio:.2g}" if ratio < 1.0 else f"{100 * ratio:,.0f}"
    return say("{share} %", share=number)
