"""``tfdyno advise``: every card and offer ranked for a run, with three picks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from tfdyno.cli.choose.advise_serve import is_service, serving_options, size_service
from tfdyno.cli.options import (
    HTML,
    Filled,
    OneOf,
    Positive,
    Whole,
    Wholes,
    check_writable,
    workload_from,
    workload_options,
)
from tfdyno.cli.progress import CLEAR, progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.choose.advice import Scenario

if TYPE_CHECKING:
    from tfdyno.jobs.choose.advise import Outcome, Request


@click.command()
@workload_options
@click.option(
    "--steps",
    type=Whole("steps", most=settings.MOST_STEPS),
    help="Optimizer steps, on any number of GPUs.",
)
@click.option("--epochs", type=Whole("epochs"), help="Passes over the data, which GPUs share.")
@click.option("--samples", type=Whole("samples"), help="Samples in one epoch.")
@click.option("--deadline-h", type=Positive("deadline"), metavar="HOURS", help="Finish in time.")
@click.option("--budget-usd", type=Positive("budget"), metavar="US$", help="Cost at most.")
@click.option(
    "--scenario",
    type=OneOf("scenario", get_args(Scenario)),
    default="research",
    show_default=True,
    help="What the machine is for; see the how-to.",
)
@click.option("--provider", type=Filled(), metavar="A,B,…", help="Only these providers.")
@click.option("--gpu", type=Filled(), metavar="A,B,…", help="Only these GPUs or MIG slices.")
@click.option("--owned", type=Filled(), metavar="A,B,…", help="Cards that you have already.")
@click.option("--offers", type=click.Path(path_type=Path), metavar="FILE", help="Your own prices.")
@click.option("--spot/--no-spot", default=None, help="Only spot capacity, or none of it.")
@click.option(
    "--count", "--replicas", "counts", type=Wholes("count"), help="Only so many GPUs at once."
)
@click.option("--max-nodes", type=Whole("nodes"), help="Weigh up to so many machines together.")
@click.option(
    "--network",
    type=Filled(),
    metavar="[PORTSx]SLUG",
    help="What joins the machines: 8xib-ndr-400, efa-v2-p5.",
)
@click.option(
    "--feed", type=click.Path(path_type=Path), metavar="FILE",
    help="Input as data bench measured it: vCPUs may hold GPUs back.",
)  # fmt: skip
@serving_options
@click.option("--all", "show_all", is_flag=True, help="Show every row.")
@HTML
def advise(show_all: bool, html: Path | None, **given: Any) -> None:
    """Rank GPUs and cloud offers for a training run, with the cost.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50 or a standard task like
    task:bert-base. Arguments of a script follow after --. With --scenario serve,
    --requests-per-day and --p99-ms it sizes a service instead.
    """
    from tfdyno.jobs.choose.advise import advise as answer_of
    from tfdyno.jobs.choose.advise import check

    if is_service(given):
        size_service(given, show_all=show_all, html=html)
        return
    request = _request(given)
    check(request)
    if html:
        check_writable(html)
    as_json = given["as_json"]
    earlier: list[Outcome] = []

    def first(early: Outcome) -> None:
        # JSON is one document: there the first answer is a line of progress.
        if as_json:
            progress(Lasting(f"first answer: {early.advice.headline}"))
        else:
            earlier.append(early)
            _show_first(early, show_all)

    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        outcome = answer_of(
            request,
            progress=progress,
            first=first,
            refined=lambda family, so_far: progress(
                Lasting(f"{family} compiled: {so_far.advice.headline}")
            ),
        )
    if html:
        _write_report(outcome, html)
    if as_json:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.base.documents import advice_document

        click.echo(to_json(advice_document(outcome.advice, outcome.trace)).decode())
    else:
        if earlier:
            click.echo("\nFinal answer\n")
        _show(outcome, show_all, html)


def _request(given: dict[str, Any]) -> Request:
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.choose.advise import INFERENCE, Request
    from tfdyno.jobs.choose.market import Conditions
    from tfdyno.jobs.data.bench import read_feed

    scenario = given["scenario"]
    names = (name.strip().lower() for name in (given["provider"] or "").split(","))
    return Request(
        workload=workload_from(given, mode="infer" if scenario in INFERENCE else "train"),
        conditions=Conditions(
            gpus=parse_list(given["gpu"]) if given["gpu"] else (),
            providers=tuple(filter(None, names)),
            counts=given["counts"] or (),
            spot=given["spot"],
            owned=parse_list(given["owned"]) if given["owned"] else (),
            offers_file=given["offers"],
            scenario=scenario,
            max_nodes=given["max_nodes"] or 1,
        ),
        batch_size=given["batch_size"] or 0,
        global_batch_size=given["global_batch"] or 0,
        precision=given["precision"] or "",
        execution=given["execution"] or "",
        link=given["link"] or "",
        network=given["network"] or "",
        steps=given["steps"] or 0,
        epochs=given["epochs"] or 0,
        samples=given["samples"] or 0,
        deadline_h=given["deadline_h"] or 0.0,
        budget_usd=given["budget_usd"] or 0.0,
        tensorflow=given["tensorflow"] or "",
        route=given["route"],
        fresh=given["fresh"],
        card_files=not given["no_card_file"],
        feed=read_feed(given["feed"]) if given["feed"] else None,
    )


def _write_report(outcome: Outcome, path: Path) -> None:
    from tfdyno.core.base.codec import write_atomic
    from tfdyno.view.choose.html import render_report

    page = render_report(
        advice=outcome.advice, trace=outcome.trace, program=outcome.program, gpus=outcome.gpus
    )
    write_atomic(path, page.encode())


def _show_first(outcome: Outcome, show_all: bool) -> None:
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.choose.advice_text import first_text

    if sys.stderr.isatty():
        click.echo(CLEAR, nl=False, err=True)  # the line of progress
    width, colour = terminal_width(), colour_wanted()
    click.echo(first_text(outcome.advice, show_all=show_all, width=width, colour=colour))


def _show(outcome: Outcome, show_all: bool, html: Path | None) -> None:
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.choose.advice_text import advice_text

    click.echo(
        advice_text(
            outcome.advice,
            outcome.trace,
            show_all=show_all,
            report=str(html) if html else "",
            width=terminal_width(),
            colour=colour_wanted(),
        )
    )
