"""``tfdyno data bench``: an input pipeline by itself, and what it takes to feed a GPU with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import (
    FIT,
    PYTHON,
    UNSAFE,
    Filled,
    NewFile,
    OneOf,
    Positive,
    Whole,
    check_writable,
    workload_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.measure.feed import FeedNeed
    from tfdyno.jobs.data.bench import DataBenchRequest
    from tfdyno.view.data.bench_document import FeedTold


@click.command()
@click.argument("workload")
@click.argument("script_arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--gpu", type=Filled(), metavar="A,B,…", help="GPUs that are to be fed.")
@click.option("--batch-size", type=Whole("batch size"), help="Samples in a batch.")
@click.option(
    "--precision", type=OneOf("precision", settings.PRECISIONS), help="Of the step on those GPUs."
)
@click.option(
    "--rounds", type=Whole("rounds"), default=5, show_default=True,
    help="With each number of CPUs.",
)  # fmt: skip
@click.option(
    "--seconds", type=Positive("seconds"), metavar="S", default=1.0, show_default=True,
    help="Of a round.",
)  # fmt: skip
@click.option(
    "--cold/--no-cold", default=True, show_default=True,
    help="Let the system forget the files, to read them from the disk.",
)  # fmt: skip
@click.option(
    "--output", type=NewFile(), metavar="FILE", help="Write the answer as JSON, for advise --feed."
)
@FIT
@PYTHON
@UNSAFE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Show every stage.")
def bench(**given: Any) -> None:
    """Measure an input pipeline by itself, and the CPUs that feed a GPU.

    WORKLOAD is an unmodified script.py, file.py:function that returns (model, data) or data alone,
    a standard task, or a folder of data convert. Arguments of a script follow after --.

    Nothing is trained. Batches are taken in rounds, with all CPUs and with fewer, then the stages
    and the disk are looked at. Ctrl-C prints what was measured until then.
    """
    from tfdyno.jobs.data.bench import check, measured, needs, told

    question, output = _question(given), given["output"]
    check(question)
    if output:
        check_writable(output)
    needed: tuple[FeedNeed, ...] = ()
    stop: BaseException | None = None
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        feed = measured(question, progress=progress)
        try:
            if feed.stopped:
                raise KeyboardInterrupt
            needed = needs(feed, question, progress=progress)
        except BaseException as error:  # told after the answer so far
            stop = error
    answer = told(feed, needed)
    _show(answer, output, as_json=given["as_json"])
    if stop:
        stop.add_note("What was measured until then is printed.")
        raise stop


def _question(given: dict[str, Any]) -> DataBenchRequest:
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.data.bench import DataBenchRequest, reference_of

    words = {"precision": "", "input_shapes": (), "input_spec": ()}
    reference = reference_of(given["workload"])
    if given["gpu"] and reference != given["workload"]:
        raise UsageError(f"{given['workload']} holds no model to estimate on a GPU",
                         remedy="leave --gpu out, and give the file to advise --feed")  # fmt: skip
    return DataBenchRequest(
        workload=workload_from({**given, **words, "workload": reference}, mode="train"),
        batch_size=given["batch_size"] or 0,
        rounds=given["rounds"],
        seconds_s=given["seconds"],
        cold=given["cold"],
        gpus=parse_list(given["gpu"]) if given["gpu"] else (),
        precision=given["precision"] or "",
    )


def _show(answer: FeedTold, output: Path | None, *, as_json: bool) -> None:
    from tfdyno.core.base.codec import to_json, write_atomic
    from tfdyno.view.data.bench_document import data_bench_document

    document = to_json(data_bench_document(answer), indent=2)
    if output:
        write_atomic(output, document + b"\n")
    if as_json:
        click.echo(document.decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.data.bench_text import data_bench_text

    written = str(output) if output else ""
    click.echo(
        data_bench_text(answer, written=written, width=terminal_width(), colour=colour_wanted())
    )
