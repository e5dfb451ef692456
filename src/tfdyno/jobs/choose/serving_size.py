"""Size a service: every card and offer that answers so many requests in time, by cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import serving_overhead
from tfdyno.catalog.software import NEWEST, check_release, wheel_support
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.interval import Interval
from tfdyno.core.base.settings import Route
from tfdyno.core.choose.serving_size import (
    DAYS_PER_MONTH,
    HOURS_PER_MONTH,
    Limit,
    Replica,
    ServingCandidate,
    ServingGoal,
    ServingSize,
    Verdict,
)
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose._serving_answer import answer, late_s
from tfdyno.jobs.choose.exact import add_cached, add_compiled
from tfdyno.jobs.choose.market import Conditions, supplies
from tfdyno.jobs.choose.predict import StepSettings, check_vendor, predictor_for
from tfdyno.jobs.choose.trace import Traced
from tfdyno.words.base.language import say
from tfdyno.words.choose.serving_size import MEASURED, ms, replica_reason, row_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfdyno.core.choose.hardware import Gpu, Offer
    from tfdyno.core.choose.serving_size import Answered, LatencyCurve
    from tfdyno.core.choose.workload import Trace
    from tfdyno.jobs.choose.market import Supply
    from tfdyno.jobs.choose.predict import Predictor
    from tfdyno.model.serving.fleet import Capacity

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_MUCH_RATIO = 3.0
"""Times the front's least work from which reading JSON is told."""
SERVED_AS = "graph"
"""How TensorFlow runs a SavedModel with a batch of any size: without XLA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A machine whose batches somebody timed."""

    name: str
    latency_s: dict[int, float]
    """Rows of a batch to its seconds."""
    usd_per_h: float = 0.0
    """0: nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRequest:
    """A model, what it has to answer, and what the user rules out."""

    workload: Workload | Traced
    goal: ServingGoal
    conditions: Conditions = field(default_factory=lambda: Conditions(scenario="serve"))
    precision: str = ""
    execution: str = ""
    """Empty: as a SavedModel is served, by TensorFlow's graph."""
    binary: bool = False
    """Whether requests come as binary tensors; else as JSON."""
    measured: Measured | None = None
    tensorflow: str = ""
    route: Route = "auto"
    fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sized:
    """A replica with the tables that its answers come from, in requests."""

    replica: Replica
    best_s: dict[int, float]
    high_s: dict[int, float]


def check(request: SizeRequest) -> None:
    """Refuse what has no answer, before any work; raises ``UsageError``."""
    check_vendor(request.conditions.gpus)
    check_vendor(request.conditions.owned)
    if request.goal.rows_per_request > SIZES[-1]:
        raise UsageError(
            f"{request.goal.rows_per_request:,} rows in a request are not weighed",
            why=f"the largest batch that is weighed has {SIZES[-1]} rows",
            remedy="split the requests",
        )
    if request.tensorflow:
        check_release(request.tensorflow)
    if request.route == "exact" and request.execution != "xla":
        raise UsageError(
            "--route exact compiles for XLA, which does not run a SavedModel",
            remedy="add --execution xla for a server that does, or leave --route out",
        )


def size(request: SizeRequest, *, progress: Callable[[str], None] = silent) -> ServingSize:
    """Answer a request.

    Raises:
        UsageError: A setting is wrong or contradicts another, or the workload cannot be traced.
        ToolError: The trace failed.
    """
    check(request)
    market, unpriced = _market(request.conditions)
    predictor = predictor_for(
        request.workload,
        StepSettings(precision=request.precision, execution=request.execution or SERVED_AS),
        fresh=request.fresh, progress=progress,
    )  # fmt: skip
    predictor, notes = _by_route(predictor, request, [supply.gpu for supply in market], progress)
    host_s = _host_s(predictor.traced.trace, request)
    sized: dict[tuple[str, float], _Sized] = {}
    found = []
    for supply in market:
        key = supply.gpu.slug, supply.offer.gpu_fraction if supply.offer else 1.0
        if key not in sized:
            progress(say("queue of {card}", card=supply.gpu.name))
            sized[key] = _card(supply.gpu, predictor, request, host_s)
        found.append(_candidate(sized[key], supply.offer, request.goal))
    if request.measured:
        ours = _timed(request.measured, request, host_s)
        sized[request.measured.name, 1.0] = ours
        found.append(_candidate(ours, _at_price(request.measured), request.goal))
    return answer(
        request,
        predictor,
        _ranked(found),
        curve_of=partial(_curve, list(sized.values()), request.goal),
        notes=(*_single_batch(predictor), *_json_note(host_s), *unpriced, *notes),
        host_s=host_s,
    )


def _curve(found: Sequence[_Sized], goal: ServingGoal, replica: Replica) -> LatencyCurve:
    from tfdyno.model.serving.fleet import curve

    sized = next(one for one in found if one.replica is replica)
    return curve(sized.best_s, sized.high_s, sized.replica, goal.rows_per_request)


def _market(conditions: Conditions) -> tuple[tuple[Supply, ...], tuple[str, ...]]:
    """Return offers; cards without one only where they were named, for there are many of them."""
    found = supplies(conditions)
    priced = tuple(one for one in found if one.offer)
    if conditions.gpus or not priced:
        return found, ()
    left = len({one.gpu.slug for one in found} - {one.gpu.slug for one in priced})
    note = say(
        "{count} cards that nobody offers were not weighed; name them with --gpu.", count=left
    )
    return priced, (note,) if left else ()


def _by_route(
    predictor: Predictor,
    request: SizeRequest,
    gpus: Sequence[Gpu],
    progress: Callable[[str], None],
) -> tuple[Predictor, tuple[str, ...]]:
    """Use compiled programs: they settle memory, and the time of a model that XLA runs."""
    if request.route == "quick":
        return predictor, ()
    predictor = add_cached(predictor, gpus)
    if request.route != "exact":
        return predictor, ()
    predictor, notes = add_compiled(predictor, gpus, progress=progress)
    return replace(predictor, exact_time=True), notes


def _host_s(trace: Trace, request: SizeRequest) -> float:
    """Return seconds of the front for one request."""
    overhead = serving_overhead()
    numbers = 0 if request.binary else _numbers_per_row(trace) * request.goal.rows_per_request
    return overhead.front_request_s + numbers * overhead.front_number_s


def _numbers_per_row(trace: Trace) -> float:
    found = 0.0
    for tensor in trace.tensors:
        if tensor.role == "input":
            count = 1.0
            for length in tensor.shape:
                count *= length
            found += count / trace.batch_size
    return found


def _json_note(host_s: float) -> tuple[str, ...]:
    binary_s = serving_overhead().front_request_s
    if host_s < _MUCH_RATIO * binary_s:
        return ()
    return (
        say(
            "A request as JSON takes the front {ms}, as binary tensors {other}: weigh "
            "that with --payload binary.",
            ms=ms(host_s),
            other=ms(binary_s),
        ),
    )


def _single_batch(predictor: Predictor) -> tuple[str, ...]:
    trace = predictor.traced.trace
    if trace.marker:
        return ()
    return (
        say(
            "The batch of {batch} is part of the model: no other is weighed.",
            batch=trace.batch_size,
        ),
    )


def _card(gpu: Gpu, predictor: Predictor, request: SizeRequest, host_s: float) -> _Sized:
    """Return latency of every batch that fits on the card, and how a replica does with it."""
    trace = predictor.traced.trace
    latency_s: dict[int, Interval] = {}
    for rows in SIZES if trace.marker else (trace.batch_size,):
        estimate = predictor.estimate(gpu, batch_size=rows)
        if estimate.fits in ("no", "may not"):
            break
        latency_s[rows] = estimate.step_s
    release = request.tensorflow or trace.versions.get("tensorflow", "") or NEWEST
    runs = wheel_support(gpu, release).verdict != "cannot"
    return _sized(gpu.slug, gpu.name, latency_s, request.goal, host_s, runs=runs)


def _timed(measured: Measured, request: SizeRequest, host_s: float) -> _Sized:
    exact = {
        rows: Interval(low=time, best=time, high=time) for rows, time in measured.latency_s.items()
    }
    return _sized(measured.name, measured.name, exact, request.goal, host_s, source="measured")


def _sized(
    slug: str,
    name: str,
    latency_s: dict[int, Interval],
    goal: ServingGoal,
    host_s: float,
    *,
    runs: bool = True,
    source: str = "estimated",
) -> _Sized:
    from tfdyno.model.serving.fleet import call_times, capacity

    overhead = serving_overhead()
    fits = bool(latency_s) and max(latency_s) >= goal.rows_per_request
    best_s, high_s = (
        call_times(latency_s, goal.rows_per_request, overhead, high=high) if fits else {}
        for high in (False, True)
    )
    done = capacity(high_s, host_s, goal, overhead) if fits and runs else None
    batching = done.batching if done else None
    replica = Replica(
        gpu=slug,
        gpu_name=name,
        latency_s=latency_s,
        latency_source=source,
        max_batch_size=(batching.max_batch_size if batching else 1) * goal.rows_per_request,
        max_delay_s=batching.max_delay_s if batching else 0.0,
        most_per_s=done.most_per_s if done else 0.0,
        host_s=host_s,
        bound_by=_bound(done, latency_s),
        reason=batching.reason if batching else "",
        fits=fits,
        runs=runs,
    )
    said = replica_reason(replica, goal, high_s)
    return _Sized(replica=replace(replica, reason=said), best_s=best_s, high_s=high_s)


def _bound(done: Capacity | None, latency_s: Mapping[int, Interval]) -> Limit:
    if done is None:
        return "memory"
    full = done.batching.max_batch_size >= max(latency_s) and max(latency_s) < SIZES[-1]
    return "memory" if done.bound_by == "rate" and full else done.bound_by


def _candidate(sized: _Sized, offer: Offer | None, goal: ServingGoal) -> ServingCandidate:
    from tfdyno.model.serving.fleet import machines_for

    replica, each = sized.replica, offer.gpu_count if offer else 1
    needed = machines_for(replica, each, goal)
    machines = needed + goal.spare_machines if needed else 0
    count = machines * each
    per_month = offer.usd_per_h * HOURS_PER_MONTH * machines if offer and machines else None
    requests = goal.requests_per_day * DAYS_PER_MONTH
    at_peak = _answered(sized, needed * each, goal.peak_per_s, goal) if needed else None
    draft = ServingCandidate(
        replica=replica,
        offer=offer,
        machines=machines,
        count=count,
        at_peak=at_peak,
        at_mean=_answered(sized, count, goal.mean_per_s, goal) if needed else None,
        usd_per_month=per_month,
        usd_per_million=per_month / requests * 1e6 if per_month is not None else None,
        verdict=_verdict(replica, needed, per_month, goal),
        reason="",
    )
    return replace(draft, reason=row_reason(draft, goal))


def _answered(
    sized: _Sized, replicas: int, rate_per_s: float, goal: ServingGoal
) -> Answered | None:
    from tfdyno.model.serving.fleet import answered

    each = rate_per_s / replicas
    return answered(sized.best_s, sized.high_s, sized.replica, each, goal.rows_per_request)


def _verdict(
    replica: Replica, needed: int, usd_per_month: float | None, goal: ServingGoal
) -> Verdict:
    if not replica.runs:
        return "cannot run"
    if not replica.fits:
        return "does not fit"
    if not needed:
        return "too slow"
    if usd_per_month is None:
        return "no offer"
    return "too dear" if goal.budget_usd and usd_per_month > goal.budget_usd else "feasible"


_ORDER: tuple[Verdict, ...] = (
    "feasible", "too dear", "no offer", "too slow", "does not fit", "cannot run"
)  # fmt: skip


def _ranked(found: Sequence[ServingCandidate]) -> tuple[ServingCandidate, ...]:
    """Rank feasible ones by cost, then by how late; the front of both is marked."""
    from tfdyno.model.choose.pareto import pareto_front

    def key(one: ServingCandidate) -> tuple[int, float, float, str]:
        usd = one.usd_per_month if one.usd_per_month is not None else 0.0
        late = one.at_peak.p99_s if one.at_peak else one.replica.latency_s.get(
            1, Interval(low=0.0, best=0.0, high=float("inf"))).high  # fmt: skip
        return _ORDER.index(one.verdict), usd, late, one.slug

    ordered = sorted(found, key=key)
    feasible = [one for one in ordered if one.verdict == "feasible" and one.at_peak]
    points = [(one.usd_per_month or 0.0, late_s(one)) for one in feasible]
    front = {feasible[index].slug for index in pareto_front(points)}
    return tuple(replace(one, pareto=one.slug in front) for one in ordered)


def _at_price(measured: Measured) -> Offer | None:
    from tfdyno.core.choose.hardware import OWNED, Offer

    if not measured.usd_per_h:
        return None
    return Offer(
        slug=f"{MEASURED}/{measured.name}", provider=OWNED, instance=measured.name, region="",
        gpu_slug=measured.name, gpu_count=1, gpu_fraction=1.0, vcpus=0, ram_bytes=0.0,
        usd_per_h=measured.usd_per_h, spot=False, priced_on="", date_precision="",
        source="the user", terms=OWNED,
    )  # fmt: skip
