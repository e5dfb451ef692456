"""``tfdyno advise``: every card and offer ranked for a run, with three picks."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from tfdyno.cli.answer import Answer
from tfdyno.cli.choose.advise_options import Options, conditions_of
from tfdyno.cli.choose.advise_serve import is_service, size_service
from tfdyno.cli.command import command
from tfdyno.cli.options import check_writable
from tfdyno.cli.progress import CLEAR, progress_line
from tfdyno.cli.workload_options import workload_from
from tfdyno.core.base.lasting import Lasting
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from tfdyno.jobs.choose.advise import Outcome, Request


@command(Options)
def advise(options: Options) -> Answer:
    """Rank GPUs and cloud offers for a training run, with the cost.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50, a standard task like
    task:bert-base or a preset like keras_hub:gpt2_base_en. Arguments of a script follow after --.
    With --scenario serve, --requests-per-day and --p99-ms it sizes a service instead; with
    --backends it sets TensorFlow and JAX side by side.
    """
    from tfdyno.core.base.collection import nothing_collected
    from tfdyno.jobs.choose.advise import advise as answer_of
    from tfdyno.jobs.choose.advise import check
    from tfdyno.view.base.documents import advice_document
    from tfdyno.view.choose.advice_text import advice_text

    if options.backends:
        from tfdyno.cli.choose.advise_backends import choose_backend

        return choose_backend(options)
    if is_service(options):
        return size_service(options)
    request = _request(options)
    check(request)
    check_writable(options.html)
    earlier: list[Outcome] = []

    def first(early: Outcome) -> None:
        # JSON is one document: there the first answer is a line of progress.
        if options.as_json:
            progress(Lasting(say("first answer: {headline}", headline=early.advice.headline)))
        else:
            earlier.append(early)
            _show_first(early, options.show_all)

    with (
        progress_line(quiet=options.quiet, verbose=options.verbose) as progress,
        nothing_collected(),
    ):
        outcome = answer_of(
            request,
            progress=progress,
            first=first,
            refined=lambda family, so_far: progress(
                Lasting(
                    say(
                        "{family} compiled: {headline}",
                        family=family,
                        headline=so_far.advice.headline,
                    )
                )
            ),
        )
    return Answer(
        files=((options.html, partial(_report, outcome)),),
        document=partial(advice_document, outcome.advice, outcome.trace),
        indent=0,
        text=partial(
            advice_text, outcome.advice, outcome.trace, show_all=options.show_all,
            report=str(options.html or ""),
        ),
        head=say("\nFinal answer\n\n") if earlier else "",
    )  # fmt: skip


def _request(options: Options) -> Request:
    from tfdyno.jobs.choose.advise import INFERENCE, Request
    from tfdyno.jobs.data.bench import read_feed

    return Request(
        workload=workload_from(
            options, options.code, mode="infer" if options.scenario in INFERENCE else "train",
            precision=options.precision, software=options.software, fine_tune=options.fine_tune,
        ),
        conditions=conditions_of(options),
        batch_size=options.batch_size or 0,
        global_batch_size=options.global_batch or 0,
        precision=options.precision or "",
        execution=options.execution or "",
        link=options.link or "",
        network=options.network or "",
        steps=options.steps or 0,
        epochs=options.epochs or 0,
        samples=options.samples or 0,
        deadline_h=options.deadline_h or 0.0,
        budget_usd=options.budget_usd or 0.0,
        tensorflow=options.software.tensorflow or "",
        route=options.route,
        fresh=options.fresh,
        card_files=not options.no_card_file,
        feed=read_feed(options.feed) if options.feed else None,
        all_fits=options.all_fits,
        details=options.html is not None,  # nothing else shows them
    )  # fmt: skip


def _report(outcome: Outcome) -> str:
    from tfdyno.view.choose.html import render_report

    return render_report(
        advice=outcome.advice, trace=outcome.trace, program=outcome.program, gpus=outcome.gpus
    )


def _show_first(outcome: Outcome, show_all: bool) -> None:
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.choose.advice_text import first_text

    if sys.stderr.isatty():
        click.echo(CLEAR, nl=False, err=True)  # the line of progress
    width, colour = terminal_width(), colour_wanted()
    click.echo(first_text(outcome.advice, show_all=show_all, width=width, colour=colour))
