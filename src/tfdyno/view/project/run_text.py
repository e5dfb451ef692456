"""A project's run as terminal text: the steps in a table, then where their outputs are."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.project.file import FILE
from tfdyno.core.project.project import FIRST, FOLDER, LOG, PART
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project.project import Project, ProjectRun, StepRun

_STYLES = {"finished": "green", "failed": "red", "stopped": "yellow"}
_WORDS = {"finished": "done", "running": "would run"}


def run_text(
    run: ProjectRun, *, folder: Path, dry: bool = False, width: int = WIDTH, colour: bool = False
) -> str:
    """Return the answer of ``tfdyno run``.

    Args:
        run: The run, or what it would be.
        folder: Of the project's file, as typed.
        dry: Whether nothing ran.
        width: Columns of the screen.
        colour: Whether to colour.
    """
    blocks = [wrapped(paint(_head(run, dry=dry), "bold", colour=colour), width=width)]
    rows = [_row(step, dry=dry, colour=colour) for step in run.steps]
    headers = ["step", "status", *([] if dry else ["time"]), "why" if dry else "answer"]
    blocks.append(table(headers, rows, align="<<" if dry else "<<>", width=width,
                        elastic=len(headers) - 1, colour=colour))  # fmt: skip
    ran = [(one.step, one.why) for one in run.steps
           if one.why not in ("", FIRST) and one.status != "reused"]  # fmt: skip
    if ran and not dry:
        blocks.append("Ran again because\n" + pairs(ran, width=width))
    blocks += [_failure(one, folder, width) for one in run.steps if one.status == "failed"]
    outputs = [(one.step, str(folder / FOLDER / one.output)) for one in run.steps
               if one.output and one.status in ("finished", "reused")]  # fmt: skip
    if outputs and not dry:
        blocks.append("Outputs\n" + pairs(outputs, width=width))
    return "\n\n".join(blocks)


def start_text(project: Project, *, width: int = WIDTH) -> str:
    """Return what was written, and what to type next.

    Args:
        project: As it stands in its file.
        width: Columns of the screen.
    """
    steps = [step.name for step in project.steps]
    head = f"Wrote {project.file} with {len(steps)} steps: {', '.join(steps)}."
    run = (
        "tfdyno run"
        if str(project.file) == FILE
        else f"tfdyno run {shlex.quote(str(project.file))}"
    )
    rows = [("look", f"{run} --dry-run"), ("run", run)]
    return f"{wrapped(head, width=width)}\n\n{pairs(rows, width=width)}"


def ended_words(step: StepRun) -> str:
    """Write ``train: done in 34 s: accuracy 0.97``."""
    words = f"{step.step}: {_WORDS.get(step.status, step.status)} in {time_words(step.duration_s)}"
    told = step.error if step.status == "failed" else step.headline
    return f"{words}: {told}" if told else words


def time_words(duration_s: float) -> str:
    """Write ``0.2 s``, ``34 s``, ``5 min 20 s``, ``2 h 5 min``."""
    if duration_s < 10:
        return f"{duration_s:.1f} s"
    minutes, seconds = divmod(round(duration_s), 60)
    if not minutes:
        return f"{seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def _head(run: ProjectRun, *, dry: bool) -> str:
    ran = [one for one in run.steps if one.status != "reused"]
    reused = len(run.steps) - len(ran)
    if dry:
        if not ran:
            return f"{run.project}: nothing would run."
        return f"{run.project}: {plural(len(ran), 'step')} of {len(run.steps)} would run."
    failed = [one.step for one in ran if one.status == "failed"]
    if failed:
        return f"{run.project}: step {failed[0]} failed."
    if not ran:
        return f"{run.project}: nothing has changed; {plural(reused, 'step')} reused."
    return f"{run.project}: {plural(len(ran), 'step')} run, {reused} reused."


def _row(step: StepRun, *, dry: bool, colour: bool) -> list[str]:
    word = _WORDS.get(step.status, step.status)
    style = _STYLES.get(step.status)
    shown = paint(word, style, colour=colour) if style else word
    if dry:
        return [step.step, shown, step.why]
    told = step.headline if step.status != "failed" else ""
    return [step.step, shown, time_words(step.duration_s), told]


def _failure(step: StepRun, folder: Path, width: int) -> str:
    log = folder / FOLDER / f"{step.output}{PART}" / LOG
    return "\n".join([
        wrapped(step.error, width=width),
        wrapped(f"Its log: {log}", width=width),
        "Steps behind it did not run; the same command goes on from here.",
    ])  # fmt: skip
