"""What the steps of a run printed and told: of that run's own making, never of another's."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_json
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.project.output import FILE as MADE
from tfdyno.core.project.project import ANSWER, DOCUMENT, LOG, PART
from tfdyno.core.project.report import DONE, StepTold
from tfdyno.words.project.key_figures import key_figures, kind_of

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project.project import StepRun
    from tfdyno.core.project.report import State
    from tfdyno.store.project_history import ProjectHistory

MOST_LINES, MOST_LOG_BYTES = 12, 4096
"""How much of the end of a log is read."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SLACK_S = 2.0
"""File systems may keep times in whole or even seconds."""
_REMADE = "its output was made anew by a later run"


def told_step(history: ProjectHistory, step: StepRun, *, is_last: bool = False) -> StepTold:
    """Return a step with what its document says.

    Args:
        history: Of the project.
        step: As its run recorded it.
        is_last: Whether no later run has tried it with the same key: what was begun is then its.
    """
    begun = _begun(history, step) if is_last else None
    document, state, trouble = _whole(history, step) if step.status in DONE else _judged(begun)
    kind = kind_of(step.command, document)
    lines = _last_lines(begun / LOG) if begun else ()
    return StepTold(
        log=f"{step.output}{PART}/{LOG}" if lines else "",
        last_lines=lines,
        run=step,
        kind=kind,
        state=state,
        trouble=trouble,
        answer=step.headline,
        figures=key_figures(kind, document),
        document=document,
    )


def _whole(history: ProjectHistory, step: StepRun) -> tuple[dict[str, Any], State, str]:
    """Return what a step that is done printed: out of its output, else as the history kept it."""
    if not step.stamp:
        return {}, "unreadable", "which making of its output this run had is not known"
    document, state, trouble = _standing(history, step)
    if not document and (kept := history.document(step)):
        document = _parsed(kept)[0]
    return document, state, trouble


def _standing(history: ProjectHistory, step: StepRun) -> tuple[dict[str, Any], State, str]:
    """Return the document in the step's output, where that is still of the run's making."""
    made, path = history.made(step), history.output(step) / DOCUMENT
    if made and made.stamp != step.stamp:
        return {}, "remade", _REMADE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        gone = DOCUMENT if path.parent.exists() else "its output"
        return {}, "gone", f"{gone} was deleted"
    except OSError as error:
        return {}, "unreadable", f"{DOCUMENT} cannot be read: {error.strerror or error}"
    if made is None:
        return {}, "unreadable", f"{MADE} cannot be read: whose its output is is not known"
    document, trouble = _parsed(data)
    return document, "unreadable" if trouble else "whole", trouble


def _judged(begun: Path | None) -> tuple[dict[str, Any], State, str]:
    """Return what a step printed that failed: a gate that was not passed leaves an answer."""
    try:
        document = _parsed((begun / ANSWER).read_bytes())[0] if begun else {}
    except OSError:
        document = {}
    return document, "whole" if document else "none", ""


def _parsed(data: bytes) -> tuple[dict[str, Any], str]:
    """Return the document, and why it is none."""
    try:
        raw = from_json(data, object, where=DOCUMENT)
    except TfdynoError as error:
        return {}, str(error).rstrip(".")
    return (raw, "") if isinstance(raw, dict) else ({}, f"{DOCUMENT} holds no object")


def _begun(history: ProjectHistory, step: StepRun) -> Path | None:
    """Return where a step that did not end wrote, and that was begun in this try of it."""
    if not step.output or step.status not in ("failed", "stopped"):
        return None
    output = history.output(step)
    folder = output.with_name(f"{output.name}{PART}")
    try:
        noted_s = (folder / MADE).stat().st_mtime
        began_s = datetime.fromisoformat(step.started_at).timestamp()
    except (OSError, ValueError):
        return None
    return folder if noted_s >= began_s - _SLACK_S else None


def _last_lines(path: Path) -> tuple[str, ...]:
    """Return the end of a log; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MOST_LOG_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(filter(None, map(_shown, text.split("\n"))))[-MOST_LINES:]


def _shown(line: str) -> str:
    """Return what a screen keeps of a line, without what would move the cursor or colour it."""
    last = _ANSI.sub("", line).rstrip().rpartition("\r")[2]
    return "".join(one for one in last if one.isprintable())
