"""Load-test a served model: closed or open loop, or the search for the knee."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.offers import all_offers
from tfdyno.core.base.clock import now
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.process_limits import allowed
from tfdyno.core.base.units import significant
from tfdyno.core.measure.load import LoadPlan, LoadResult, LoadStage, ServerFacts, StageRun
from tfdyno.core.measure.load_url import read_load_url
from tfdyno.core.messages.load import LOAD, LoadServer
from tfdyno.jobs.bench._load_doubts import faults, warnings
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.model.measure.load_figures import refusals_of, stage_figures
from tfdyno.model.measure.load_knee import NextProbe, Probe, knee, next_probe
from tfdyno.probe.base import processors
from tfdyno.probe.base.host import this_host
from tfdyno.probe.machine.revision import revision
from tfdyno.words.base.language import ENGLISH, answering, say, say_later
from tfdyno.words.bench.told import stage_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START_LIMIT_S = 300.0
"""The time for metadata, bodies and metrics; this only ends what hangs for ever."""
STOP_GRACE_S = 60.0
"""The time after Ctrl-C for requests under way to be answered."""
PROBE_SECONDS_S = 5.0
"""The time of a rate in the search for the knee, where no seconds are given."""
LEAST_PER_PROBE, MOST_PROBE_S = 300.0, 60.0
"""A probe of a low rate is longer, so that its p99 means something."""
DECIDING_TIMES, DECIDING_REQUESTS, DECIDING_S = 4.0, 1500.0, 120.0
"""What decides on a rate is so many times as long, or has so many requests if these take no more
than that."""
LEAST_DECIDING, MOST_DECIDING_S = 400.0, 600.0
"""A p99 has no upper end below 368 requests, and what has none decides nothing."""
SECONDS_S = 10.0
WARMUP_SHARE, MOST_WARMUP_S = 0.2, 2.0
CHANGED = say_later("between two stretches the server changed")
_BEFORE = {
    True: say_later(" (before: p99 {p99} ms, holds)"),
    False: say_later(" (before: p99 {p99} ms, too much)"),
    None: say_later(" (before: p99 {p99} ms)"),
}
MOST_CLIENTS = 10_000
MOST_PER_S = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Which server is loaded, and how."""

    url: str
    clients: int = 64
    """The clients of the closed loop."""
    rates_per_s: tuple[float, ...] = ()
    """Open loops, one after the other; empty: a closed loop."""
    seconds_s: float = 0.0
    """The time of each; 0: the default."""
    rows: int = 1
    p99_s: float = 0.0
    """The promise whose largest rate is looked for; 0: none."""
    data: Path | None = None
    metrics_url: str = ""
    """A Prometheus page with the server's count of batches; empty: where the server has one."""
    token: str = ""
    ca: Path | None = None
    insecure: bool = False
    usd_per_h: float | None = None
    offer: str = ""
    """Slug of a priced offer."""
    allow_refusals: bool = False
    """Whether 429 and 503 are part of the test."""
    timeout_s: float = 30.0
    seed: int = 0


def check(request: LoadRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    url = read_load_url(request.url)
    if request.clients > MOST_CLIENTS:
        raise UsageError(f"{request.clients:,} clients are too many",
                         remedy=f"{MOST_CLIENTS:,} at most")  # fmt: skip
    if any(rate > MOST_PER_S for rate in request.rates_per_s):
        raise UsageError("such a rate is not possible", remedy=f"{MOST_PER_S:,.0f} at most")
    if request.rates_per_s and request.p99_s:
        raise UsageError("--p99-ms finds the rate by itself", remedy="leave --rate out")
    if (request.insecure or request.ca) and url.scheme != "https":
        raise UsageError("--insecure and --ca go with https", remedy="leave them out")
    if request.insecure and request.ca:
        raise UsageError("--insecure and --ca contradict", remedy="give one of them")
    if request.usd_per_h is not None and request.offer:
        raise UsageError("--usd-per-h and --offer contradict", remedy="give one of them")
    _check_data(request)
    _price(request)


def _check_data(request: LoadRequest) -> None:
    """Refuse files and addresses that cannot be used; raises ``UsageError``."""
    if request.data and request.data.suffix not in (".npz", ".json"):
        raise UsageError(f"{request.data} is no .npz and no .json file")
    if request.metrics_url and not request.metrics_url.startswith(("http://", "https://")):
        raise UsageError(f"{request.metrics_url!r} is no address of metrics")
    if request.data and not request.data.is_file():
        raise UsageError(f"{request.data} does not exist")
    if request.data and request.data.suffix == ".json" and request.rows != 1:
        raise UsageError("--rows does not go with a .json file", why="its bodies have their rows")


def load_test(request: LoadRequest, *, progress: Callable[[str], None] = silent) -> LoadResult:
    """Run every stretch of the test; after Ctrl-C what was measured until then.

    Raises:
        UsageError: Nobody answers, the model is not there, or the data does not fit it.
        ToolError: The client crashed.
    """
    check(request)
    usd_per_h = _price(request)
    stages: list[LoadStage] = []
    server: ServerFacts | None = None
    has_changed = False
    for plan in _plans(request, stages):
        progress(_doing(plan, stages))
        found, run = _stretch(request, plan, progress)
        if server is not None and found != server:
            has_changed = True
        server = server or found
        figures = stage_figures(run, usd_per_h=usd_per_h)
        holds = _holds(run, request.p99_s, LoadStage(run=run, figures=figures))
        stages.append(LoadStage(run=run, figures=figures, holds=holds))
        if run.stopped or _broken(run, request):
            break
    assert server
    result = LoadResult(
        url=request.url,
        server=server,
        stages=tuple(stages),
        p99_limit_s=request.p99_s,
        knee_rate_per_s=knee(_probes(stages)) if request.p99_s else None,
        usd_per_h=usd_per_h,
        offer=request.offer,
        allows_refusals=request.allow_refusals,
        stopped=stages[-1].run.stopped,
        machine=f"{len(allowed())} CPUs ({processors.name(this_host())})",
        made_at=now(),
        tfdyno=revision(),
    )
    return _judged(result, has_changed=has_changed)


def in_english(result: LoadResult) -> LoadResult:
    """Return a test as a file holds it, whatever language its reader was told it in."""
    has_changed = say(CHANGED) in result.faults
    with answering(ENGLISH):
        return _judged(result, has_changed=has_changed)


def _judged(result: LoadResult, *, has_changed: bool) -> LoadResult:
    """Say why the test failed, and what is not sure of its figures."""
    midway = (say(CHANGED),) if has_changed else ()
    return replace(result, faults=(*midway, *faults(result)), warnings=warnings(result))


def _plans(request: LoadRequest, stages: list[LoadStage]) -> Iterator[LoadPlan]:
    """Give one plan after the other; the search looks at the stages that were."""
    seconds_s = request.seconds_s or (PROBE_SECONDS_S if request.p99_s else SECONDS_S)
    closed = LoadPlan(
        clients=request.clients,
        seconds_s=seconds_s,
        warmup_s=min(MOST_WARMUP_S, WARMUP_SHARE * seconds_s),
        timeout_s=request.timeout_s,
        seed=request.seed,
    )
    for rate in request.rates_per_s:
        yield replace(closed, kind="open", rate_per_s=rate)
    if request.rates_per_s:
        return
    yield closed
    while request.p99_s:
        probed = next_probe(_probes(stages), stages[0].figures.accepted_per_s)
        if probed is None:
            return
        # Another seed for every probe: one unlucky burst must not decide them all.
        yield replace(
            closed,
            kind="open",
            rate_per_s=probed.rate_per_s,
            seed=request.seed + len(stages),
            seconds_s=_probe_s(probed, seconds_s),
            decides=probed.decides,
        )


def _probe_s(probed: NextProbe, seconds_s: float) -> float:
    """Return how long a rate is tried, where seconds are given or the default."""
    rate = probed.rate_per_s
    if not probed.decides:
        return min(MOST_PROBE_S, max(seconds_s, LEAST_PER_PROBE / rate))
    wanted_s = max(DECIDING_TIMES * seconds_s, min(DECIDING_S, DECIDING_REQUESTS / rate))
    return max(wanted_s, min(MOST_DECIDING_S, LEAST_DECIDING / rate))


def _probes(stages: list[LoadStage]) -> tuple[Probe, ...]:
    return tuple(
        Probe(
            rate_per_s=one.run.plan.rate_per_s,
            holds=bool(one.holds),
            decides=one.run.plan.decides,
        )
        for one in stages
        if one.run.plan.kind == "open" and not one.run.stopped
    )


def _doing(plan: LoadPlan, stages: list[LoadStage]) -> str:
    so_far = ""
    if stages and (p99 := stages[-1].figures.p99_s):
        so_far = say(_BEFORE[stages[-1].holds], p99=significant(p99.best * 1e3))
    stretch = say("stretch {number}", number=len(stages) + 1)
    return say("{title}: {stage}", title=stretch, stage=_lasting(plan)) + so_far


def _lasting(plan: LoadPlan) -> str:
    """Write ``64 clients for 12 s``."""
    what = (
        say("{count:,} clients", count=plan.clients)
        if plan.kind == "closed"
        else say("{rate} requests/s", rate=significant(plan.rate_per_s))
    )
    return say("{load} for {seconds:g} s", load=what, seconds=plan.seconds_s + plan.warmup_s)


def _stretch(
    request: LoadRequest, plan: LoadPlan, progress: Callable[[str], None]
) -> tuple[ServerFacts, StageRun]:
    asked = LoadServer(
        url=request.url,
        metrics_url=request.metrics_url,
        token=request.token,
        insecure=request.insecure,
        ca=request.ca,
        data=request.data,
        rows=request.rows,
        plan=plan,
    )
    found = run_child(
        LOAD,
        asked,
        progress=lambda stage: progress(
            say(", ||clauses").join([_lasting(plan), stage_words(stage)])
        ),
        timeout_s=START_LIMIT_S + plan.warmup_s + plan.seconds_s + 3 * plan.timeout_s,
        doing=f"loading {request.url}",
        stop_grace_s=STOP_GRACE_S,
    )
    return found.server, found.run


def _holds(run: StageRun, p99_s: float, stage: LoadStage) -> bool | None:
    """Return whether a stretch kept the promise; what arrived must have been answered as it came.

    One that decides has to keep it with the whole interval of its p99.
    """
    if not p99_s or run.plan.kind == "closed":
        return None
    figures = stage.figures
    p99 = figures.p99_s
    if not p99 or refusals_of(run) or figures.errors:
        return False
    return (p99.high if run.plan.decides else p99.best) <= p99_s


def _broken(run: StageRun, request: LoadRequest) -> bool:
    """Return whether nothing that follows could be worth anything."""
    return bool(run.faults or stage_figures(run).errors) or (
        bool(refusals_of(run)) and not request.allow_refusals and not request.p99_s
    )


def _price(request: LoadRequest) -> float | None:
    """Return dollars an hour, as given or of the offer; raises ``UsageError``: unknown offer."""
    if not request.offer:
        return request.usd_per_h
    offers = {one.slug: one for one in all_offers()}
    found = offers.get(request.offer)
    if found is None:
        raise UsageError(f"there is no offer {request.offer!r}",
                         remedy="'tfdyno offers' lists all")  # fmt: skip
    return found.usd_per_h if math.isfinite(found.usd_per_h) else None
