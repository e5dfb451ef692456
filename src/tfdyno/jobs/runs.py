"""The runs of a project: find the folder and a run in it, tell what changed, forget some."""

from __future__ import annotations

import contextlib
import difflib
import re
import shutil
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tfdyno.core.errors import ToolError, UsageError
from tfdyno.core.folder_lock import FolderLock, is_held
from tfdyno.core.project import FOLDER, LOCK, OUTPUTS
from tfdyno.core.project_report import Removal
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tfdyno.core.project import ProjectRun

PROJECT_FILE = "project.toml"
_OUTPUT = re.compile(r"(.*-[0-9a-f]{16})(\.\w+)?")
"""Name of an output, and what one that is not finished has behind it."""
TRASH = ".trash-"
"""Begins the name of an output that is being deleted: whatever has it is no whole output."""


def history_at(place: str | Path | None) -> ProjectHistory:
    """The history of a project.

    Args:
        place: Its file, the folder of that, or the folder of the history itself; None:
            ``project.toml`` here.

    Raises:
        UsageError: There is no such place.
    """
    path = Path(place) if place is not None else Path()
    if not path.exists():
        raise UsageError(f"there is no {path}", remedy=_near(path))
    if path.is_file():
        return ProjectHistory(folder=path.parent / FOLDER)
    own = ProjectHistory(folder=path)
    return own if own.path.exists() else ProjectHistory(folder=path / FOLDER)


def runs_of(history: ProjectHistory) -> tuple[ProjectRun, ...]:
    """All runs, newest first, as they stand: one whose process is gone is stopped.

    Raises:
        UsageError: There is no history.
    """
    found = history.runs()
    if not found:
        raise UsageError(
            f"{history.folder} holds no runs", remedy=f"tfdyno run {PROJECT_FILE} makes one"
        )
    live = _live(history, found)
    return tuple(one if one.id == live else _ended(one) for one in found)


def _live(history: ProjectHistory, runs: Sequence[ProjectRun]) -> str:
    """The id of the run that is going on: the newest, while a process holds the folder."""
    newest = runs[0]
    return newest.id if newest.status == "running" and is_held(history.folder, LOCK) else ""


def _ended(run: ProjectRun) -> ProjectRun:
    """A run that nobody works on any more: what it left running was stopped."""
    steps = tuple(
        replace(step, status="stopped") if step.status == "running" else step for step in run.steps
    )
    return replace(run, status="stopped" if run.status == "running" else run.status, steps=steps)


def run_named(runs: Sequence[ProjectRun], prefix: str) -> ProjectRun:
    """The run whose id begins so; the newest for an empty beginning.

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
        near = difflib.get_close_matches(prefix, [one.id for one in runs], n=1, cutoff=0.5)
        remedy = f"did you mean {near[0]}?" if near else "tfdyno runs list names them"
        raise UsageError(f"there is no run {prefix}", remedy=remedy)
    return (exact or found)[0]


def chosen(runs: Sequence[ProjectRun], ids: Iterable[str], keep: int | None) -> tuple[str, ...]:
    """The ids that are to go: those named, or all but the newest ``keep``; newest first.

    Raises:
        UsageError: Neither or both were said, or an id names no run.
    """
    names = tuple(ids)
    if bool(names) == (keep is not None):
        raise UsageError("say which runs go: their ids, or --keep N for all but the newest")
    if keep is not None:
        return tuple(one.id for one in runs[keep:])
    wanted = {run_named(runs, one).id for one in names}
    return tuple(one.id for one in runs if one.id in wanted)


def remove(history: ProjectHistory, choose: Callable[[Sequence[ProjectRun]], tuple[str, ...]],
           *, dry: bool = False) -> Removal:  # fmt: skip
    """Forget runs, and delete the outputs that no other run names.

    Rows go first, in one transaction; then each output is renamed to a name that no run knows and
    deleted under it. Whenever this is killed, every folder of a step's name is whole; what was left
    is deleted by the next call.

    Args:
        history: Of the project.
        choose: The ids, out of all runs, newest first.
        dry: Only say what would go.

    Raises:
        UsageError: A run is going on in the folder, or ``choose`` refuses.
        ToolError: The folder cannot be written.
    """
    if dry or not history.path.exists():  # else a lock's file would be made there
        runs = runs_of(history)
        return _planned(history, runs, choose(runs))
    with contextlib.closing(FolderLock(history.folder, LOCK)):
        runs = tuple(map(_ended, history.runs()))  # none is going on: it would hold the folder
        plan = _planned(history, runs, choose(runs))
        named = history.remove(tuple(one.id for one in plan.runs))
        gone = dict.fromkeys((*named, *_leftovers(history)))
        left = [_delete(history.folder, one) for one in gone]
    return replace(plan, left=tuple(filter(None, left)))


def _planned(
    history: ProjectHistory, runs: Sequence[ProjectRun], ids: tuple[str, ...]
) -> Removal:  # fmt: skip
    gone = tuple(one for one in runs if one.id in ids)
    for one in gone:
        if one.status == "running":
            raise UsageError(f"run {one.id} is going on", remedy="stop it, or wait for its end")
    kept = {step.output for one in runs if one.id not in ids for step in one.steps}
    named = {step.output for one in gone for step in one.steps if _is_output(step.output)}
    outputs = tuple(sorted(named - kept))
    sizes = [_size_bytes(history.folder / one) for one in outputs]
    return Removal(runs=gone, outputs=outputs, kept_outputs=tuple(sorted(named & kept)),
                   freed_bytes=sum(sizes))  # fmt: skip


def _leftovers(history: ProjectHistory) -> list[str]:
    """Outputs on their way out, and outputs, whole or begun, that no run names."""
    folder = history.folder / OUTPUTS
    if not folder.is_dir():
        return []
    named = {step.output for run in history.runs() for step in run.steps}
    return [
        f"{OUTPUTS}/{one.name}"
        for one in sorted(folder.iterdir())
        if one.name.startswith(TRASH)
        or ((found := _OUTPUT.fullmatch(one.name)) and f"{OUTPUTS}/{found[1]}" not in named)
    ]


def _delete(folder: Path, output: str) -> str:
    """Delete an output under another name; why it is still there, empty where it is gone."""
    if not _is_output(output):
        return ""
    path = folder / output
    try:
        if not path.name.startswith(TRASH):
            aside = path.with_name(f"{TRASH}{path.name}")
            if aside.exists() and not aside.is_symlink():
                shutil.rmtree(aside)
            path = path.rename(aside)
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)
    except FileNotFoundError:
        return ""  # deleted by hand
    except OSError as error:
        return f"{output}: {error.strerror or error}"
    return ""


def _is_output(name: str) -> bool:
    """Whether it is a folder right under that of the outputs; a file may have been edited."""
    parts = PurePosixPath(name).parts
    return len(parts) == 2 and parts[0] == OUTPUTS and parts[1] != ".."


def _size_bytes(folder: Path) -> int:
    try:
        return sum(
            one.lstat().st_size for one in folder.rglob("*") if one.is_file() or one.is_symlink()
        )
    except OSError as error:
        raise ToolError(f"cannot read {folder}", why=error.strerror or str(error)) from None


def _near(path: Path) -> str:
    """What the person may have meant."""
    try:
        names = [one.name for one in path.parent.iterdir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {path.parent / near[0]}?"
    return f"name a {PROJECT_FILE}, or the folder that it is in"
