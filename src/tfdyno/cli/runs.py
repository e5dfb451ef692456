"""``tfdyno runs``: list, show, compare and remove the runs of a project."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import JSON, Filled, Whole
from tfdyno.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.project_report import Removal
    from tfdyno.store.project_history import ProjectHistory

_PROJECT = click.option(
    "--project",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Its file or folder.  [default: project.toml here]",
)


@click.group()
def runs() -> None:
    """List, show, compare and remove the runs of a project."""


@runs.command(name="list")
@_PROJECT
@JSON
def list_(project: Path | None, as_json: bool) -> None:
    """List all runs, the newest first."""
    from tfdyno.jobs.runs import runs_of

    history = _history(project)
    found = runs_of(history)
    if as_json:
        from tfdyno.view.project_document import runs_document

        _print_json(runs_document(str(history.folder), found))
        return
    from tfdyno.view.project_text import runs_text

    _print(partial(runs_text, found))


@runs.command()
@click.argument("run", required=False, type=Filled(), metavar="[ID]")
@_PROJECT
@JSON
def show(run: str | None, project: Path | None, as_json: bool) -> None:
    """Show a run step by step: why each was made, its key, its output, its error.

    ID may be cut to its beginning; without it, the newest run.
    """
    from tfdyno.jobs.report import run_before, tell
    from tfdyno.jobs.runs import run_named, runs_of

    history = _history(project)
    every = runs_of(history)
    found = run_named(every, run or "")
    told = tell(history, found, run_before(every, found))
    if as_json:
        from tfdyno.view.project_document import run_document

        _print_json(run_document(told))
        return
    from tfdyno.view.project_text import run_text

    _print(partial(run_text, told))


@runs.command()
@click.argument("before", type=Filled(), metavar="[A]", required=False)
@click.argument("after", type=Filled(), metavar="[B]", required=False)
@_PROJECT
@JSON
def compare(before: str | None, after: str | None, project: Path | None, as_json: bool) -> None:
    """Say what changed from run A to run B, and what it gained.

    B is the newest run unless it is named, A the one before it.
    A ratio has its interval; where none is possible it says why.
    """
    from tfdyno.jobs.report import compared, run_before, tell
    from tfdyno.jobs.runs import run_named, runs_of

    history = _history(project)
    every = runs_of(history)
    newer = run_named(every, after or "")
    older = run_named(every, before) if before else run_before(every, newer)
    if older is None:
        raise UsageError(f"{newer.id} is the first run of its project", remedy="name two runs")
    found = compared(tell(history, older), tell(history, newer))
    if as_json:
        from tfdyno.view.project_document import compared_document

        _print_json(compared_document(found))
        return
    from tfdyno.view.project_text import compared_text

    _print(partial(compared_text, found))


@runs.command()
@click.argument("ids", nargs=-1, type=Filled(), metavar="[ID]…")
@click.option("--keep", type=Whole("keep", least=0), help="Instead: all but the newest N.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@_PROJECT
@JSON
def rm(
    ids: tuple[str, ...], keep: int | None, dry_run: bool, yes: bool, project: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Forget runs, and delete the outputs that no other run names.

    Says first what goes. A step that a later run reused keeps its output. What a killed removal
    left goes too.
    """
    from tfdyno.jobs.runs import chosen, remove

    history = _history(project)
    planned = remove(history, lambda every: chosen(every, ids, keep), dry=True)
    names = frozenset(one.id for one in planned.runs)
    if dry_run:
        _told(planned, removed=False, as_json=as_json)
        return
    if names and not yes:
        _told(planned, removed=False, as_json=False)
        if as_json or not sys.stdin.isatty():
            raise UsageError("nothing was removed", remedy="add --yes to remove it")
        click.confirm("Remove?", abort=True)
    done = remove(history, lambda every: tuple(one.id for one in every if one.id in names))
    _told(done, removed=True, as_json=as_json)


def _told(found: Removal, *, removed: bool, as_json: bool) -> None:
    if as_json:
        from tfdyno.view.project_document import removal_document

        _print_json(removal_document(found, removed=removed))
        return
    from tfdyno.view.project_text import removal_text

    click.echo(removal_text(found, removed=removed))


def _history(project: Path | None) -> ProjectHistory:
    from tfdyno.jobs.runs import history_at

    return history_at(project)


def _print(text: Callable[..., str]) -> None:
    from tfdyno.view.text import colour_wanted, terminal_width

    colour = colour_wanted()
    click.echo(text(width=terminal_width(), colour=colour), color=colour)


def _print_json(document: dict[str, Any]) -> None:
    from tfdyno.core.codec import to_json

    click.echo(to_json(document, indent=2).decode())
