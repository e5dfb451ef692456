"""``tfdyno recipe``: show, compare and choose the settings of a training run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import (
    FIT,
    INPUT_SHAPE,
    JSON,
    PYTHON,
    SET,
    TOLD,
    UNSAFE,
    WORKLOAD,
    Filled,
    NewFile,
    Whole,
    check_writable,
    recipe_from,
    workload_from,
)
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import typed
from tfdyno.core.recipe.recipe_file import read_recipe, to_toml
from tfdyno.view.base.recipe_text import (
    auto_document,
    auto_text,
    auto_toml,
    diff_document,
    diff_text,
    recipe_document,
    recipe_text,
)
from tfdyno.view.base.text import colour_wanted, terminal_width

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE = click.Path(path_type=Path)
_OUTPUT = click.option("-o", "--output", type=NewFile(), metavar="FILE", help="Write the TOML.")


@click.group()
def recipe() -> None:
    """Show, compare and choose the settings of a training run."""


@recipe.command()
@click.argument("file", required=False, type=_FILE)
@SET
@click.option("--full", is_flag=True, help="Settings that change nothing too.")
@_OUTPUT
@JSON
def show(
    file: Path | None, changes: tuple[str, ...], full: bool, output: Path | None, as_json: bool
) -> None:
    """Print a recipe as TOML, each setting with what it means.

    FILE is a recipe, or the folder of a run; without it only what --set says is set. What is
    printed can be kept as a file.
    """
    found = recipe_from(file, typed(changes))
    check_composition(found)
    if output:
        _write(output, to_toml(found, full=full))
    if as_json:
        _print_json(recipe_document(found))
        return
    colour = colour_wanted()
    click.echo(recipe_text(found, str(file or ""), full=full, colour=colour), color=colour)


@recipe.command("diff")
@click.argument("a", type=_FILE)
@click.argument("b", type=_FILE)
@JSON
def diff_of(a: Path, b: Path, as_json: bool) -> None:
    """Say in which settings two recipes differ.

    A and B are recipes, or folders of runs.
    """
    names, found = (str(a), str(b)), (read_recipe(a), read_recipe(b))
    if as_json:
        _print_json(diff_document(names, *found))
        return
    colour = colour_wanted()
    click.echo(diff_text(names, *found, width=terminal_width(), colour=colour), color=colour)


@recipe.command()
@WORKLOAD
@click.option("--gpu", type=Filled(), metavar="SLUG", help="Plan for this card, not this machine.")
@click.option("--count", type=Whole("count"), help="How many of --gpu one machine has.")
@INPUT_SHAPE
@FIT
@PYTHON
@UNSAFE
@_OUTPUT
@TOLD
def auto(**given: Any) -> None:
    """Choose the fastest recipe for a workload by the estimate, with a reason for each line.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50 or a standard task like
    task:bert-base. Arguments of a script follow after --. The samples of an update of the weights
    stay as many as they are.
    """
    from tfdyno.catalog.gpus import find
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.recipe.auto import auto_recipe

    if given["count"] and not given["gpu"]:
        raise UsageError("--count goes with --gpu", remedy="name the card, or leave --count out")
    if given["output"]:
        check_writable(given["output"])
    workload = workload_from({**given, "precision": "", "input_spec": ()}, mode="train")
    card = find(given["gpu"]) if given["gpu"] else None
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = auto_recipe(workload, gpu=card, count=given["count"] or 1, progress=progress)
    if given["output"]:
        _write(given["output"], auto_toml(found))
    if given["as_json"]:
        _print_json(auto_document(found))
        return
    colour = colour_wanted()
    click.echo(auto_text(found, width=terminal_width(), colour=colour), color=colour)


def _write(path: Path, text: str) -> None:
    from tfdyno.core.base.codec import write_atomic

    check_writable(path)
    write_atomic(path, text.encode())


def _print_json(document: Mapping[str, object]) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json(document, indent=2).decode())
