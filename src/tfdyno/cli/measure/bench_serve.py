"""``tfdyno bench --serve URL``: load-test a served model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import HTML, TOLD, Filled, NewFile, Positive, Whole, check_writable
from tfdyno.cli.progress import progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.core.measure.load import LoadResult
    from tfdyno.jobs.bench.load import LoadRequest

FAILED = 1


class Rates(click.ParamType[tuple[float, ...]]):
    """Rates above 0, separated by commas."""

    name = "R,…"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Read the rates, each once, in order; raises ``UsageError``."""
        if isinstance(value, tuple):
            return value
        found = [settings.positive(part.strip(), "rate") for part in str(value).split(",")]
        return tuple(dict.fromkeys(found))


@click.command()
@click.option(
    "--serve", "url", required=True, type=Filled(), metavar="URL",
    help="…/v1/models/NAME or …/v2/models/NAME.",
)  # fmt: skip
@click.option(
    "--clients", type=Whole("clients"), metavar="N",
    help="That wait for each answer (closed loop).  [default: 64]",
)  # fmt: skip
@click.option("--rate", type=Rates(), help="Requests a second that wait for nobody (open loop).")
@click.option(
    "--p99-ms", type=Positive("p99"), metavar="T",
    help="Find the largest rate with p99 within T and no refusals.",
)  # fmt: skip
@click.option(
    "--seconds", type=Positive("seconds"), metavar="S",
    help="Of each load.  [default: 10; 5 with --p99-ms]",
)  # fmt: skip
@click.option("--rows", type=Whole("rows"), default=1, show_default=True, help="In a request.")
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="FILE",
    help=".npz of inputs, or .json of requests, instead of random ones.",
)  # fmt: skip
@click.option(
    "--metrics", "metrics_url", type=Filled(), metavar="URL",
    help="Its Prometheus page, where it is not at /metrics.",
)  # fmt: skip
@click.option("--expect-refusals", is_flag=True, help="429 and 503 do not fail the test.")
@click.option(
    "--timeout-s", type=Positive("timeout"), default=30.0, show_default=True, metavar="S",
    help="After which a request failed.",
)  # fmt: skip
@click.option("--token", type=Filled(), metavar="TEXT", envvar="TFDYNO_SERVE_TOKEN",
              help="Bearer token; or in TFDYNO_SERVE_TOKEN.")  # fmt: skip
@click.option(
    "--ca", type=click.Path(path_type=Path), metavar="FILE", help="Authority to trust, PEM."
)
@click.option("--insecure", is_flag=True, help="Trust any certificate.")
@click.option("--usd-per-h", type=Positive("price"), metavar="X", help="Price of the server.")
@click.option("--offer", type=Filled(), metavar="SLUG", help="The price of tfdyno offers instead.")
@click.option("--seed", type=Whole("seed", least=0), default=0, help="Of inputs and arrivals.")
@click.option("--output", type=NewFile(), metavar="FILE", help="Write all of it as JSON.")
@HTML
@TOLD
@click.pass_context
def bench_serve(ctx: click.Context, /, **given: Any) -> None:
    """Load-test a served model.

    Inputs are made from the model's own metadata. Any answer but 200, an answer that is not this
    model's, or another server than at the start fails the test (exit 1). Latency counts from when
    a request was meant to start. Ctrl-C shows what was measured until then.
    """
    from tfdyno.jobs.bench.load import check, load_test

    question = _question(given)
    check(question)
    for name in ("output", "html"):
        if given[name]:
            check_writable(given[name])
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        result = load_test(question, progress=progress)
    _show(result, given)
    if result.stopped:
        stop = KeyboardInterrupt()
        stop.add_note("What was measured until then is printed.")
        raise stop
    if result.failed:
        ctx.exit(FAILED)


def _question(given: dict[str, Any]) -> LoadRequest:
    from tfdyno.jobs.bench.load import LoadRequest

    if given["rate"] and given["clients"]:
        raise UsageError("--clients and --rate contradict",
                         why="arrivals at a rate wait for no client",
                         remedy="give one of them")  # fmt: skip
    return LoadRequest(
        url=given["url"],
        clients=given["clients"] or 64,
        rates_per_s=given["rate"] or (),
        seconds_s=given["seconds"] or 0.0,
        rows=given["rows"],
        p99_s=(given["p99_ms"] or 0.0) / 1e3,
        data=given["data"],
        metrics_url=given["metrics_url"] or "",
        token=given["token"] or "",
        ca=given["ca"],
        insecure=given["insecure"],
        usd_per_h=given["usd_per_h"],
        offer=given["offer"] or "",
        allow_refusals=given["expect_refusals"],
        timeout_s=given["timeout_s"],
        seed=given["seed"],
    )


def _show(result: LoadResult, given: dict[str, Any]) -> None:
    from tfdyno.core.base.codec import to_json, write_atomic
    from tfdyno.view.bench.load_document import load_document

    written = []
    if given["output"]:
        write_atomic(given["output"], to_json(load_document(result), indent=2) + b"\n")
        written.append(str(given["output"]))
    if given["html"]:
        from tfdyno.view.bench.load_page import load_page

        write_atomic(given["html"], load_page(result).encode())
        written.append(str(given["html"]))
    if given["as_json"]:
        click.echo(to_json(load_document(result), indent=2).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.bench.load_text import load_text

    click.echo(load_text(result, written=written, width=terminal_width(), colour=colour_wanted()))
