"""Join what the steps of a project's run brought, and set it beside its other runs."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.clock import now
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.base.version import VERSION
from tfdyno.core.measure.measurement_document import MeasurementReport, measurement_of
from tfdyno.core.project.project import StepRun
from tfdyno.core.project.report import DONE, Gained, ProjectReport, RunsCompared, RunTold
from tfdyno.jobs.project._report_documents import told_step
from tfdyno.jobs.project.runs import run_named, runs_of
from tfdyno.model.choose import run_gain
from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.steady_part import run_medians_s
from tfdyno.model.measure.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.measure.measurement import Comparison, Measurement
    from tfdyno.core.project.project import ProjectRun, Status
    from tfdyno.core.project.report import StepTold
    from tfdyno.store.project_history import ProjectHistory

MOST_RUNS = 6
"""Columns of the history."""


def report(
    history: ProjectHistory, *, run: str = "", against: str = "", most: int = MOST_RUNS
) -> ProjectReport:
    """Return the joined answer of one run, and what changed since the runs before it.

    Args:
        history: Of the project.
        run: Beginning of an id; empty: the newest.
        against: Likewise, of an older run to compare with; empty: of each shown run the one before.
        most: Runs that are set side by side.

    Raises:
        UsageError: There is no history, no such run, or ``against`` is not older.
    """
    runs = runs_of(history)
    shown = run_named(runs, run)
    base = run_named(runs, against) if against else None
    own = _of_its_project(runs, shown)
    place = own.index(shown)
    if base is not None:
        _check_older(runs, base, shown)
    columns = own[place : place + most]
    if base is not None and base not in columns:
        columns = (*columns[: most - 1], base)
    told = tuple(tell(history, one, own) for one in columns)
    after = columns[:-1] if base is None else (shown,)
    return ProjectReport(
        folder=str(history.folder),
        told=told[0],
        history=told,
        run_count=len(own),
        compared=tuple(compare_runs(history, one, runs, base) for one in after),
        made_at=now(),
        tfdyno=VERSION,
    )


def _check_older(runs: Sequence[ProjectRun], base: ProjectRun, shown: ProjectRun) -> None:
    if runs.index(base) <= runs.index(shown):
        raise UsageError(
            f"run {base.id} is not older than {shown.id}",
            remedy="tfdyno runs compare takes two runs in any order",
        )


def tell(history: ProjectHistory, run: ProjectRun, runs: Sequence[ProjectRun]) -> RunTold:
    """Return a run with what the documents of its steps say.

    Args:
        history: Of the project.
        run: To be told, one of ``runs``.
        runs: Newest first.
    """
    own = _of_its_project(runs, run)
    place = own.index(run)
    tried_later = {step.output for one in own[:place] for step in one.steps}
    steps = []
    for step in (*run.steps, *_not_reached(run, own)):
        told = told_step(history, step, is_last=step.output not in tried_later)
        steps.append(_since(told, own[place + 1 :]))
    return RunTold(run=run, steps=tuple(steps))


def _not_reached(run: ProjectRun, own: Sequence[ProjectRun]) -> list[StepRun]:
    """Return steps that the run has not come to; while it goes on they are to come."""
    known = {one.step for one in run.steps}
    commands = {step.step: step.command for one in reversed(own) for step in one.steps}
    status: Status = "running" if run.status == "running" else "stopped"
    return [StepRun(step=name, command=commands.get(name, ""), status=status)
            for name in run.chosen if name not in known]  # fmt: skip


def _since(one: StepTold, earlier: Sequence[ProjectRun]) -> StepTold:
    """Add how the step stood when it was last looked at, and what has changed since."""
    looks = (old for run in earlier for old in run.steps if old.step == one.run.step and old.key)
    old = next(looks, None)
    if old is None:
        return one
    return replace(one, before=old.status, changed=run_gain.step_changes(old, one.run))


def _of_its_project(runs: Sequence[ProjectRun], run: ProjectRun) -> tuple[ProjectRun, ...]:
    return tuple(one for one in runs if one.project == run.project)


def compare_runs(
    history: ProjectHistory, after: ProjectRun, runs: Sequence[ProjectRun],
    base: ProjectRun | None = None,
) -> RunsCompared:  # fmt: skip
    """Return what changed up to a run, and what each figure gained by it.

    Each step is compared with the run before, or else with the newest one before that in which it
    came to its end: a run that failed, or was asked for other steps, hides nothing.

    Args:
        history: Of the project.
        after: The later run, one of ``runs``.
        runs: Newest first.
        base: Begin here instead of at the run before.

    Raises:
        UsageError: No run was before it.
    """
    own = _of_its_project(runs, base or after)
    earlier = own[own.index(base) :] if base else own[own.index(after) + 1 :]
    if not earlier:
        raise UsageError(f"{after.id} is the first run of its project", remedy="name two runs")
    before, bases = earlier[0], run_gain.bases(earlier)
    known = {step.step for one in earlier for step in one.steps if step.key}
    found, notes = list[Gained](), list[str]()
    for step in after.steps:
        since, old = bases.get(step.step, ("", step))
        if step.status not in DONE or not run_gain.is_remade(old, step):
            continue
        sides = told_step(history, old), told_step(history, step)
        for name, side in zip((since, after.id), sides, strict=True):
            notes += [f"{step.step} of {name}: {side.trouble}"] if not side.document else []
        found += [replace(one, since=since) for one in gained_between(*sides)]
    return RunsCompared(
        before=before.id,
        after=after.id,
        changes=tuple(replace(one, since="") if one.since == before.id else one
                      for one in run_gain.changes(bases, after, known)),
        gained=tuple(replace(one, since="") if one.since == before.id else one for one in found),
        notes=tuple(notes),
    )  # fmt: skip


def gained_between(old: StepTold, new: StepTold) -> Iterator[Gained]:
    """Yield what became of each figure that two steps share; both with their documents."""
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
    """Return both with their samples, where both are a bench that can be read."""
    if old.kind != "bench" or new.kind != "bench":
        return None
    try:
        return measurement_of(old.document), measurement_of(new.document)
    except TfdynoError:
        return None


def benches(told: RunTold) -> dict[str, tuple[list[MeasurementReport], Comparison | None]]:
    """Return the measurements of every bench by step, with what follows from their samples.

    One that cannot be read is left out; its key figures come from its document all the same.
    """
    found = {}
    for step in told.steps:
        if step.kind != "bench" or not step.document:
            continue
        with contextlib.suppress(TfdynoError, ValueError, ArithmeticError):
            sides = [step.document, *filter(None, (step.document.get("against"),))]
            measured = [measurement_of(one) for one in sides]
            read = [
                MeasurementReport(
                    measurement=one, summary=summary(one), medians_s=run_medians_s(one.runs)
                )
                for one in measured
            ]
            both = compare(*measured) if len(measured) == 2 else None
            found[step.run.step] = (read, both)
    return found
