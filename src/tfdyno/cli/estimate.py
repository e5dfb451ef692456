"""``tfdyno estimate``: time and memory of one step on the cards that are named."""

from __future__ import annotations

from typing import Any

import click

from tfdyno.cli.options import OneOf, Wholes, workload_from, workload_options
from tfdyno.cli.progress import progress_line
from tfdyno.core import settings


@click.command()
@workload_options
@click.option("--gpu", required=True, metavar="A,B,…", help="GPUs, MIG slices, or all.")
@click.option(
    "--mode", type=OneOf("mode", settings.MODES), default="train", show_default=True,
    help="The train step, or the forward pass.",
)  # fmt: skip
@click.option(
    "--replicas",
    type=Wholes("replicas"),
    default="1",
    show_default=True,
    help="Cards that train together.",
)
@click.option(
    "--verify/--no-verify", default=None,
    help="Prove the largest batch by a compile of it.  [default: with --route exact on one card]",
)  # fmt: skip
@click.option(
    "--explain", is_flag=True,
    help="List the kernels behind the time: formula, numbers, constants, sources.",
)  # fmt: skip
def estimate(
    gpu: str,
    mode: str,
    replicas: tuple[int, ...],
    verify: bool | None,
    explain: bool,
    **given: Any,
) -> None:
    """Predict time and memory of a step on one GPU or many.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50 or a standard task like
    task:bert-base. Arguments of a script follow after --.
    """
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.estimate import Question, check
    from tfdyno.jobs.estimate import estimate as answer_of

    question = Question(
        workload=workload_from(given, mode=mode),
        gpus=parse_list(gpu),
        batch_size=given["batch_size"] or 0,
        global_batch_size=given["global_batch"] or 0,
        replicas=replicas,
        link=given["link"] or "",
        precision=given["precision"] or "",
        execution=given["execution"] or "",
        route=given["route"],
        verify=verify,
        fresh=given["fresh"],
        explain=explain,
    )
    check(question)
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        answer = answer_of(question, progress=progress)
    if given["as_json"]:
        from tfdyno.core.codec import to_json
        from tfdyno.view.documents import estimate_document

        click.echo(to_json(estimate_document(answer.estimates, answer.trace, answer.batch_source,
                                             answer.notes)).decode())  # fmt: skip
        return
    from tfdyno.view.estimate_text import estimate_text
    from tfdyno.view.text import colour_wanted, terminal_width

    names = {one.slug: one.name for one in question.gpus}
    click.echo(
        estimate_text(
            answer.estimates,
            answer.trace,
            names,
            batch_source=answer.batch_source,
            notes=answer.notes,
            verbose=given["verbose"],
            width=terminal_width(),
            colour=colour_wanted(),
        )
    )
    if explain:
        from tfdyno.view.explanation_text import explanations_text

        told = explanations_text(
            answer.estimates, names, width=terminal_width(), colour=colour_wanted()
        )
        click.echo(f"\n\n{told}")
