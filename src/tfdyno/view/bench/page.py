"""The page of a bench: one measurement or an A/B, as one self-contained HTML file."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.measure.measurement_document import document_of
from tfdyno.view.base.template import page
from tfdyno.view.bench import findings as bench_findings
from tfdyno.view.bench import tables as bench_tables
from tfdyno.view.bench.figure_ratio import ratio_figure
from tfdyno.view.bench.figure_samples import samples_figure
from tfdyno.view.bench.figure_steps import steps_figure
from tfdyno.view.bench.figure_telemetry import telemetry_figure
from tfdyno.view.bench.runs import shown_runs
from tfdyno.view.choose.sections import Section, section
from tfdyno.words.base.language import say
from tfdyno.words.bench.comparison import side_names
from tfdyno.words.bench.measurement import batch_words, recipe_words, task_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import Comparison
    from tfdyno.core.measure.measurement_document import MeasurementReport


def bench_page(
    told: Sequence[MeasurementReport], comparison: Comparison | None = None, *, kept_in: str = ""
) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript.

    Args:
        told: One measurement, or the two sides of a comparison.
        comparison: Of the two.
        kept_in: The folder of the results, for the commands that are shown; empty: unknown.

    Raises:
        ValueError: There are not one or two measurements, or a run without samples.
    """
    if len(told) != (1 if comparison is None else 2):
        raise ValueError(f"need one measurement, or two and their comparison, got {len(told)}")
    runs = shown_runs(told)
    return page(
        "bench",
        document_of(told, comparison),
        reference=told[0].measurement.task.reference,
        setup=_setup(told),
        date=told[0].measurement.created_at[:10],
        headline=bench_findings.headline(told, comparison),
        answer=bench_findings.answer(told, comparison),
        ratio=ratio_figure(comparison) if comparison else None,
        differences=comparison.differences if comparison else (),
        boxes=bench_findings.boxes(told),
        doubts=bench_findings.doubts(told),
        checked=bench_findings.checked(told),
        left_out=bench_findings.left_out(told, runs),
        sections=_sections(told),
        sides=("A", "B") if comparison else ("",),
        tables=(
            ("recipe", say("Recipe"), say("Settings of the run"), bench_tables.recipe_rows(told)),
            (
                "task",
                say("Task"),
                say("What was run, by which protocol"),
                bench_tables.task_rows(told),
            ),
            (
                "place",
                say("Environment"),
                say("Where it was measured"),
                bench_tables.environment_rows(told),
            ),
        ),
        raw=bench_tables.raw_rows(told),
        commands=_commands(told, kept_in),
        version=told[0].measurement.environment.tfdyno,
        protocol=told[0].measurement.protocol.version,
    )


def _setup(told: Sequence[MeasurementReport]) -> tuple[str, ...]:
    """Return the line at the top: what was run, and what B has that A has not."""
    one = told[0].measurement
    found = [one.task.title, batch_words(one.task), *task_parts(one)[:2]]
    if len(told) == 2:
        names = [recipe_words(side.measurement.recipe) or say("as it is") for side in told]
        letters = side_names(*(side.measurement.task for side in told))
        found += [f"{letter}: {side.measurement.label or name}"
                  for letter, side, name in zip(letters, told, names, strict=True)]  # fmt: skip
    return tuple(found)


def _sections(told: Sequence[MeasurementReport]) -> tuple[Section, ...]:
    runs = shown_runs(told)
    spread, machine = bench_findings.steps(told, runs), bench_findings.telemetry(told, runs)
    return (
        section(
            "steps", say("Step times"), spread, steps_figure(told), topic=say("Time of a step")
        ),
        section("time", say("Over time"), bench_findings.over_time(runs), samples_figure(told)),
        section("telemetry", say("Telemetry"), machine, telemetry_figure(told)),
    )


def _commands(told: Sequence[MeasurementReport], kept_in: str) -> list[tuple[str, str]]:
    reference = shlex.quote(told[0].measurement.task.reference)
    names = [shlex.quote(f"{kept_in or 'RESULTS'}:{one.measurement.id[:6]}") for one in told]
    found = [
        (f"tfdyno bench {reference} --against execution=xla", say("Two settings in turns")),
        (f"tfdyno compare {' '.join(names if len(names) > 1 else [*names, 'OTHER.json'])}",
         say("This result against another")),
        (f"tfdyno bench {reference} --export result.json", say("The raw numbers as a file")),
    ]  # fmt: skip
    return found[1:] if len(told) == 2 else found
