"""``tfdyno bench --serve URL``: load-test a served model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer, noted
from tfdyno.cli.command import PATH, command, flag, group, option
from tfdyno.cli.options import (
    HTML,
    LANG,
    Filled,
    NewFile,
    Positive,
    Several,
    Telling,
    Whole,
    check_writable,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from tfdyno.jobs.bench.load import LoadRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    url: str = option(
        "--serve", type=Filled(), required=True, metavar="URL",
        help="…/v1/models/NAME or …/v2/models/NAME.",
    )  # fmt: skip
    clients: int | None = option(
        type=Whole("clients"), metavar="N",
        help="That wait for each answer (closed loop).  [default: 64]",
    )  # fmt: skip
    rate: tuple[float, ...] | None = option(
        type=Several("R,…", lambda text: settings.positive(text, "rate")),
        help="Requests a second that wait for nobody (open loop).",
    )
    p99_ms: float | None = option(
        type=Positive("p99"), metavar="T",
        help="Find the largest rate with p99 within T and no refusals.",
    )  # fmt: skip
    seconds: float | None = option(
        type=Positive("seconds"), metavar="S", help="Of each load.  [default: 10; 5 with --p99-ms]"
    )
    rows: int = option(type=Whole("rows"), default=1, show_default=True, help="In a request.")
    data: Path | None = option(
        type=PATH, metavar="FILE",
        help=".npz of inputs, or .json of requests, instead of random ones.",
    )  # fmt: skip
    metrics_url: str | None = option(
        "--metrics", type=Filled(), metavar="URL",
        help="Its Prometheus page, where it is not at /metrics.",
    )  # fmt: skip
    expect_refusals: bool = flag(help="429 and 503 do not fail the test.")
    timeout_s: float = option(
        type=Positive("timeout"), default=30.0, show_default=True, metavar="S",
        help="After which a request failed.",
    )  # fmt: skip
    token: str | None = option(
        type=Filled(), metavar="TEXT", envvar="TFDYNO_SERVE_TOKEN",
        help="Bearer token; or in TFDYNO_SERVE_TOKEN.",
    )  # fmt: skip
    ca: Path | None = option(type=PATH, metavar="FILE", help="Authority to trust, PEM.")
    insecure: bool = flag(help="Trust any certificate.")
    usd_per_h: float | None = option(
        type=Positive("price"), metavar="X", help="Price of the server."
    )
    offer: str | None = option(
        type=Filled(), metavar="SLUG", help="The price of tfdyno offers instead."
    )
    seed: int = option(type=Whole("seed", least=0), default=0, help="Of inputs and arrivals.")
    output: Path | None = option(type=NewFile(), metavar="FILE", help="Write all of it as JSON.")
    html: Path | None = HTML
    lang: Language | None = LANG
    told: Telling = group(Telling)


@command(_Options)
def bench_serve(options: _Options) -> Answer:
    """Load-test a served model.

    Inputs are made from the model's own metadata. Any answer but 200, an answer that is not this
    model's, or another server than at the start fails the test (exit 1). Latency counts from when
    a request was meant to start. Ctrl-C shows what was measured until then.
    """
    from tfdyno.core.base.codec import to_json
    from tfdyno.jobs.bench.load import check, in_english, load_test
    from tfdyno.view.bench.load_page import load_page
    from tfdyno.view.bench.load_text import load_document, load_text

    request = _request(options)
    check(request)
    written = [path for path in (options.output, options.html) if path]
    check_writable(*written)
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        found = load_test(request, progress=progress)
    return Answer(
        files=(
            (options.output, lambda: to_json(load_document(in_english(found)), indent=2) + b"\n"),
            (options.html, partial(load_page, found)),
        ),
        document=partial(load_document, found),
        text=partial(load_text, found, written=[str(path) for path in written]),
        exit_code=int(found.failed),
        error=noted(KeyboardInterrupt(), say("What was measured until then is printed."))
        if found.stopped
        else None,
    )


def _request(options: _Options) -> LoadRequest:
    from tfdyno.jobs.bench.load import LoadRequest

    if options.rate and options.clients:
        raise UsageError("--clients and --rate contradict",
                         why="arrivals at a rate wait for no client",
                         remedy="give one of them")  # fmt: skip
    return LoadRequest(
        url=options.url,
        clients=options.clients or 64,
        rates_per_s=options.rate or (),
        seconds_s=options.seconds or 0.0,
        rows=options.rows,
        p99_s=(options.p99_ms or 0.0) / 1e3,
        data=options.data,
        metrics_url=options.metrics_url or "",
        token=options.token or "",
        ca=options.ca,
        insecure=options.insecure,
        usd_per_h=options.usd_per_h,
        offer=options.offer or "",
        allow_refusals=options.expect_refusals,
        timeout_s=options.timeout_s,
        seed=options.seed,
    )
