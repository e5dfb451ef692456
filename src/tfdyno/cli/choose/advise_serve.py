"""``tfdyno advise --scenario serve``: machines for so many requests a day, answered in time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer
from tfdyno.cli.choose.advise_options import Options, conditions_of
from tfdyno.cli.command import given
from tfdyno.cli.options import check_writable
from tfdyno.cli.progress import progress_line
from tfdyno.cli.workload_options import workload_from
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.serving_size import ServingGoal

if TYPE_CHECKING:
    from tfdyno.jobs.choose.serving_size import SizeRequest

MOST_REQUESTS = 1e12
MOST_PEAK = 1000.0

_ASKED = ("requests_per_day", "p99_ms")
_MORE = ("peak_factor", "rows_per_request", "payload", "spare", "measured", "output")
_OF_TRAINING = ("steps", "epochs", "samples", "deadline_h", "feed", "max_nodes", "network", "link",
                "global_batch", "batch_size")  # fmt: skip


def is_service(options: Options) -> bool:
    """Return whether a service is to be sized; raises ``UsageError`` on contradicting options."""
    of_service = (*_MORE, "usd_per_h") if options.scenario == "serve" else _MORE
    asked, more = given(options, *_ASKED), given(options, *of_service)
    if not asked and not more:
        return False
    if options.scenario != "serve":
        raise UsageError(
            f"{(asked or more)[0]} is for a service",
            why=f"the scenario is {options.scenario}",
            remedy="add --scenario serve, or leave it out",
        )
    missing = [name for name in ("--requests-per-day", "--p99-ms") if name not in asked]
    if missing:
        raise UsageError(
            f"{(asked or more)[0]} needs {' and '.join(missing)}",
            why="a service is sized for a number of requests and a time",
            remedy=f"add {' and '.join(missing)}",
        )
    if contradicted := given(options, *_OF_TRAINING):
        raise UsageError(
            f"{contradicted[0]} contradicts {asked[0]}",
            why="it says how a training runs, and a service answers requests",
            remedy="leave one of them out",
        )
    if options.spot:
        raise UsageError(
            "--spot contradicts --scenario serve", why="a service needs capacity that stays"
        )
    if options.usd_per_h is not None and options.measured is None:
        raise UsageError("--usd-per-h needs --measured", why="it is the price of that machine")
    return True


def size_service(options: Options) -> Answer:
    """Size the service that is asked for."""
    from tfdyno.core.base.codec import to_json
    from tfdyno.jobs.choose.serving_size import check, size
    from tfdyno.view.choose.serving_size_document import size_document
    from tfdyno.view.choose.serving_size_page import size_page
    from tfdyno.view.choose.serving_size_text import size_text

    request = _request(options)
    check(request)
    check_writable(options.html, options.output)
    with progress_line(quiet=options.quiet, verbose=options.verbose) as progress:
        found = size(request, progress=progress)
    return Answer(
        files=(
            (options.html, partial(size_page, found)),
            (options.output, lambda: to_json(size_document(found), indent=1)),
        ),
        document=partial(size_document, found),
        indent=0,
        text=partial(
            size_text, found, show_all=options.show_all, report=str(options.html or ""),
            output=str(options.output or ""),
        ),
    )  # fmt: skip


def _request(options: Options) -> SizeRequest:
    from tfdyno.jobs.choose.serving_measured import read_measured
    from tfdyno.jobs.choose.serving_size import SizeRequest

    return SizeRequest(
        workload=workload_from(
            options, options.code, mode="infer", precision=options.precision,
            software=options.software, fine_tune=options.fine_tune,
        ),
        goal=_goal(options),
        conditions=conditions_of(options),
        precision=options.precision or "",
        execution=options.execution or "",
        binary=options.payload == "binary",
        measured=read_measured(options.measured, options.usd_per_h or 0.0)
        if options.measured
        else None,
        tensorflow=options.software.tensorflow or "",
        route=options.route,
        fresh=options.fresh,
    )  # fmt: skip


def _goal(options: Options) -> ServingGoal:
    requests, peak = options.requests_per_day, options.peak_factor or 3.0
    assert requests
    assert options.p99_ms  # a service is asked for
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
        p99_s=options.p99_ms / 1e3,
        peak_factor=peak,
        rows_per_request=options.rows_per_request or 1,
        spare_machines=options.spare or 0,
        budget_usd=options.budget_usd or 0.0,
    )
