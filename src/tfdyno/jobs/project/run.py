"""Run a project: each step a child process, each output kept by what it rests on."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tfdyno.core.base import clock
from tfdyno.core.base.codec import read_toml
from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.base.version import VERSION
from tfdyno.core.project.file import FILE, project_from
from tfdyno.core.project.project import LOCK, ProjectRun, RunStatus, StepRun
from tfdyno.jobs.project._check import SERVE, Commands, shapes_of
from tfdyno.jobs.project._outputs import Output
from tfdyno.jobs.project._state import RunReporter, RunRequest, RunState, settled
from tfdyno.jobs.project._step import Failed, made_by, serving_check
from tfdyno.jobs.serve.setup import needed_setup
from tfdyno.probe.base.near import no_such
from tfdyno.store.digests import Digests
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tfdyno.core.project.output import Made
    from tfdyno.core.project.project import Project, ProjectStep
    from tfdyno.jobs.serve.setup import NeededSetup

__all__ = ["RunReporter", "RunRequest", "needed_server", "preview", "read_project", "run"]

BEGIN = "check the path, or have one written for a script by tfdyno run --init train.py"
KEPT = "what is finished is kept, and the same command goes on."


def read_project(file: Path) -> Project:
    """Read a project's file; raises ``UsageError``."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder", remedy=f"name a file, {file / FILE}")
    if not file.exists():
        missing = no_such(file)
        if missing.remedy.startswith("did you mean"):
            raise missing
        raise UsageError(missing.what, why=missing.why, remedy=BEGIN)
    return project_from(read_toml(file), file)


def run(request: RunRequest, commands: Commands, told: RunReporter | None = None) -> ProjectRun:
    """Run what has changed of a project.

    Args:
        request: What is run.
        commands: What the commands of tfdyno take.
        told: Who hears of what.

    Returns:
        The run with its steps; a step that failed ends it, and its ``status`` says so.

    Raises:
        UsageError: The project is wrong, a file is not there, or another run is under way.
        ToolError: The disk is full, or a folder cannot be written.
        KeyboardInterrupt: The run was stopped, and its step as well.
    """
    project, told = read_project(request.file), told or RunReporter()
    shapes = shapes_of(project, commands)
    begun = ProjectRun(id=_id(), project=project.name, started_at=clock.now(), tfdyno=VERSION)
    state = RunState(
        project=project, request=request, shapes=shapes, earlier=(), so_far=begun,
        digests=Digests(folder=project.folder, reads=told.reads),
    )  # fmt: skip
    names = tuple(step.name for step in state.chosen())
    state.so_far = replace(state.so_far, chosen=names)
    with _held(project), _remembered(state.digests):
        state.earlier = settled(state.history)
        _check_ahead(state)
        state.history.write(state.so_far)
        try:
            status = _steps(state, told)
        except BaseException as error:
            was_stopped = not isinstance(error, TfdynoError)
            with contextlib.suppress(Exception):
                _end(state, "stopped" if was_stopped else "failed")
            if was_stopped:
                error.add_note(KEPT)
            raise
        _end(state, status)
    return state.so_far


def preview(request: RunRequest, commands: Commands, told: RunReporter | None = None) -> ProjectRun:
    """Return what ``run`` would do, with nothing written.

    Args:
        request: What would be run.
        commands: What the commands of tfdyno take.
        told: Who hears of the files that are read.

    Returns:
        A run without an id; each step is ``reused``, or ``running`` where it would run.

    Raises:
        UsageError: As ``run`` does.
    """
    project = read_project(request.file)
    history = ProjectHistory(folder=project.folder)
    state = RunState(
        project=project, request=request, shapes=shapes_of(project, commands),
        earlier=history.runs(),
        digests=Digests(folder=project.folder, reads=(told or RunReporter()).reads, writes=False),
        so_far=ProjectRun(id="", project=project.name, tfdyno=VERSION),
    )  # fmt: skip
    return replace(state.so_far, steps=state.previewed())


def needed_server(request: RunRequest, commands: Commands) -> NeededSetup | None:
    """Return what has to be made before the project's models can be served; None: nothing.

    Raises:
        UsageError: As ``run`` does.
    """
    needed = needed_setup()
    if not needed or all(step.command != SERVE for step in read_project(request.file).steps):
        return None
    would = preview(request, commands).steps
    is_served = any(one.command == SERVE and one.status != "reused" for one in would)
    return needed if is_served else None


def _check_ahead(state: RunState) -> None:
    """Refuse before anything runs what is known not to work; raises ``UsageError``."""
    would = {one.step for one in state.previewed() if one.status != "reused"}
    for step in state.chosen():
        if step.name in would:
            serving_check(step)


def _steps(state: RunState, told: RunReporter) -> RunStatus:
    chosen = state.chosen()
    for number, step in enumerate(chosen, start=1):
        ended = _step(state, step, told, (number, len(chosen)))
        told.ended(ended)
        if ended.status == "failed":
            return "failed"
    return "finished"


def _step(state: RunState, step: ProjectStep, told: RunReporter, place: tuple[int, int]) -> StepRun:
    """Run one step, or find that it need not; what happens is kept at once."""
    began_s = time.monotonic()
    now = StepRun(step=step.name, command=step.command, started_at=clock.now())
    try:
        made = state.taken(step)
        seen = None if made else state.seen(step)
        if seen:
            made = seen.made
            now = replace(now, key=seen.output.key, rests_on=seen.rests_on,
                          output=seen.output.name, why=seen.why)  # fmt: skip
        if made:
            now = _reused(now, made, state.project)
        elif seen:
            state.keep(now)
            told.begun(now, *place)
            made = made_by(step, state.shapes[step.name], seen, state, told)
            now = replace(now, status="finished", words=made.words, headline=made.headline,
                          exit_code=made.exit_code, stamp=made.stamp)  # fmt: skip
    except BaseException as error:
        now = _unmade(now, error, time.monotonic() - began_s)
        with contextlib.suppress(Exception):
            state.keep(now)
        if isinstance(error, Failed):
            return now
        told.ended(now)
        raise
    assert made
    state.made[step.name] = made
    now = replace(now, duration_s=time.monotonic() - began_s)
    state.keep(now)
    return now


def _reused(now: StepRun, made: Made, project: Project) -> StepRun:
    """Return a step whose output holds; what a kill left whole, but not in place, is put there."""
    output = Output(project=project, step=made.step, key=made.key)
    output.put_in_place()
    return replace(
        now, status="reused", key=made.key, rests_on=made.rests_on, words=made.words,
        output=output.name, headline=made.headline, exit_code=made.exit_code, why="",
        stamp=made.stamp,
    )  # fmt: skip


def _unmade(now: StepRun, error: BaseException, duration_s: float) -> StepRun:
    """Return a step that did not come to its end."""
    is_ours = isinstance(error, TfdynoError)
    return replace(
        now,
        status="failed" if is_ours else "stopped",
        error=str(error) if is_ours else "",
        exit_code=error.child_code if isinstance(error, Failed) else 0,
        words=error.words if isinstance(error, Failed) else (),
        duration_s=duration_s,
    )


def _end(state: RunState, status: RunStatus) -> None:
    state.so_far = replace(state.so_far, status=status, ended_at=clock.now())
    state.history.write(state.so_far)


@contextlib.contextmanager
def _held(project: Project) -> Iterator[None]:
    """Keep other runs out of the project."""
    try:
        project.folder.mkdir(parents=True, exist_ok=True)
        ignored = project.folder / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n")
    except OSError as error:
        why = error.strerror or str(error)
        kind = ToolError if error.errno in (errno.ENOSPC, errno.EDQUOT) else UsageError
        raise kind(f"cannot write to {project.folder}", why=why) from None
    if not os.access(project.folder, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write to {project.folder}", why="it is read-only")
    with lock_folder(project.folder, LOCK):
        yield


@contextlib.contextmanager
def _remembered(digests: Digests) -> Iterator[None]:
    """Keep what was read of large files, however the block ends."""
    try:
        yield
    finally:
        digests.save()


def _id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
