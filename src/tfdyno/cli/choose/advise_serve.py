"""``tfdyno advise --scenario serve``: machines for so many requests a day, answered in time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import OneOf, Positive, Whole, check_writable, workload_from
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.serving_size import ServingGoal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.serving_size import ServingSize
    from tfdyno.jobs.choose.market import Conditions
    from tfdyno.jobs.choose.serving_size import Measured, SizeRequest

MOST_REQUESTS = 1e12
MOST_PEAK = 1000.0

_ASKED = {"requests_per_day": "--requests-per-day", "p99_ms": "--p99-ms"}
_MORE = {
    "peak_factor": "--peak-factor",
    "rows_per_request": "--rows-per-request",
    "payload": "--payload",
    "spare": "--spare",
    "measured": "--measured",
    "usd_per_h": "--usd-per-h",
    "output": "--output",
}
_OF_TRAINING = {
    "steps": "--steps",
    "epochs": "--epochs",
    "samples": "--samples",
    "deadline_h": "--deadline-h",
    "feed": "--feed",
    "max_nodes": "--max-nodes",
    "network": "--network",
    "link": "--link",
    "global_batch": "--global-batch",
    "batch_size": "--batch-size",
}
_OPTIONS = (
    click.option("--requests-per-day", type=Positive("requests per day"), metavar="N",
                 help="Serve: requests to answer."),
    click.option("--p99-ms", type=Positive("p99"), metavar="MS",
                 help="Serve: 99 of 100 are answered within."),
    click.option("--peak-factor", type=Positive("peak factor"), metavar="K",
                 help="Serve: busiest rate over the mean.  [default: 3]"),
    click.option("--rows-per-request", type=Whole("rows per request"),
                 help="Serve: samples in a request.  [default: 1]"),
    click.option("--payload", type=OneOf("payload", ("json", "binary")),
                 help="Serve: what requests come as.  [default: json]"),
    click.option("--spare", type=Whole("spare machines", least=0, most=100),
                 help="Serve: machines beyond the peak's; 1 is N+1.  [default: 0]"),
    click.option("--measured", type=click.Path(path_type=Path), metavar="FILE",
                 help="Serve: latency by batch of a machine of yours, such as a CPU."),
    click.option("--usd-per-h", type=Positive("price"), metavar="US$",
                 help="Serve: price of the machine of --measured."),
    click.option("--output", type=click.Path(path_type=Path), metavar="FILE",
                 help="Serve: write the answer as JSON."),
)  # fmt: skip


def serving_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that only a service has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_service(given: dict[str, Any]) -> bool:
    """Whether a service is to be sized; raises ``UsageError`` where the options contradict."""
    asked = [name for key, name in _ASKED.items() if given[key] is not None]
    more = [name for key, name in _MORE.items() if given[key] is not None]
    if not asked and not more:
        return False
    if given["scenario"] != "serve":
        raise UsageError(
            f"{(asked or more)[0]} is for a service",
            why=f"the scenario is {given['scenario']}",
            remedy="add --scenario serve, or leave it out",
        )
    missing = [name for name in _ASKED.values() if name not in asked]
    if missing:
        raise UsageError(
            f"{(asked or more)[0]} needs {' and '.join(missing)}",
            why="a service is sized for a number of requests and a time",
            remedy=f"add {' and '.join(missing)}",
        )
    contradicted = [name for key, name in _OF_TRAINING.items() if given[key] is not None]
    if contradicted:
        raise UsageError(
            f"{contradicted[0]} contradicts {asked[0]}",
            why="it says how a training runs, and a service answers requests",
            remedy="leave one of them out",
        )
    if given["spot"]:
        raise UsageError(
            "--spot contradicts --scenario serve", why="a service needs capacity that stays"
        )
    if given["usd_per_h"] is not None and given["measured"] is None:
        raise UsageError("--usd-per-h needs --measured", why="it is the price of that machine")
    return True


def size_service(given: dict[str, Any], *, show_all: bool, html: Path | None) -> None:
    """Size, and print or write what was found."""
    from tfdyno.core.base.codec import to_json, write_atomic
    from tfdyno.jobs.choose.serving_size import check, size
    from tfdyno.view.choose.serving_size_document import size_document

    request = _request(given)
    check(request)
    output: Path | None = given["output"]
    for path in filter(None, (html, output)):
        check_writable(path)
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = size(request, progress=progress)
    document = size_document(found)
    if html:
        _write_page(found, html)
    if output:
        write_atomic(output, to_json(document, indent=1))
    if given["as_json"]:
        click.echo(to_json(document).decode())
    else:
        _show(found, show_all=show_all, html=html, output=output)


def _request(given: dict[str, Any]) -> SizeRequest:
    from tfdyno.jobs.choose.serving_size import SizeRequest

    return SizeRequest(
        workload=workload_from(given, mode="infer"),
        goal=_goal(given),
        conditions=_conditions(given),
        precision=given["precision"] or "",
        execution=given["execution"] or "",
        binary=given["payload"] == "binary",
        measured=_measured(given),
        tensorflow=given["tensorflow"] or "",
        route=given["route"],
        fresh=given["fresh"],
    )


def _conditions(given: dict[str, Any]) -> Conditions:
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.choose.market import Conditions

    names = (name.strip().lower() for name in (given["provider"] or "").split(","))
    return Conditions(
        gpus=parse_list(given["gpu"]) if given["gpu"] else (),
        providers=tuple(filter(None, names)),
        counts=given["counts"] or (),
        spot=given["spot"],
        owned=parse_list(given["owned"]) if given["owned"] else (),
        offers_file=given["offers"],
        scenario="serve",
    )


def _goal(given: dict[str, Any]) -> ServingGoal:
    requests, peak = given["requests_per_day"], given["peak_factor"] or 3.0
    if requests > MOST_REQUESTS:
        raise UsageError(f"{requests:.3g} requests per day are not possible",
                         remedy=f"give at most {MOST_REQUESTS:,.0f}")  # fmt: skip
    if not 1.0 <= peak <= MOST_PEAK:
        raise UsageError(
            f"a peak factor of {peak:g} is not possible",
            why="the busiest time cannot have fewer requests than the mean of the day"
            if peak < 1.0
            else "",
            remedy=f"give 1 to {MOST_PEAK:g}",
        )
    return ServingGoal(
        requests_per_day=requests,
        p99_s=given["p99_ms"] / 1e3,
        peak_factor=peak,
        rows_per_request=given["rows_per_request"] or 1,
        spare_machines=given["spare"] or 0,
        budget_usd=given["budget_usd"] or 0.0,
    )


def _measured(given: dict[str, Any]) -> Measured | None:
    from tfdyno.jobs.choose.serving_measured import read_measured

    path: Path | None = given["measured"]
    return read_measured(path, given["usd_per_h"] or 0.0) if path else None


def _write_page(found: ServingSize, path: Path) -> None:
    from tfdyno.core.base.codec import write_atomic
    from tfdyno.view.choose.serving_size_page import size_page

    write_atomic(path, size_page(found).encode())


def _show(found: ServingSize, *, show_all: bool, html: Path | None, output: Path | None) -> None:
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.choose.serving_size_text import size_text

    click.echo(
        size_text(
            found,
            show_all=show_all,
            report=str(html or ""),
            output=str(output or ""),
            width=terminal_width(),
            colour=colour_wanted(),
        )
    )
