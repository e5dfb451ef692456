"""``tfdyno runs``: list, show, compare and remove the runs of a project."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from tfdyno.cli.answer import Answer, agreed
from tfdyno.cli.command import argument, command, flag, group, option
from tfdyno.cli.options import JSON, Filled, Whole
from tfdyno.core.base.errors import ToolError

if TYPE_CHECKING:
    from tfdyno.core.project.report import Removal
    from tfdyno.store.project_history import ProjectHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class _Project:
    project: str | None = option(
        type=Filled(), metavar="PATH", help="Its file or folder.  [default: project.toml here]"
    )
    as_json: bool = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShowOptions:
    run: str | None = argument(type=Filled(), required=False, metavar="[ID]")
    of: _Project = group(_Project)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CompareOptions:
    before: str | None = argument(type=Filled(), metavar="[A]", required=False)
    after: str | None = argument(type=Filled(), metavar="[B]", required=False)
    of: _Project = group(_Project)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RmOptions:
    ids: tuple[str, ...] = argument(type=Filled(), nargs=-1, metavar="[ID]…")
    keep: int | None = option(
        type=Whole("keep", least=0), help="Instead: of each project all but the newest N."
    )
    dry_run: bool = flag(help="Only say what would go.")
    yes: bool = flag(help="Remove without asking.")
    of: _Project = group(_Project)


@click.group()
def runs() -> None:
    """List, show, compare and remove the runs of a project."""


@command(_Project, "list", under=runs)
def list_(options: _Project) -> Answer:
    """List all runs, the newest first."""
    from tfdyno.jobs.project.runs import runs_of
    from tfdyno.view.project.document import runs_document
    from tfdyno.view.project.text import runs_text

    history = _history(options)
    found = runs_of(history)
    return Answer(
        document=partial(runs_document, str(history.folder), found), text=partial(runs_text, found)
    )


@command(_ShowOptions, under=runs)
def show(options: _ShowOptions) -> Answer:
    """Show a run step by step: why each was made, its key, its output, its error.

    ID may be cut to its beginning; without it, the newest run.
    """
    from tfdyno.jobs.project.report import tell
    from tfdyno.jobs.project.runs import run_named, runs_of
    from tfdyno.view.project.document import run_document
    from tfdyno.view.project.text import run_text

    history = _history(options.of)
    every = runs_of(history)
    told = tell(history, run_named(every, options.run or ""), every)
    return Answer(document=partial(run_document, told), text=partial(run_text, told))


@command(_CompareOptions, under=runs)
def compare(options: _CompareOptions) -> Answer:
    """Say what changed from run A to run B, and what it gained.

    B is the newest run unless it is named, A the one before it. A step that did not come to its
    end in A is compared with the newest run before that in which it did.
    A ratio has its interval; where none is possible it says why.
    """
    from tfdyno.jobs.project.report import compare_runs
    from tfdyno.jobs.project.runs import run_named, runs_of
    from tfdyno.view.project.document import compared_document
    from tfdyno.view.project.text import compared_text

    history = _history(options.of)
    every = runs_of(history)
    newer = run_named(every, options.after or "")
    older = run_named(every, options.before) if options.before else None
    found = compare_runs(history, newer, every, older)
    return Answer(document=partial(compared_document, found), text=partial(compared_text, found))


@command(_RmOptions, under=runs)
def rm(options: _RmOptions) -> Answer | int:
    """Forget runs, and delete the outputs that no other run names.

    Says first what goes, outputs that no run names at all included. A step that a later run reused
    keeps its output.
    """
    from tfdyno.jobs.project.runs_removal import chosen, remove
    from tfdyno.view.project.text import removal_text

    history = _history(options.of)
    planned = remove(history, lambda every: chosen(every, options.ids, options.keep), dry=True)
    names = frozenset(one.id for one in planned.runs)
    if options.dry_run:
        return _removal(planned, removed=False)
    # On stderr, since the answer is on stdout.
    told = removal_text(planned, removed=False)
    if not (planned.is_empty or options.yes or agreed(told, err=True)):
        click.echo("Nothing was removed.", err=True)
        return _removal(planned, removed=False) if options.of.as_json else 0
    done = remove(history, lambda every: tuple(one.id for one in every if one.id in names))
    return _removal(done, removed=True)


def _removal(found: Removal, *, removed: bool) -> Answer:
    from tfdyno.view.project.document import removal_document
    from tfdyno.view.project.text import removal_text

    left = ToolError(f"{len(found.left)} of them could not be deleted",
                     remedy="the next tfdyno runs rm tries again")  # fmt: skip
    return Answer(
        document=partial(removal_document, found, removed=removed),
        text=lambda **_: removal_text(found, removed=removed),
        error=left if removed and found.left else None,
    )


def _history(of: _Project) -> ProjectHistory:
    from tfdyno.jobs.project.runs import history_at

    return history_at(of.project)
