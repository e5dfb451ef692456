"""``tfdyno advise --backends``: TensorFlow and JAX side by side on the cards that are named."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import given
from tfdyno.cli.options import check_writable
from tfdyno.cli.progress import progress_line
from tfdyno.cli.workload_options import workload_from
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.cli.choose.advise_options import Options
    from tfdyno.jobs.choose.backends import BackendsRequest

_OF_OFFERS = (
    "all_fits", "steps", "epochs", "samples", "deadline_h", "budget_usd", "provider", "owned",
    "offers", "counts", "max_nodes", "network", "feed", "requests_per_day", "p99_ms", "peak_factor",
    "rows_per_request", "payload", "spare", "measured", "usd_per_h", "output", "show_all",
    "global_batch", "link", "execution",
)  # fmt: skip


def choose_backend(options: Options) -> Answer:
    """Answer for the cards that are named."""
    from tfdyno.jobs.choose.backends import check, compare_backends
    from tfdyno.view.choose.backends_page import backends_page
    from tfdyno.view.choose.backends_text import backends_document, backends_text

    request = _request(options)
    check(request)
    check_writable(options.html)
    with progress_line(quiet=options.quiet, verbose=options.verbose) as progress:
        found = compare_backends(request, progress=progress)
    return Answer(
        files=((options.html, partial(backends_page, found)),),
        document=partial(backends_document, found),
        indent=0,
        text=partial(backends_text, found),
    )


def _request(options: Options) -> BackendsRequest:
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.choose.advise import INFERENCE
    from tfdyno.jobs.choose.backends import BackendsRequest

    _check(options)
    assert options.gpu
    return BackendsRequest(
        workload=workload_from(
            options, options.code, mode="infer" if options.scenario in INFERENCE else "train",
            precision=options.precision, software=options.software, fine_tune=options.fine_tune,
        ),
        gpus=parse_list(options.gpu),
        batch_size=options.batch_size or 0,
        precision=options.precision or "",
        fresh=options.fresh,
        card_files=not options.no_card_file,
    )  # fmt: skip


def _check(options: Options) -> None:
    """Refuse what does nothing here; raises ``UsageError``."""
    if not options.gpu:
        raise UsageError("--backends needs cards", why="the answer differs from card to card",
                         remedy="name them with --gpu A,B")  # fmt: skip
    unused = given(options, *_OF_OFFERS)
    unused += ["--backend"] if options.software.backend else []
    unused += ["--spot"] if options.spot is not None else []
    unused += ["--route exact"] if options.route == "exact" else []
    if unused:
        raise UsageError(
            f"{unused[0]} does not go with --backends",
            why="that sets the ways to run a step side by side on one card, and prices nothing",
            remedy="leave one of them out",
        )
