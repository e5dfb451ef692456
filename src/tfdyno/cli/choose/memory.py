"""``tfdyno memory``: where the memory of a step goes, and how to make it fit a card."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, argument, command, flag, given, group, option
from tfdyno.cli.options import JSON, LANG, QUIET, Filled, NewFile, OneOf, Whole, check_writable
from tfdyno.cli.progress import progress_line
from tfdyno.cli.workload_options import (
    CodeOptions,
    FineTuneOptions,
    SoftwareOptions,
    WorkloadOptions,
    workload_from,
)
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.core.base.settings import Route

if TYPE_CHECKING:
    from tfdyno.core.choose.memory_answer import MemoryAnswer
    from tfdyno.core.choose.workload import Workload
    from tfdyno.jobs.memory.weigh import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    workload: str | None = argument(type=TEXT, required=False)
    script_arguments: tuple[str, ...] = argument(nargs=-1, type=click.UNPROCESSED)
    gpu: str | None = option(
        type=Filled(), metavar="A,B,…", help="Cards, 8 at most, or MIG slices."
    )
    batch_size: int | None = option(type=Whole("batch size"), help="Samples per replica.")
    precision: str | None = option(
        type=OneOf("precision", settings.PRECISIONS),
        help="Hold this one; without it: the script's own, and a plan weighs the card's.",
    )
    execution: str | None = option(
        type=OneOf("execution", settings.TRAINED_EXECUTIONS), help="Without it: what Keras does."
    )
    route: Route = option(
        type=OneOf("route", settings.ROUTES), default="auto", show_default=True,
        help="quick: seconds. exact: compile for the card, and the chosen plan at its own batch.",
    )  # fmt: skip
    plan: bool = flag(help="The cheapest settings that make it fit.")
    optimizers: str | None = option(
        "--optimizer", type=Filled(), metavar="A,B,…",
        help="Weigh these in a plan (adafactor, lion, sgd), or none; they learn differently.",
    )  # fmt: skip
    log: str | None = option(type=Filled(), metavar="LOG|-", help="A run that ran out of memory.")
    output: Path | None = option(
        "-o", "--output", type=NewFile(), metavar="FILE", help="Write the plan's recipe."
    )
    html: Path | None = option(
        type=NewFile(), metavar="FILE", help="Write a page with the figures."
    )
    code: CodeOptions = group(CodeOptions)
    fine_tune: FineTuneOptions = group(FineTuneOptions)
    software: SoftwareOptions = group(SoftwareOptions)
    fresh: bool = flag(help="Trace again, whatever the cache has.")
    lang: Language | None = LANG
    as_json: bool = JSON
    quiet: bool = QUIET
    verbose: bool = flag("-v", "--verbose", help="Every stage, and 40 rows of each table.")


@command(_Options)
def memory(options: _Options) -> Answer:
    """Show where the memory of a step goes, and plan how to fit a card.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50, a standard task like
    task:bert-base or a preset like keras_hub:gpt2_base_en. Arguments of a script follow after --.
    With --log the report of a run that ran out of memory is read, alone or beside a workload. Exit
    code 1 means that nothing that was weighed for a plan fits, or that the log shows an error.
    """
    from tfdyno.core.base.version import VERSION
    from tfdyno.jobs.memory.weigh import check
    from tfdyno.jobs.memory.weigh import memory as answer_of
    from tfdyno.view.memory.document import memory_document
    from tfdyno.view.memory.page import memory_page
    from tfdyno.view.memory.text import memory_text

    asked = _asked(options)
    check(asked)
    _check_files(options, asked)
    with progress_line(quiet=options.quiet, verbose=options.verbose) as progress:
        found = answer_of(asked, progress=progress)
    fits = options.output and found.plans[0].recipe is not None
    return Answer(
        files=(
            (options.output if fits else None, partial(_recipe, found)),
            (options.html, partial(memory_page, found, VERSION)),
        ),
        document=partial(memory_document, found),
        indent=0,
        text=partial(
            memory_text, found, written=str(options.output or ""), verbose=options.verbose
        ),
        exit_code=found.exit_code,
    )


def _asked(options: _Options) -> Asked:
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.memory.weigh import Asked

    return Asked(
        workload=_workload(options),
        gpus=parse_list(options.gpu) if options.gpu else (),
        batch_size=options.batch_size or 0,
        precision=options.precision or "",
        execution=options.execution or "",
        route=options.route,
        fresh=options.fresh,
        plan=options.plan,
        optimizers=_optimizers(options.optimizers),
        log=options.log or "",
    )


def _optimizers(text: str | None) -> tuple[str, ...] | None:
    """Return names in their order, each once; none at all for ``none``."""
    from tfdyno.core.choose.memory_plan import OPTIMIZERS

    if text is None:
        return None
    names = dict.fromkeys(part.strip().lower() for part in text.split(","))
    if set(names) == {"none"}:
        return ()
    return tuple(settings.one_of(name, OPTIMIZERS, "optimizer") for name in names)


def _workload(options: _Options) -> Workload | None:
    if not options.workload:
        return None
    named = WorkloadOptions(workload=options.workload, script_arguments=options.script_arguments)
    return workload_from(
        named, options.code, precision=options.precision, software=options.software,
        fine_tune=options.fine_tune,
    )  # fmt: skip


def _check_files(options: _Options, asked: Asked) -> None:
    """Refuse options that have no use, and files that cannot be written, before any work."""
    for name in given(options, "output", "optimizers") if not options.plan else ():
        raise UsageError(f"{name} goes with --plan")
    if options.output and len(asked.gpus) > 1:
        raise UsageError("--output takes the plan of one card", remedy="name one with --gpu")
    if options.html and asked.workload is None:
        raise UsageError("--html goes with a workload", why="a log alone has no figures")
    check_writable(options.output, options.html)


def _recipe(found: MemoryAnswer) -> str:
    """Write the settings of the plan."""
    from tfdyno.core.recipe.recipe_file import to_toml
    from tfdyno.words.memory.plan import plan_headline

    plan = found.plans[0]
    assert plan.recipe
    head = (plan_headline(plan, found.names[plan.gpu]), *plan.notes)
    return to_toml(plan.recipe, comments=plan.reasons, head=head)
