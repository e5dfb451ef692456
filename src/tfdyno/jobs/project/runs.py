"""The runs of a project: find the folder and a run in it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import read_toml
from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.base.lock import is_held
from tfdyno.core.base.settings import did_you_mean
from tfdyno.core.project.file import FILE, project_name
from tfdyno.core.project.project import FOLDER, LOCK
from tfdyno.probe.base.near import meant
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.project.project import ProjectRun

_LONG = 60
"""Characters of a name that are shown."""


def history_at(place: str | Path | None) -> ProjectHistory:
    """Return the history of a project.

    Args:
        place: Its file, of whose project the history then is; the folder of that, or the folder of
            the history itself, of all projects in which it is; None: ``project.toml`` here, or all
            that are here where there is none that can be read.

    Raises:
        UsageError: There is no such place, or the file is no project.
    """
    path = Path(place) if place is not None else Path()
    with OSErrorsAs(UsageError, f"there is no {str(path)[:_LONG]}…"):  # the name is too long
        is_file, is_there = path.is_file(), path.exists()
    if not is_there:
        otherwise = f"name a {FILE}, or the folder that it is in"
        raise UsageError(f"there is no {path}", remedy=meant(path, otherwise=otherwise))
    if is_file:
        return ProjectHistory(folder=path.parent / FOLDER, project=_project(path))
    own = ProjectHistory(folder=path)
    if own.path.exists():
        return own
    name = ""
    if place is None:
        with contextlib.suppress(UsageError):
            name = _project(path / FILE)
    return ProjectHistory(folder=path / FOLDER, project=name)


def _project(file: Path) -> str:
    """Return the name of a file's project; what else is in the file may be wrong by now."""
    return project_name(read_toml(file), file)


def runs_of(history: ProjectHistory) -> tuple[ProjectRun, ...]:
    """Return the runs asked about, newest first; one whose process is gone is stopped.

    A project that is called as its folder, and has no runs of that name, may have been moved: then
    all runs of the folder are meant. No removal does so.

    Raises:
        UsageError: There are none.
    """
    every = history.runs()
    found = [one for one in every if history.project in ("", one.project)]
    if not found and history.project == history.folder.resolve().parent.name:
        found = list(every)
    if not found:
        of = f" of {history.project}" if history.project and every else ""
        others = ", ".join(dict.fromkeys(one.project for one in every))
        raise UsageError(
            f"{history.folder} holds no runs{of}", why=f"those in it are of {others}" if of else "",
            remedy=f"name {history.folder} to see them" if of else f"tfdyno run {FILE} makes one",
        )  # fmt: skip
    live = live_run(history, every)
    return tuple(one if one.id == live else ended(one) for one in found)


def live_run(history: ProjectHistory, runs: Sequence[ProjectRun]) -> str:
    """Return the id of the run that is going on: the newest, while a process holds the folder."""
    newest = runs[0]
    return newest.id if newest.status == "running" and is_held(history.folder, LOCK) else ""


def ended(run: ProjectRun) -> ProjectRun:
    """Return a run that nobody works on any more: what it left running was stopped."""
    steps = tuple(
        replace(step, status="stopped") if step.status == "running" else step for step in run.steps
    )
    return replace(run, status="stopped" if run.status == "running" else run.status, steps=steps)


def run_named(runs: Sequence[ProjectRun], prefix: str) -> ProjectRun:
    """Return the run whose id begins so; the newest for an empty beginning.

    Raises:
        UsageError: There is none, or more than one.
    """
    found = [one for one in runs if one.id.startswith(prefix)]
    exact = [one for one in found if one.id == prefix]
    if prefix and len(found) > 1 and not exact:
        names = ", ".join(one.id for one in found[:9])
        raise UsageError(f"{prefix} is the beginning of several runs: {names}",
                         remedy="give more of it")  # fmt: skip
    if not found:
        otherwise = "tfdyno runs list names them"
        remedy = did_you_mean(prefix, [one.id for one in runs], otherwise=otherwise)
        raise UsageError(f"there is no run {prefix}", remedy=remedy)
    return (exact or found)[0]
