"""``tfdyno data bench``: an input pipeline by itself, and what it takes to feed a GPU with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer, noted
from tfdyno.cli.command import command, flag, group, option
from tfdyno.cli.options import (
    PYTHON,
    UNSAFE,
    Filled,
    NewFile,
    OneOf,
    Positive,
    Telling,
    Whole,
    check_writable,
)
from tfdyno.cli.progress import progress_line
from tfdyno.cli.workload_options import FIT, CodeOptions, WorkloadOptions, workload_from
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.core.measure.feed import FeedNeed
    from tfdyno.jobs.data.bench import DataBenchRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(WorkloadOptions):
    gpu: str | None = option(type=Filled(), metavar="A,B,…", help="GPUs that are to be fed.")
    batch_size: int | None = option(type=Whole("batch size"), help="Samples in a batch.")
    precision: str | None = option(
        type=OneOf("precision", settings.PRECISIONS), help="Of the step on those GPUs."
    )
    rounds: int = option(
        type=Whole("rounds"), default=5, show_default=True, help="With each number of CPUs."
    )
    seconds: float = option(
        type=Positive("seconds"), metavar="S", default=1.0, show_default=True, help="Of a round."
    )
    cold: bool = flag(
        "--cold/--no-cold", default=True, show_default=True,
        help="Let the system forget the files, to read them from the disk.",
    )  # fmt: skip
    output: Path | None = option(
        type=NewFile(), metavar="FILE", help="Write the answer as JSON, for advise --feed."
    )
    fit_number: int = FIT
    python: str | None = PYTHON
    unsafe: bool = UNSAFE
    told: Telling = group(Telling)


@command(_Options)
def bench(options: _Options) -> Answer:
    """Measure an input pipeline by itself, and the CPUs that feed a GPU.

    WORKLOAD is an unmodified script.py, file.py:function that returns (model, data) or data alone,
    a standard task, or a folder of data convert. Arguments of a script follow after --.

    Nothing is trained. Batches are taken in rounds, with all CPUs and with fewer, then the stages
    and the disk are looked at. Ctrl-C prints what was measured until then.
    """
    from tfdyno.core.base.codec import to_json
    from tfdyno.core.measure.feed_document import data_bench_document
    from tfdyno.jobs.data.bench import check, measured, needs, told
    from tfdyno.view.data.bench_text import data_bench_text

    request, output = _request(options), options.output
    check(request)
    check_writable(output)
    needed: tuple[FeedNeed, ...] = ()
    stop: BaseException | None = None
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        feed = measured(request, progress=progress)
        try:
            if feed.stopped:
                raise KeyboardInterrupt
            needed = needs(feed, request, progress=progress)
        except BaseException as error:  # told after the answer so far
            stop = error
    answer = told(feed, needed)
    return Answer(
        files=((output, lambda: to_json(data_bench_document(answer), indent=2) + b"\n"),),
        document=partial(data_bench_document, answer),
        text=partial(data_bench_text, answer, written=str(output or "")),
        error=stop and noted(stop, "What was measured until then is printed."),
    )


def _request(options: _Options) -> DataBenchRequest:
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.data.bench import DataBenchRequest, reference_of

    code = CodeOptions(fit_number=options.fit_number, python=options.python, unsafe=options.unsafe)
    reference = reference_of(options.workload)
    if options.gpu and reference != options.workload:
        raise UsageError(f"{options.workload} holds no model to estimate on a GPU",
                         remedy="leave --gpu out, and give the file to advise --feed")  # fmt: skip
    return DataBenchRequest(
        workload=workload_from(replace(options, workload=reference), code),
        batch_size=options.batch_size or 0,
        rounds=options.rounds,
        seconds_s=options.seconds,
        cold=options.cold,
        gpus=parse_list(options.gpu) if options.gpu else (),
        precision=options.precision or "",
    )
