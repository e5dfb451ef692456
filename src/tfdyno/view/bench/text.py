"""A measurement as terminal text: the answer in the first line, then runs, place and doubts."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.measure.measurement_document import metrics_of
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.base.amounts import listed, plural
from tfdyno.words.base.language import say
from tfdyno.words.bench.comparison import side_names, verdict_words
from tfdyno.words.bench.measurement import (
    batch_words,
    device_words,
    energy_words,
    environment_words,
    peak_words,
    rate_words,
    recipe_words,
    seconds_words,
    step_words,
    task_words,
)
from tfdyno.words.bench.told import note_words
from tfdyno.words.train.notes import paragraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import BenchRun, Comparison, Measurement, Summary
    from tfdyno.core.measure.measurement_document import MeasurementReport

_MOST_METRICS = 2
"""Columns of the table of runs that accuracy, loss, ... may take."""


def report_text(
    told: Sequence[MeasurementReport],
    comparison: Comparison | None = None,
    *,
    kept_in: str,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return the whole answer: the comparison of two sides, each side, and what may come next.

    Args:
        told: One measurement, or the two sides of an A/B.
        comparison: Of the two sides.
        kept_in: Folder of the results.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    blocks, names = [], [""]
    if comparison:
        names = list(side_names(told[0].measurement.task, told[1].measurement.task))
        verdict = wrapped(verdict_words(names[0], names[1], comparison), width=width)
        blocks.append(paint(verdict, "bold", colour=colour))
        if comparison.verdict != "not_comparable":
            blocks[0] += f"\n{wrapped(comparison.reason, width=width)}"
    for name, one in zip(names, told, strict=True):
        beside = told[0] if one is not told[0] else None
        blocks.append(bench_text(one, name=name, beside=beside, width=width, colour=colour))
    blocks.append(next_words([one.measurement for one in told], kept_in, width))
    return "\n\n".join(blocks)


def bench_text(
    told: MeasurementReport,
    *,
    name: str = "",
    beside: MeasurementReport | None = None,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return one measurement in full.

    Args:
        told: What was measured, and what follows from it.
        name: ``A`` or ``B``, or more than that, where there are two.
        beside: The one told above it: facts that are the same are not repeated.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    one, summary = told.measurement, told.summary
    answer = f"{name}: {headline(one, summary)}" if name else headline(one, summary)
    mark = f"{paint('!', 'yellow', colour=colour)} "
    doubts = [
        wrapped(doubt.text, width=width, first=mark, rest="  ") for doubt in summary.instabilities
    ]
    known = dict(facts(beside.measurement, beside.summary)) if beside else {}
    new = [(key, words) for key, words in facts(one, summary) if known.get(key) != words]
    blocks = [
        paint(wrapped(answer, width=width), "bold", colour=colour),
        "\n".join(doubts),
        runs_table(one, told.medians_s, width=width, colour=colour),
        pairs([*new, *((say("costs"), words) for words in told.costs)], width=width),
    ]
    return "\n\n".join(block for block in blocks if block)


def headline(one: Measurement, summary: Summary) -> str:
    """Return the answer: time of a step with its interval, speed, device."""
    task = one.task
    name = f"{one.label}: {task.title}" if one.label else task.title
    best, bounds = step_words(summary.median_s, summary.interval_s)
    return say(
        "{name} at {batch} on {device}: {best} a step ({bounds}), {rate}.",
        name=name,
        batch=batch_words(task),
        device=device_words(one.environment),
        best=best,
        bounds=bounds,
        rate=rate_words(task, summary.throughput_per_s),
    )


def runs_table(
    one: Measurement, medians_s: Sequence[float], *, width: int = WIDTH, colour: bool = False
) -> str:
    """Write a line per run: its median, how much counts, what came before, memory, metrics."""
    metrics = list(metrics_of(one))[:_MOST_METRICS]
    headers = [
        say("run||number"), say("step"), say("samples||of time"), say("steps"), say("warm-up"),
        say("first step"), say("memory||of a run"), *metrics,
    ]  # fmt: skip
    rows = [
        [str(number), *_run_cells(run, median_s), *(_metric(run, name) for name in metrics)]
        for number, (run, median_s) in enumerate(zip(one.runs, medians_s, strict=True), start=1)
    ]
    return table(headers, rows, align=">" * len(headers), width=width, spare=(6, 3, 4),
                 colour=colour)  # fmt: skip


def next_words(measured: Sequence[Measurement], kept_in: str, width: int = WIDTH) -> str:
    """Say where the results are, and the command that compares them."""
    names = [f"{kept_in}:{one.id[:6]}" for one in measured]
    kept = wrapped(say("Kept as {names}.", names=listed(names)), width=width)
    quoted = [shlex.quote(name) for name in names]
    others = " ".join(quoted) if len(names) > 1 else f"{quoted[0]} OTHER"
    return f"{kept}\n  tfdyno compare {others}"


def _run_cells(run: BenchRun, median_s: float) -> list[str]:
    steps = sum(run.steps_per_sample[run.steady_from :])
    return [
        seconds_words(median_s),
        say("{count} of {all}", count=len(run.steady_s), all=len(run.samples_s)),
        f"{steps:,}",
        f"{sum(run.steps_per_sample[: run.steady_from]):,}",
        seconds_words(run.first_step_s),
        format_bytes(run.peak_memory_bytes),
    ]


def _metric(run: BenchRun, name: str) -> str:
    return significant(run.metrics[name]) if name in run.metrics else "–"


def facts(one: Measurement, summary: Summary) -> list[tuple[str, str]]:
    """List what the numbers rest on, as name and words; empty words: nothing is known."""
    protocol, kind = one.protocol, one.runs[0].memory_kind if one.runs else "process"
    if protocol.epochs:
        length = say("{epochs} each", epochs=plural(protocol.epochs, "epoch"))
    else:
        length = say("at most {time} of steps each", time=seconds_words(protocol.most_s))
    return [
        (say("task"), task_words(one)),
        (say("settings"), recipe_words(one.recipe)),
        (say("first step"), _first(one, seconds_words(summary.first_step_s))),
        (say("memory||of a run"), peak_words(summary.peak_memory_bytes, kind, one.task.backend)),
        ("GPU", energy_words(summary)),
        (say("target"), _target(one)),
        (say("notes"), paragraph(note_words(note, one.task.retreats) for note in one.task.notes)),
        (say("where"), environment_words(one.environment)),
        (
            say("protocol"),
            say(
                "version {version}: a fresh process a run, {length}, the warm-up ends where a "
                "changepoint is found",
                version=protocol.version,
                length=length,
            ),
        ),
    ]


def _first(one: Measurement, time: str) -> str:
    """Return the first step, and what its time holds."""
    kept = sum(run.programs_kept for run in one.runs)
    if not kept:
        return say("{time}, tracing and compiling included", time=time)
    return say(
        "{time}, tracing included; {kept} of {runs} took compiled programs from the cache",
        time=time,
        kept=kept,
        runs=plural(len(one.runs), "run"),
    )


def _target(one: Measurement) -> str:
    protocol = one.protocol
    if not protocol.target_metric:
        return ""
    goal = f"{protocol.target_metric} {significant(protocol.target_value)}"
    reached = [run.seconds_to_target_s for run in one.runs if run.seconds_to_target_s]
    if not reached:
        return say("{goal}: not reached by any run", goal=goal)
    first, last = seconds_words(min(reached)), seconds_words(max(reached))
    return say(
        "{goal}: reached by {count} of {runs} in {time}",
        goal=goal,
        count=len(reached),
        runs=plural(len(one.runs), "run"),
        time=first if first == last else say("{low} to {high}", low=first, high=last),
    )
