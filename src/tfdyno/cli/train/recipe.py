"""``tfdyno recipe``: show, compare and choose the settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import PATH, argument, command, flag, group, option
from tfdyno.cli.options import (
    JSON,
    LANG,
    PYTHON,
    SET,
    UNSAFE,
    Filled,
    NewFile,
    Telling,
    Whole,
    check_writable,
    recipe_from,
)
from tfdyno.cli.workload_options import (
    FIT,
    INPUT_SHAPES,
    CodeOptions,
    FineTuneOptions,
    WorkloadOptions,
    workload_from,
)
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import typed
from tfdyno.core.recipe.recipe_file import read_recipe
from tfdyno.view.base.recipe_text import (
    auto_document,
    auto_text,
    auto_toml,
    diff_document,
    diff_text,
    recipe_document,
    recipe_text,
    recipe_toml,
)

_OUTPUT = option("-o", "--output", type=NewFile(), metavar="FILE", help="Write the TOML.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShowOptions:
    file: Path | None = argument(type=PATH, required=False)
    changes: tuple[str, ...] = SET
    full: bool = flag(help="Settings that change nothing too.")
    output: Path | None = _OUTPUT
    as_json: bool = JSON
    lang: Language | None = LANG


@dataclass(frozen=True, slots=True, kw_only=True)
class _DiffOptions:
    a: Path = argument(type=PATH)
    b: Path = argument(type=PATH)
    as_json: bool = JSON
    lang: Language | None = LANG


@dataclass(frozen=True, slots=True, kw_only=True)
class _AutoOptions(WorkloadOptions):
    gpu: str | None = option(
        type=Filled(), metavar="SLUG", help="Plan for this card, not this machine."
    )
    count: int | None = option(type=Whole("count"), help="How many of --gpu one machine has.")
    input_shapes: tuple[tuple[int, ...], ...] = INPUT_SHAPES
    fit_number: int = FIT
    fine_tune: FineTuneOptions = group(FineTuneOptions)
    python: str | None = PYTHON
    unsafe: bool = UNSAFE
    output: Path | None = _OUTPUT
    told: Telling = group(Telling)
    lang: Language | None = LANG


@click.group()
def recipe() -> None:
    """Show, compare and choose the settings of a training run."""


@command(_ShowOptions, under=recipe)
def show(options: _ShowOptions) -> Answer:
    """Print a recipe as TOML, each setting with what it means.

    FILE is a recipe, or the folder of a run; without it only what --set says is set. What is
    printed can be kept as a file.
    """
    found = recipe_from(options.file, typed(options.changes))
    check_composition(found)
    check_writable(options.output)
    name = str(options.file or "")
    return Answer(
        files=((options.output, partial(recipe_toml, found, full=options.full)),),
        document=partial(recipe_document, found),
        text=lambda colour, **_: recipe_text(found, name, full=options.full, colour=colour),
    )


@command(_DiffOptions, "diff", under=recipe)
def diff_of(options: _DiffOptions) -> Answer:
    """Say in which settings two recipes differ.

    A and B are recipes, or folders of runs.
    """
    names = (str(options.a), str(options.b))
    found = (read_recipe(options.a), read_recipe(options.b))
    return Answer(
        document=partial(diff_document, names, *found), text=partial(diff_text, names, *found)
    )


@command(_AutoOptions, under=recipe)
def auto(options: _AutoOptions) -> Answer:
    """Choose the fastest recipe for a workload by the estimate, with a reason for each line.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50, keras_hub:PRESET or a
    standard task like task:bert-base. Arguments of a script follow after --. The samples of an
    update of the weights stay as many as they are.
    """
    from tfdyno.catalog.gpus import find
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.recipe.auto import auto_recipe

    if options.count and not options.gpu:
        raise UsageError("--count goes with --gpu", remedy="name the card, or leave --count out")
    check_writable(options.output)
    code = CodeOptions(
        input_shapes=options.input_shapes, fit_number=options.fit_number, python=options.python,
        unsafe=options.unsafe,
    )  # fmt: skip
    workload = workload_from(options, code, fine_tune=options.fine_tune)
    card = find(options.gpu) if options.gpu else None
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        found = auto_recipe(workload, gpu=card, count=options.count or 1, progress=progress)
    return Answer(
        files=((options.output, partial(auto_toml, found)),),
        document=partial(auto_document, found),
        text=partial(auto_text, found),
    )
