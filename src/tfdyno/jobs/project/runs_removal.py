"""Forget runs of a project, and delete the outputs that then nobody names."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.project.project import LOCK, OUTPUTS, PART, ProjectRun
from tfdyno.core.project.report import DONE, Removal
from tfdyno.jobs.project.runs import ended, live_run, run_named, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tfdyno.store.project_history import ProjectHistory

_OUTPUT = re.compile(r"(.*-[0-9a-f]{16})(\.\w+)?")
"""Name of an output, and what one that is not finished has behind it."""
TRASH = ".trash-"
"""Begins the name of an output that is being deleted: whatever has it is no whole output."""


def chosen(runs: Sequence[ProjectRun], ids: Iterable[str], keep: int | None) -> tuple[str, ...]:
    """Return the ids that are to go: those named, or of each project all but the newest ``keep``.

    Args:
        runs: Newest first; so is the answer.
        ids: Beginnings of ids.
        keep: How many stay of each project; None: ids are named.

    Raises:
        UsageError: Neither or both were said, or an id names no run.
    """
    names = tuple(ids)
    if bool(names) == (keep is not None):
        raise UsageError("say which runs go: their ids, or --keep N for all but the newest")
    if keep is None:
        wanted = {run_named(runs, one).id for one in names}
        return tuple(one.id for one in runs if one.id in wanted)
    seen, found = Counter[str](), list[str]()
    for one in runs:
        seen[one.project] += 1
        found += [one.id] if seen[one.project] > keep else []
    return tuple(found)


def remove(history: ProjectHistory, choose: Callable[[Sequence[ProjectRun]], tuple[str, ...]],
           *, dry: bool = False) -> Removal:  # fmt: skip
    """Forget runs, and delete the outputs that no other run names.

    Rows go first, in one transaction; then each output is renamed to a name that no run knows and
    deleted under it. Whenever this is killed, every folder of a step's name is whole; what was left
    goes with the next call, where it says so.

    Args:
        history: Of the project.
        choose: The ids, out of the runs that are asked about, newest first.
        dry: Only say what would go.

    Raises:
        UsageError: There is no history, a run is going on in the folder, a run that would stay
            cannot be read, or ``choose`` refuses.
        ToolError: The folder cannot be written.
    """
    if not history.path.exists():  # else a lock's file would be made there
        runs_of(history)
    if dry:
        return _planned(history, choose, is_held=False)
    with lock_folder(history.folder, LOCK):
        plan = _planned(history, choose, is_held=True)
        history.remove(tuple(one.id for one in plan.runs))
        gone = (*plan.outputs, *plan.unnamed, *_trash(history))
        left = [_delete(history.folder, one) for one in gone]
    return replace(plan, left=tuple(filter(None, left)))


def _planned(
    history: ProjectHistory, choose: Callable[[Sequence[ProjectRun]], tuple[str, ...]],
    *, is_held: bool,
) -> Removal:  # fmt: skip
    every, damaged = _every(history, is_held=is_held)
    asked = [one for one in every if one.id in damaged or history.project in ("", one.project)]
    ids = choose(asked)
    gone = tuple(one for one in every if one.id in ids)
    stay = [one for one in every if one.id not in ids]
    for one in gone:
        if one.status == "running":
            raise UsageError(f"run {one.id} is going on", remedy="stop it, or wait for its end")
    for one in stay:
        if one.id in damaged:
            raise UsageError(
                f"run {one.id} cannot be read", why="which outputs it needs is not known",
                remedy=f"{history.forgetting(one.id)} forgets it",
            )  # fmt: skip
    kept = {step.output for one in stay for step in one.steps}
    begun = {step.output for one in stay for step in one.steps if step.status not in DONE}
    named = {step.output for one in gone for step in one.steps}
    going = [(folder, output) for folder, output, end in _outputs(history)
             if output not in kept or (end == PART and output not in begun)]  # fmt: skip
    sizes = [_size_bytes(history.folder / folder) for folder, _ in going]
    return Removal(
        runs=gone,
        outputs=tuple(folder for folder, output in going if output in named),
        kept_outputs=tuple(sorted(filter(None, named & kept))),
        unnamed=tuple(folder for folder, output in going if output not in named),
        freed_bytes=sum(sizes),
    )


def _every(history: ProjectHistory, *, is_held: bool) -> tuple[list[ProjectRun], frozenset[str]]:
    """Return all runs as they stand, newest first, and which of them cannot be read."""
    found = history.readable()
    damaged = frozenset(name for name, one in found.items() if isinstance(one, UsageError))
    runs = [ProjectRun(id=name, project="", status="stopped") if isinstance(one, UsageError)
            else one for name, one in found.items()]  # fmt: skip
    live = live_run(history, runs) if runs and not is_held else ""
    return [one if one.id == live else ended(one) for one in runs], damaged


def _outputs(history: ProjectHistory) -> Iterator[tuple[str, str, str]]:
    """Yield folders of outputs, whole or begun: each with the output it is of, and its ending."""
    for one in _entries(history):
        if one.name.startswith(TRASH):
            continue
        if found := _OUTPUT.fullmatch(one.name):
            yield f"{OUTPUTS}/{one.name}", f"{OUTPUTS}/{found[1]}", found[2] or ""


def _trash(history: ProjectHistory) -> list[str]:
    """Return outputs on their way out, which a kill left."""
    return [f"{OUTPUTS}/{one.name}" for one in _entries(history) if one.name.startswith(TRASH)]


def _entries(history: ProjectHistory) -> list[Path]:
    folder = history.folder / OUTPUTS
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _delete(folder: Path, output: str) -> str:
    """Delete an output under another name; why it is still there, empty where it is gone."""
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


def _size_bytes(folder: Path) -> int:
    with OSErrorsAs(ToolError, f"cannot read {folder}"):
        inner = () if folder.is_symlink() else folder.rglob("*")
        return sum(one.lstat().st_size for one in inner if one.is_file() or one.is_symlink())
