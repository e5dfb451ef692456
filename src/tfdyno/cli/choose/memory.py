"""``tfdyno memory``: where the memory of a step goes, and how to make it fit a card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import (
    FIT,
    INPUT_SHAPE,
    INPUT_SPEC,
    PYTHON,
    SOFTWARE,
    UNSAFE,
    Filled,
    NewFile,
    OneOf,
    Whole,
    check_writable,
    workload_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.memory_answer import MemoryAnswer
    from tfdyno.jobs.memory.weigh import Asked


@click.command()
@click.argument("workload", required=False)
@click.argument("script_arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--gpu", type=Filled(), metavar="A,B,…", help="Cards, 8 at most, or MIG slices.")
@click.option("--batch-size", type=Whole("batch size"), help="Samples per replica.")
@click.option(
    "--precision", type=OneOf("precision", settings.PRECISIONS),
    help="Hold this one; without it: the script's own, and a plan weighs the card's.",
)  # fmt: skip
@click.option(
    "--execution", type=OneOf("execution", settings.TRAINED_EXECUTIONS),
    help="Without it: what Keras does.",
)  # fmt: skip
@click.option(
    "--route", type=OneOf("route", settings.ROUTES), default="auto", show_default=True,
    help="quick: seconds. exact: compile for the card, and the chosen plan at its own batch.",
)  # fmt: skip
@click.option("--plan", is_flag=True, help="The cheapest settings that make it fit.")
@click.option(
    "--optimizer", "optimizers", type=Filled(), metavar="A,B,…",
    help="Weigh these in a plan (adafactor, lion, sgd), or none; they learn differently.",
)  # fmt: skip
@click.option("--log", type=Filled(), metavar="LOG|-", help="A run that ran out of memory.")
@click.option("-o", "--output", type=NewFile(), metavar="FILE", help="Write the plan's recipe.")
@click.option("--html", type=NewFile(), metavar="FILE", help="Write a page with the figures.")
@INPUT_SHAPE
@INPUT_SPEC
@FIT
@PYTHON
@UNSAFE
@SOFTWARE
@click.option("--fresh", is_flag=True, help="Trace again, whatever the cache has.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Every stage, and 40 rows of each table.")
def memory(**given: Any) -> int:
    """Show where the memory of a step goes, and plan how to fit a card.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50 or a standard task like
    task:bert-base. Arguments of a script follow after --. With --log the report of a run that ran
    out of memory is read, alone or beside a workload. Exit code 1 means that nothing that was
    weighed for a plan fits, or that the log shows an error.
    """
    from tfdyno.jobs.memory.weigh import check
    from tfdyno.jobs.memory.weigh import memory as answer_of

    asked = _asked(given)
    check(asked)
    _check_files(given, asked)
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        answer = answer_of(asked, progress=progress)
    if given["output"]:
        _write_recipe(given["output"], answer)
    if given["html"]:
        _write_page(given["html"], answer)
    _print(answer, given)
    return answer.exit_code


def _asked(given: dict[str, Any]) -> Asked:
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.memory.weigh import Asked

    return Asked(
        workload=workload_from(given, mode="train") if given["workload"] else None,
        gpus=parse_list(given["gpu"]) if given["gpu"] else (),
        batch_size=given["batch_size"] or 0,
        precision=given["precision"] or "",
        execution=given["execution"] or "",
        route=given["route"],
        fresh=given["fresh"],
        plan=given["plan"],
        optimizers=_optimizers(given["optimizers"]),
        log=given["log"] or "",
    )


def _optimizers(text: str | None) -> tuple[str, ...] | None:
    """Names in their order, each once; none at all for ``none``."""
    from tfdyno.core.choose.memory_plan import OPTIMIZERS

    if text is None:
        return None
    names = dict.fromkeys(part.strip().lower() for part in text.split(","))
    if set(names) == {"none"}:
        return ()
    return tuple(settings.one_of(name, OPTIMIZERS, "optimizer") for name in names)


def _check_files(given: dict[str, Any], asked: Asked) -> None:
    """Refuse options that have no use, and files that cannot be written, before any work."""
    for name in ("output", "optimizers"):
        if given[name] is not None and not given["plan"]:
            raise UsageError(f"--{name.removesuffix('s')} goes with --plan")
    if given["output"] and len(asked.gpus) > 1:
        raise UsageError("--output takes the plan of one card", remedy="name one with --gpu")
    if given["html"] and asked.workload is None:
        raise UsageError("--html goes with a workload", why="a log alone has no figures")
    for name in ("output", "html"):
        if given[name]:
            check_writable(given[name])


def _write_recipe(path: Path, answer: MemoryAnswer) -> None:
    """The settings of the plan; where nothing fits there are none, and nothing is written."""
    from tfdyno.core.base.codec import write_atomic
    from tfdyno.core.recipe.recipe_file import to_toml
    from tfdyno.view.memory.plan_words import plan_headline

    plan = answer.plans[0]
    if plan.recipe is None:
        return
    head = (plan_headline(plan, answer.names[plan.gpu]), *plan.notes)
    text = to_toml(plan.recipe, comments=plan.reasons, head=head)
    write_atomic(path, text.encode())


def _write_page(path: Path, answer: MemoryAnswer) -> None:
    from tfdyno import __version__
    from tfdyno.core.base.codec import write_atomic
    from tfdyno.view.memory.page import memory_page

    write_atomic(path, memory_page(answer, __version__).encode())


def _print(answer: MemoryAnswer, given: dict[str, Any]) -> None:
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.memory.document import memory_document

        click.echo(to_json(memory_document(answer)).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.memory.text import memory_text

    colour = colour_wanted()
    text = memory_text(
        answer, written=str(given["output"] or ""), verbose=given["verbose"],
        width=terminal_width(), colour=colour,
    )  # fmt: skip
    click.echo(text, color=colour)
