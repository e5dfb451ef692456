"""From ranked machines to the size of a service: picks, headline, assumptions, sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import serving_overhead, serving_overhead_sources
from tfdyno.core.base.clock import today
from tfdyno.core.choose.serving_size import (
    HOURS_PER_MONTH,
    ServingCandidate,
    ServingPick,
    ServingSize,
    Title,
)
from tfdyno.words.base.language import say
from tfdyno.words.choose.serving_size import headline, ms, per_s, pick_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.choose.serving_size import LatencyCurve, Replica
    from tfdyno.jobs.choose.predict import Predictor
    from tfdyno.jobs.choose.serving_size import SizeRequest

NEAR_RATIO = 1.1
"""The ratio to the least cost: what costs no more is as cheap, for the balanced pick."""
TITLES: tuple[Title, ...] = ("cheapest", "balanced", "fastest")


def answer(
    request: SizeRequest,
    predictor: Predictor,
    ranking: tuple[ServingCandidate, ...],
    *,
    curve_of: Callable[[Replica], LatencyCurve],
    notes: tuple[str, ...],
    host_s: float,
) -> ServingSize:
    """Draw the conclusions from a ranking.

    Args:
        request: What was asked.
        predictor: Names the model and how it runs.
        ranking: All candidates, ranked.
        curve_of: Makes the latency curve of a replica.
        notes: What was left out, one sentence each.
        host_s: Seconds of the front for one request.
    """
    from tfdyno.model.serving.fleet import autoscaling

    trace, picks = predictor.traced.trace, picks_of(ranking)
    replicas = [one.candidate.replica for one in picks]
    best = next((one.candidate for one in picks if one.title == "balanced"), None)
    return ServingSize(
        title=trace.title,
        reference=trace.workload.reference,
        headline=headline(ranking, best, request.goal),
        goal=request.goal,
        precision=predictor.precision or trace.policy,
        execution=predictor.execution_for(1),
        ranking=ranking,
        picks=picks,
        autoscaling=autoscaling(best.replica, request.goal) if best else None,
        assumptions=_assumptions(request, predictor, host_s),
        sources=_sources(ranking),
        notes=notes,
        curves=tuple(curve_of(one) for one in {id(r): r for r in replicas}.values()),
        catalogue_date=max((one.offer.priced_on for one in ranking if one.offer), default=""),
        made_on=today().isoformat(),
    )


def picks_of(ranking: Sequence[ServingCandidate]) -> tuple[ServingPick, ...]:
    """Pick cheapest, fastest, and balanced: of those that cost hardly more, the fastest."""
    feasible = [one for one in ranking if one.verdict == "feasible"]
    if not feasible:
        return ()
    near = [one for one in feasible if _usd(one) <= NEAR_RATIO * _usd(feasible[0])]
    chosen: dict[str, ServingCandidate] = {
        "cheapest": feasible[0],
        "balanced": min(near, key=lambda one: (late_s(one), _usd(one))),
        "fastest": min(feasible, key=lambda one: (late_s(one), _usd(one))),
    }
    return tuple(
        ServingPick(title=title, candidate=chosen[title], reason=pick_reason(title, chosen))
        for title in TITLES
    )


def _usd(one: ServingCandidate) -> float:
    return one.usd_per_month or 0.0


def late_s(one: ServingCandidate) -> float:
    """Round p99 at the peak to two digits: what differs by less is as late."""
    return float(f"{one.at_peak.p99_s:.2g}") if one.at_peak else float("inf")


def _assumptions(request: SizeRequest, predictor: Predictor, host_s: float) -> dict[str, str]:
    goal, overhead, trace = request.goal, serving_overhead(), predictor.traced.trace
    form = say("binary tensors") if request.binary else "JSON"
    found = {
        "rate": say(
            "{rate} over the day, {factor:g} times that at the peak, each "
            "request at a random moment (Poisson)",
            rate=per_s(goal.mean_per_s),
            factor=goal.peak_factor,
        ),
        "promise": say(
            "99 of 100 within {ms} with the high end of the model's time; p50 and p99 "
            "shown are with its best",
            ms=ms(goal.p99_s),
        ),
        "replicas": say(
            "one server process with its own queue per GPU; requests are shared at random"
        ),
        "host": say(
            "{ms} of every batch to hand it over, {other} of every request as {form} in "
            "the front, measured on another machine",
            ms=ms(overhead.call_s),
            other=ms(host_s),
            form=form,
        ),
        "latency": _latency_words(predictor),
        "precision": predictor.precision or say("{policy} (the model's own)", policy=trace.policy),
        "execution": f"{predictor.execution_for(1)}"
        + ("" if request.execution else say(", as TensorFlow runs a SavedModel")),
        "month": say("{hours:g} h, machines on all the time", hours=HOURS_PER_MONTH),
    }
    if request.measured:
        found["measured"] = say(
            "{name}: latency of batches as given, no range", name=request.measured.name
        )
    if request.conditions.owned:
        found["owned"] = say(
            "cards at hand cost nothing here, not even energy, and there are as many as it takes"
        )
    return found


def _latency_words(predictor: Predictor) -> str:
    """Return which program the times of the batches come from."""
    if not (predictor.exact_time and predictor.exact):
        return say(
            "every batch estimated from the operations of one trace; nothing was compiled for it"
        )
    families = ", ".join(sorted(predictor.exact))
    return say(
        "every batch estimated from the program that XLA compiled for {families}", families=families
    )


def _sources(ranking: Sequence[ServingCandidate]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for one in ranking:
        if one.verdict == "feasible" and one.offer and one.offer.priced_on:
            told = say(
                "price of {provider}, {date}: {source}",
                provider=one.offer.provider,
                date=one.offer.priced_on,
                source=one.offer.source,
            )
            found[told] = None
    found.update(dict.fromkeys(f"{k}: {v}" for k, v in serving_overhead_sources().items()))
    found["latency: estimates of the forward pass, see docs/accuracy.md"] = None
    found["queue: Bailey 1954, Neuts 1967, Inoue 2021; see docs/explanation/serving-size.md"] = None
    return tuple(found)
