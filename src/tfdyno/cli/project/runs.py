"""``tfdyno runs``: list, show, compare and remove the runs of a project."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import JSON, Filled, Whole
from tfdyno.core.base.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.project.report import Removal
    from tfdyno.store.project_history import ProjectHistory

_PROJECT = click.option(
    "--project",
    type=Filled(),
    metavar="PATH",
    help="Its file or folder.  [default: project.toml here]",
)


@click.group()
def runs() -> None:
    """List, show, compare and remove the runs of a project."""


@runs.command(name="list")
@_PROJECT
@JSON
def list_(project: str | None, as_json: bool) -> None:
    """List all runs, the newest first."""
    from tfdyno.jobs.project.runs import runs_of

    history = _history(project)
    found = runs_of(history)
    if as_json:
        from tfdyno.view.project.document import runs_document

        _print_json(runs_document(str(history.folder), found))
        return
    from tfdyno.view.project.text import runs_text

    _print(partial(runs_text, found))


@runs.command()
@click.argument("run", required=False, type=Filled(), metavar="[ID]")
@_PROJECT
@JSON
def show(run: str | None, project: str | None, as_json: bool) -> None:
    """Show a run step by step: why each was made, its key, its output, its error.

    ID may be cut to its beginning; without it, the newest run.
    """
    from tfdyno.jobs.project.report import tell
    from tfdyno.jobs.project.runs import run_named, runs_of

    history = _history(project)
    every = runs_of(history)
    told = tell(history, run_named(every, run or ""), every)
    if as_json:
        from tfdyno.view.project.document import run_document

        _print_json(run_document(told))
        return
    from tfdyno.view.project.text import run_text

    _print(partial(run_text, told))


@runs.command()
@click.argument("before", type=Filled(), metavar="[A]", required=False)
@click.argument("after", type=Filled(), metavar="[B]", required=False)
@_PROJECT
@JSON
def compare(before: str | None, after: str | None, project: str | None, as_json: bool) -> None:
    """Say what changed from run A to run B, and what it gained.

    B is the newest run unless it is named, A the one before it. A step that did not come to its
    end in A is compared with the newest run before that in which it did.
    A ratio has its interval; where none is possible it says why.
    """
    from tfdyno.jobs.project.report import compare_runs
    from tfdyno.jobs.project.runs import run_named, runs_of

    history = _history(project)
    every = runs_of(history)
    newer = run_named(every, after or "")
    older = run_named(every, before) if before else None
    found = compare_runs(history, newer, every, older)
    if as_json:
        from tfdyno.view.project.document import compared_document

        _print_json(compared_document(found))
        return
    from tfdyno.view.project.text import compared_text

    _print(partial(compared_text, found))


@runs.command()
@click.argument("ids", nargs=-1, type=Filled(), metavar="[ID]…")
@click.option(
    "--keep", type=Whole("keep", least=0), help="Instead: of each project all but the newest N."
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@_PROJECT
@JSON
def rm(
    ids: tuple[str, ...], keep: int | None, dry_run: bool, yes: bool, project: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Forget runs, and delete the outputs that no other run names.

    Says first what goes, outputs that no run names at all included. A step that a later run reused
    keeps its output.
    """
    from tfdyno.jobs.project.runs_removal import chosen, remove

    history = _history(project)
    planned = remove(history, lambda every: chosen(every, ids, keep), dry=True)
    names = frozenset(one.id for one in planned.runs)
    if dry_run:
        _told(planned, removed=False, as_json=as_json)
        return
    if not (planned.is_empty or yes or _agreed(planned)):
        click.echo("Nothing was removed.", err=True)
        if as_json:
            _told(planned, removed=False, as_json=True)
        return
    done = remove(history, lambda every: tuple(one.id for one in every if one.id in names))
    _told(done, removed=True, as_json=as_json)
    if done.left:
        raise ToolError(f"{len(done.left)} of them could not be deleted",
                        remedy="the next tfdyno runs rm tries again")  # fmt: skip


def _agreed(planned: Removal) -> bool:
    """Whether the person says yes to what goes; on stderr, since the answer is on stdout."""
    from tfdyno.view.project.text import removal_text

    click.echo(removal_text(planned, removed=False), err=True)
    if not sys.stdin.isatty():
        raise UsageError("nothing was removed", remedy="add --yes to remove it")
    return click.confirm("Remove?", err=True)


def _told(found: Removal, *, removed: bool, as_json: bool) -> None:
    if as_json:
        from tfdyno.view.project.document import removal_document

        _print_json(removal_document(found, removed=removed))
        return
    from tfdyno.view.project.text import removal_text

    click.echo(removal_text(found, removed=removed))


def _history(project: str | None) -> ProjectHistory:
    from tfdyno.jobs.project.runs import history_at

    return history_at(project)


def _print(text: Callable[..., str]) -> None:
    from tfdyno.view.base.text import colour_wanted, terminal_width

    colour = colour_wanted()
    click.echo(text(width=terminal_width(), colour=colour), color=colour)


def _print_json(document: dict[str, Any]) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json(document, indent=2).decode())
