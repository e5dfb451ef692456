"""A project's answer as terminal text: sentences first, then its steps, then its history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.view.base.text import WIDTH, paint, pairs, shorten, table, telling_width, wrapped
from tfdyno.words.base.amounts import listed, plural
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.project.answers import answer, head
from tfdyno.words.project.report import (
    changes_words,
    duration_words,
    error_words,
    gained_words,
    run_sentence,
    status_words,
    step_count,
    step_counts,
    titled_words,
    when,
    why_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.project.project import ProjectRun
    from tfdyno.core.project.report import ProjectReport, Removal, RunsCompared, RunTold, StepTold

_COLOURS = {
    "failed": "red", "stopped": "yellow", "not reached": "dim", "to come": "dim", "running": "cyan",
    "done": "green", "reused": "green",
}  # fmt: skip
_BULLET = "  "
_LOG_LINES = 4
"""The lines of the log of a step that failed."""
_NAME = 20
"""Columns that a step's name may take in a table."""
_WIDE = 100
"""Columns from which a table of steps has their commands as well."""


def report_text(report: ProjectReport, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the head of the page and a table of steps, then what changed since the runs before."""
    told = report.told
    title = f"{told.run.project}, run {told.run.id} of {when(told.run.started_at)}"
    first = f"{paint(title, 'bold', colour=colour)}\n{wrapped(run_sentence(told), width=width)}"
    found = [wrapped(f"{name}: {text}", width=width, first=_BULLET, rest="    ")
             for name, text in head(told)]  # fmt: skip
    blocks = [first, "\n".join(found), _steps(told, width, colour), _troubles(told, width)]
    blocks += [compared_text(one, width=width, colour=colour) for one in report.compared]
    if report.run_count == 1:
        blocks.append("It is the project's only run: there is nothing to compare with.")
    return "\n\n".join(filter(None, blocks))


def _steps(told: RunTold, width: int, colour: bool) -> str:
    # A long name would leave no room for what was found.
    widest = max(_NAME, telling_width([one.run.step for one in told.steps]))
    rows = [
        (
            shorten(one.run.step, widest),
            one.run.command,
            paint(status_words(one), _COLOURS[status_words(one)], colour=colour),
            _took(one),
            _key_figure(one, width),
        )
        for one in told.steps
    ]
    columns = (0, 1, 2, 3, 4) if width >= _WIDE else (0, 2, 3, 4)
    headers = ("step", "command", "", "took", "key figure")
    return table(
        [headers[at] for at in columns],
        [[row[at] for at in columns] for row in rows],
        align="".join("<<<><"[at] for at in columns),
        width=width,
        elastic=len(columns) - 1,
        colour=colour,
    )


def _key_figure(one: StepTold, width: int) -> str:
    """Write what a step stands for; with little room the interval is left to the sentences."""
    if not one.figures:
        return ""
    first = one.figures[0]
    return titled_words(first if width >= _WIDE else replace(first, low=None, high=None))


def _took(one: StepTold) -> str:
    """Return how long it took to make; empty where it was not made in this run."""
    made = one.run.duration_s and one.run.status != "reused"
    return seconds_words(one.run.duration_s) if made else ""


def _troubles(told: RunTold, width: int) -> str:
    lines = []
    for one in told.steps:
        if text := error_words(one):
            lines.append(wrapped(f"! {one.run.step}: {text}", width=width, rest="  "))
            new = [line for line in one.last_lines if line not in text]
            lines += [f"    {line}" for line in new[-_LOG_LINES:]]
    return "\n".join(lines)


def compared_text(found: RunsCompared, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return what changed from one run to the next, and what each figure gained by it."""
    title = paint(f"From {found.before} to {found.after}", "bold", colour=colour)
    said = [f"{steps}: {text}" for steps, text in changes_words(found.changes)]
    said = said or ["nothing that a step rests on has changed"]
    gains = [f"{one.step}: {gained_words(one)}" for one in found.gained]
    parts = [title, *_list("changed", said, width), *_list("gained", gains, width),
             *_list("not told", list(found.notes), width)]  # fmt: skip
    return "\n".join(parts)


def _list(name: str, lines: Sequence[str], width: int) -> list[str]:
    return [
        wrapped(line, width=width, first=f"  {name if at == 0 else '':<10}", rest=" " * 14)
        for at, line in enumerate(lines)
    ]


def runs_text(runs: Sequence[ProjectRun], *, width: int = WIDTH, colour: bool = False) -> str:
    """Return a line per run, the newest first."""
    projects = len({one.project for one in runs}) > 1
    rows = []
    for one in runs:
        done, reused, failed = step_counts(one)
        status = "done" if one.status == "finished" else one.status
        rows.append(
            (
                one.id,
                *((one.project,) if projects else ()),
                when(one.started_at),
                paint(status, _COLOURS[status], colour=colour),
                f"{done}",
                f"{reused}",
                f"{failed}",
                f"{step_count(one)}",
                duration_words(one),
            )
        )
    headers = ("run", *(("project",) if projects else ()), "when (UTC)", "", "done", "reused",
               "failed", "steps", "took")  # fmt: skip
    align = f"{'<' * (len(headers) - 5)}>>>>>"
    return table(headers, rows, align=align, width=width, spare=(len(headers) - 2,), colour=colour)


def run_text(told: RunTold, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return one run, step by step: why it was made or reused, its key, its output, its error."""
    run = told.run
    title = f"{run.id}  {run.project}, {when(run.started_at)} UTC, tfdyno {run.tfdyno}"
    blocks = [f"{paint(title, 'bold', colour=colour)}\n{wrapped(run_sentence(told), width=width)}"]
    blocks += [_step(one, width, colour) for one in told.steps]
    return "\n\n".join(blocks)


def _step(one: StepTold, width: int, colour: bool) -> str:
    step, status = one.run, status_words(one)
    took = f" in {words}" if (words := _took(one)) else ""
    title = f"{paint(step.step, 'bold', colour=colour)}  " + paint(
        f"{status}{took}", _COLOURS[status], colour=colour
    )
    is_other = one.state in ("gone", "remade")
    output = f"{step.output} ({one.trouble})" if is_other else step.output
    return f"{title}\n" + pairs(
        [
            ("command", " ".join(step.words) or step.command),
            ("why", why_words(one)),
            ("key", step.key),
            ("output", output),
            ("log", one.log),
            ("found", answer(one)),
            ("figures", "; ".join(titled_words(f)
                                  for f in one.figures[:6])),
            ("error", step.error or (one.trouble if one.state == "unreadable" else "")),
        ],
        width=width,
    )  # fmt: skip


def removal_text(found: Removal, *, removed: bool, width: int = WIDTH) -> str:
    """Return what goes, or went."""
    if found.is_empty:
        return "\n".join(["There is no run to remove.", *_left(found, width)])
    verb = "Removed" if removed else "Would remove"
    counts = [(len(found.runs), "run"), (len(found.outputs), "output")]
    said = [plural(count, noun) for count, noun in counts if count]
    said += [f"{plural(len(found.unnamed), 'output')} that no run names"] if found.unnamed else []
    stay = plural(len(found.kept_outputs), "output")
    kept = f"; {stay} of theirs stay, which other runs name" if found.kept_outputs else ""
    note = f"{verb} {listed(said)}, {format_bytes(found.freed_bytes)}{kept}."
    lines = [f"  {one.id}  {when(one.started_at)}, {one.status}" for one in found.runs]
    lines += [f"  {one}  no run names it" for one in found.unnamed]
    return "\n".join([wrapped(note, width=width), *lines, *_left(found, width)])


def _left(found: Removal, width: int) -> list[str]:
    return [wrapped(f"! {one}", width=width, rest="  ") for one in found.left]
