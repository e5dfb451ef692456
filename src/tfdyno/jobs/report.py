"""Join what the steps of a project's run brought, and set it beside its other runs."""

from __future__ import annotations

import contextlib
import itertools
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import tfdyno
from tfdyno.core.codec import from_json, read_toml
from tfdyno.core.errors import TfdynoError
from tfdyno.core.project import ANSWER, DOCUMENT, LOG, PART, StepRun
from tfdyno.core.project_report import Gained, ProjectReport, RunsCompared, RunTold, StepTold
from tfdyno.jobs.runs import PROJECT_FILE, run_named, runs_of
from tfdyno.model import run_gain
from tfdyno.model.comparison import compare
from tfdyno.model.steady_part import run_medians_s
from tfdyno.model.summary import summary
from tfdyno.view.bench_document import Told, measurement_of
from tfdyno.view.key_figures import key_figures, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.measurement import Comparison, Measurement
    from tfdyno.core.project import ProjectRun
    from tfdyno.core.project_report import State
    from tfdyno.store.project_history import ProjectHistory

MOST_LINES, MOST_LOG_BYTES = 12, 4096
"""Of the end of a log."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
MOST_RUNS = 6
"""Columns of the history."""


def report(
    history: ProjectHistory, *, run: str = "", against: str = "", most: int = MOST_RUNS
) -> ProjectReport:
    """The joined answer of one run, and what changed since the runs before it.

    Args:
        history: Of the project.
        run: Beginning of an id; empty: the newest.
        against: Likewise, of the run to compare with; empty: of each shown run the one before it.
        most: Runs that are set side by side.

    Raises:
        UsageError: There is no history, or no such run.
    """
    runs = runs_of(history)
    shown = run_named(runs, run)
    own = [one for one in runs if one.project == shown.project]
    base = run_named(runs, against) if against else None
    place = own.index(shown)
    columns = list(reversed(own[place : place + most]))
    if base is not None and base not in columns:
        columns = [base, *columns[1 if len(columns) == most else 0 :]]
    told = [tell(history, one, run_before(runs, one)) for one in columns]
    by_id = {one.run.id: one for one in told}
    pairs = [(by_id[base.id], by_id[shown.id])] if base and base.id != shown.id else []
    if not against:
        pairs = list(itertools.pairwise(told))[::-1]
    return ProjectReport(
        folder=str(history.folder),
        told=by_id[shown.id],
        history=tuple(told),
        run_count=len(own),
        compared=tuple(compared(*pair) for pair in pairs),
        made_at=datetime.now(tz=UTC).isoformat(timespec="seconds"),
        tfdyno=tfdyno.__version__,
    )


def tell(history: ProjectHistory, run: ProjectRun, before: ProjectRun | None = None) -> RunTold:
    """A run with what the documents of its steps say.

    Args:
        history: Of the project.
        run: To be told.
        before: The run before it, for what has changed since; None: there is none.
    """
    old = {one.step: one for one in before.steps if one.key} if before else {}
    steps = [_step(history, one) for one in (*run.steps, *_not_reached(history, run))]
    return RunTold(
        run=run,
        steps=tuple(_since(one, old[one.run.step]) if one.run.step in old else one
                    for one in steps),
    )  # fmt: skip


def _not_reached(history: ProjectHistory, run: ProjectRun) -> list[StepRun]:
    """Steps that the project's file names and the newest run, which ended early, did not come to.

    Of older runs it is not known: the file may have had other steps then.
    """
    if run.status not in ("failed", "stopped") or history.run().id != run.id:
        return []
    try:
        named = read_toml(history.folder.parent / PROJECT_FILE).get("steps")
    except TfdynoError:
        return []  # it has another name, or is gone: nobody knows what was to come
    known = {one.step for one in run.steps}
    return [
        StepRun(step=name, command=str(one.get("command", "")), status="stopped")
        for name, one in (named.items() if isinstance(named, dict) else ())
        if name not in known and isinstance(one, dict)
    ]


def _since(one: StepTold, old: StepRun) -> StepTold:
    return replace(one, before=old.status, changed=run_gain.step_changes(old, one.run))


def run_before(runs: Sequence[ProjectRun], run: ProjectRun) -> ProjectRun | None:
    """The run of the same project before this one; None: it is the first."""
    own = [one for one in runs if one.project == run.project]
    place = own.index(run) + 1
    return own[place] if place < len(own) else None


def compared(before: RunTold, after: RunTold) -> RunsCompared:
    """What changed from one run to another, and what each figure that both have gained by it."""
    first = {one.run.step: one for one in before.steps}
    found, notes = list[Gained](), list[str]()
    for step in after.steps:
        old = first.get(step.run.step)
        if old is None or not (old.run.key and step.run.key) or old.run.key == step.run.key:
            continue
        for run, side in ((before, old), (after, step)):
            notes += [f"{side.run.step} of {run.run.id}: {side.trouble}"] if side.trouble else []
        found += _gained(old, step)
    return RunsCompared(
        before=before.run.id,
        after=after.run.id,
        changes=run_gain.changes(before.run, after.run),
        gained=tuple(found),
        notes=tuple(notes),
    )


def _gained(old: StepTold, new: StepTold) -> Iterator[Gained]:
    before = {(one.name, one.of): one for one in old.figures}
    sides = _measurements(old, new)
    for figure in new.figures:
        other = before.get((figure.name, figure.of))
        if other is None or not figure.better:
            continue
        if sides and figure.name == "step":
            continue  # the same as the throughput, of one batch
        if sides and figure.name == "throughput":
            yield run_gain.gained_bench(new.run.step, (other, figure), sides)
        else:
            yield run_gain.gained(new.run.step, other, figure)


def _measurements(old: StepTold, new: StepTold) -> tuple[Measurement, Measurement] | None:
    """Both with their samples, where both are a bench that can be read."""
    if old.kind != "bench" or new.kind != "bench":
        return None
    try:
        return measurement_of(old.document), measurement_of(new.document)
    except TfdynoError:
        return None


def _step(history: ProjectHistory, step: StepRun) -> StepTold:
    document, state, trouble = _document(history, step)
    kind = kind_of(step.command, document)
    log, lines = _log(history, step)
    return StepTold(
        log=log,
        last_lines=lines,
        run=step,
        kind=kind,
        state=state,
        trouble=trouble,
        answer=step.headline,
        figures=key_figures(kind, document),
        document=document,
    )


def _log(history: ProjectHistory, step: StepRun) -> tuple[str, tuple[str, ...]]:
    """Where a step that did not come to its end wrote what it told, and the end of that."""
    if not step.output or step.status not in ("failed", "stopped"):
        return "", ()
    for output in (f"{step.output}{PART}", step.output):
        path = history.folder / output / LOG
        with contextlib.suppress(OSError):
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - MOST_LOG_BYTES))
                text = file.read().decode(errors="replace")
            lines = [_shown(line) for line in text.split("\n")]
            return f"{output}/{LOG}", tuple(filter(None, lines))[-MOST_LINES:]
    return "", ()


def _shown(line: str) -> str:
    """What of a line is left on a screen, without what would move the cursor or colour it."""
    last = _ANSI.sub("", line).rstrip().rpartition("\r")[2]
    return "".join(one for one in last if one.isprintable())


def _document(history: ProjectHistory, step: StepRun) -> tuple[dict[str, Any], State, str]:
    """What the step's command printed, whether it is there, and why it is not."""
    if not step.output or step.status in ("running", "stopped"):
        return {}, "none", ""
    folder = history.output(step)
    path = folder / DOCUMENT
    if step.status == "failed":  # a gate that was not passed leaves an answer, a crash does not
        places = (path, folder.with_name(f"{folder.name}{PART}") / ANSWER)
        path = next((one for one in places if one.exists() and one.stat().st_size), path)
        if not path.exists():
            return {}, "none", ""
    try:
        raw = from_json(path.read_bytes(), object, where=DOCUMENT)
    except FileNotFoundError:
        gone = "its output" if not path.parent.exists() else DOCUMENT
        return {}, "gone", f"{gone} was deleted"
    except OSError as error:
        return {}, "unreadable", f"{DOCUMENT} cannot be read: {error.strerror or error}"
    except TfdynoError as error:
        is_cut = step.status == "failed"  # a child that was killed while it printed
        return {}, "none" if is_cut else "unreadable", "" if is_cut else str(error).rstrip(".")
    if not isinstance(raw, dict):
        return {}, "unreadable", f"{DOCUMENT} holds no object"
    return raw, "whole", ""


def benches(told: RunTold) -> dict[str, tuple[list[Told], Comparison | None]]:
    """By name of the step, the measurements of every bench with what follows from their samples.

    One that cannot be read is left out; its key figures come from its document all the same.
    """
    found = {}
    for step in told.steps:
        if step.kind != "bench" or not step.document:
            continue
        with contextlib.suppress(TfdynoError, ValueError, ArithmeticError):
            sides = [step.document, *filter(None, (step.document.get("against"),))]
            measured = [measurement_of(one) for one in sides]
            read = [Told(measurement=one, summary=summary(one), medians_s=run_medians_s(one.runs))
                    for one in measured]  # fmt: skip
            both = compare(*measured) if len(measured) == 2 else None
            found[step.run.step] = (read, both)
    return found
