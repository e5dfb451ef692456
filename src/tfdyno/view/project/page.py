"""The joined page of a project: its answer, a section per step, its history; one HTML file."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.view.base.template import page
from tfdyno.view.project.document import report_document
from tfdyno.view.project.figure_project import runs_figures
from tfdyno.view.project.headings import headline
from tfdyno.view.project.sections import step_section
from tfdyno.words.base.amounts import capital
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.project.answers import head
from tfdyno.words.project.report import (
    changes_words,
    duration_words,
    gained_words,
    run_sentence,
    status_words,
    titled_words,
    when,
)

if TYPE_CHECKING:
    from tfdyno.core.project.project import ProjectRun
    from tfdyno.core.project.report import ProjectReport, RunsCompared, StepTold
    from tfdyno.view.project.sections import Benches

_UNIT = re.compile(r"(\d) (?=(?:samples|requests)/s|ms)")
"""Between a number and its unit no line breaks."""


def project_page(report: ProjectReport, benches: Benches) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript.

    Args:
        report: The answer.
        benches: By name of the step, what is read back of a bench of the told run.
    """
    told = report.told
    return page(
        "project",
        report_document(report, every=False),
        reference=told.run.project,
        setup=(f"run {told.run.id}", *filter(None, (duration_words(told.run),))),
        date=when(told.run.started_at),
        headline=_UNIT.sub("\\1\u00a0", headline(told).rstrip(".")),
        answer=run_sentence(told),
        head=head(told),
        gains=_best(report),
        sections=tuple(step_section(one, benches) for one in told.steps if one.reached),
        waiting=[one.run.step for one in told.steps if not one.reached],
        is_going_on=told.run.status == "running",
        logs={f"step-{one.run.step}": one for one in told.steps if one.last_lines},
        runs=[_column(one.run, report)
                 for one in report.history],
        rows=_rows(report),
        drawn=runs_figures(report.history, told.run.id),
        compared=[_pair(one) for one in report.compared],
        run_count=report.run_count,
        commands=_commands(report),
        folder=report.folder,
        version=report.tfdyno,
        made_at=when(report.made_at),
    )  # fmt: skip


def _column(run: ProjectRun, report: ProjectReport) -> dict[str, Any]:
    return {
        "id": run.id,
        "when": when(run.started_at),
        "status": "done" if run.status == "finished" else run.status,
        "shown": run.id == report.told.run.id,
    }


def _rows(report: ProjectReport) -> list[tuple[str, list[dict[str, str]]]]:
    """Return a row per step that any of the runs has, a cell per run."""
    names = dict.fromkeys(step.run.step for one in report.history for step in one.steps)
    return [
        (name, [_cell(next((s for s in one.steps if s.run.step == name), None))
                for one in report.history])
        for name in names
    ]  # fmt: skip


def _cell(step: StepTold | None) -> dict[str, str]:
    """Return status, duration and key figure of a step in one run."""
    if step is None:
        return {"status": "–", "mark": "none", "took": "", "figure": "", "trouble": ""}
    status = status_words(step)
    took = seconds_words(step.run.duration_s) if status in ("done", "failed", "stopped") else ""
    return {
        "status": status,
        "mark": status if step.reached else "none",
        "took": took if step.run.duration_s else "",
        "figure": titled_words(step.figures[0]) if step.figures else "",
        "trouble": step.trouble,
    }


def _pair(found: RunsCompared) -> dict[str, Any]:
    return {
        "title": f"From {found.before} to {found.after}",
        "changes": changes_words(found.changes),
        "gained": [(one.step, gained_words(one), one.verdict) for one in found.gained],
        "notes": [f"{capital(one)}." for one in found.notes],
    }


def _best(report: ProjectReport) -> list[str]:
    """Say what the newest comparison surely found by the samples of benches, for the page's head.

    Other intervals do not hold what the machine did between two runs.
    """
    if not report.compared:
        return []
    newest = report.compared[0]
    return [
        f"Since {one.since or newest.before}, {one.step}: {gained_words(replace(one, since=''))}."
        for one in newest.gained
        if one.way == "samples" and one.verdict in ("better", "worse")
    ]


def _commands(report: ProjectReport) -> list[tuple[str, str]]:
    place = shlex.quote(report.folder)
    run = report.told.run.id
    found = [(f"tfdyno runs show {run} --project {place}", "Every step with its command and key")]
    if report.compared:
        pair = report.compared[0]
        compared = f"tfdyno runs compare {pair.before} {pair.after} --project {place}"
        found.append((compared, "What changed, and what it gained"))
    return [*found, (f"tfdyno runs rm --keep 5 --project {place}", "Forget all but the newest 5")]
