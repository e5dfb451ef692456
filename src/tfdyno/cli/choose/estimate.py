"""``tfdyno estimate``: time and memory of one step on the cards that are named."""

from __future__ import annotations

from typing import Any

import click

from tfdyno.cli.options import Filled, OneOf, Whole, Wholes, workload_from, workload_options
from tfdyno.cli.progress import progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError


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
    help="Cards that train together; several numbers give a table.  [default: 1]",
)
@click.option("--nodes", type=Wholes("nodes"), help="Machines that train together, not --replicas.")
@click.option(
    "--gpus-per-node",
    type=Whole("GPUs per node"),
    help="Cards of a machine.  [default: as many as one usually has]",
)
@click.option(
    "--network",
    type=Filled(),
    metavar="[PORTSx]SLUG",
    help="What joins the machines: ib-hdr-200, 8xib-ndr-400, eth-25g.",
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
    replicas: tuple[int, ...] | None,
    nodes: tuple[int, ...] | None,
    gpus_per_node: int | None,
    network: str | None,
    verify: bool | None,
    explain: bool,
    **given: Any,
) -> None:
    """Predict time and memory of a step on one GPU or many.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50 or a standard task like
    task:bert-base. Arguments of a script follow after --.
    """
    from tfdyno.jobs.choose.estimate import EstimateRequest, check
    from tfdyno.jobs.choose.estimate import estimate as answer_of
    from tfdyno.jobs.machine.card_files import cards_named

    if replicas and nodes:
        raise UsageError("give --replicas or --nodes, not both",
                         why="nodes times GPUs per node are the replicas")  # fmt: skip
    if gpus_per_node and not (replicas or nodes):
        raise UsageError("--gpus-per-node has no use alone",
                         remedy="say with --nodes or --replicas how many train")  # fmt: skip
    question = EstimateRequest(
        workload=workload_from(given, mode=mode),
        gpus=cards_named(gpu),
        batch_size=given["batch_size"] or 0,
        global_batch_size=given["global_batch"] or 0,
        replicas=replicas or (1,),
        nodes=nodes or (),
        gpus_per_node=gpus_per_node or 0,
        network=network or "",
        link=given["link"] or "",
        precision=given["precision"] or "",
        execution=given["execution"] or "",
        route=given["route"],
        verify=verify,
        fresh=given["fresh"],
        card_files=not given["no_card_file"],
        explain=explain,
    )
    check(question)
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        answer = answer_of(question, progress=progress)
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.base.documents import estimate_document

        told = estimate_document(answer.estimates, answer.trace, answer.batch_source,
                                 answer.notes, answer.scaling, answer.sharding)  # fmt: skip
        click.echo(to_json(told).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.choose.estimate_text import estimate_text

    names = {one.slug: one.name for one in question.gpus}
    if answer.scaling:
        from tfdyno.view.choose.scale_out_text import scale_out_text

        table = scale_out_text(
            answer.scaling, names, width=terminal_width(), colour=colour_wanted()
        )
        click.echo(f"{table}\n")
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
    if answer.sharding:
        from tfdyno.view.choose.sharding_text import sharding_text

        ways = sharding_text(answer.sharding, names, width=terminal_width(), colour=colour_wanted())
        click.echo(f"\n{ways}")
    if explain:
        from tfdyno.view.choose.explanation_text import explanations_text

        why = explanations_text(
            answer.estimates, names, width=terminal_width(), colour=colour_wanted()
        )
        click.echo(f"\n\n{why}")
