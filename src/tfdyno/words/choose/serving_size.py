"""The sentences of a size: each is built from the numbers, none is fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.core.choose.hardware import OWNED
from tfdyno.words.base.amounts import percent, plural
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.serving_size import Replica, ServingCandidate, ServingGoal, ServingSize

MEASURED = "measured"
"""Seller of the machine that the user timed."""
_SMALL_USD = 0.01


def ms(seconds: float) -> str:
    """Write ``7.2 ms``, ``250 ms``, ``1.2 s``."""
    if seconds >= 1.0:
        return f"{significant(seconds, 3)} s"
    return f"{significant(seconds * 1e3, 3 if seconds >= 0.1 else 2)} ms"


def per_s(rate: float) -> str:
    """Write ``347/s``, ``0.12/s``."""
    return f"{rate:,.0f}/s" if rate >= 10.0 else f"{significant(rate, 2)}/s"


def usd(amount: float) -> str:
    """Write ``$1,234``, ``$12.3``, ``$0.012``."""
    if amount >= 100.0:
        return f"${amount:,.0f}"
    return f"${significant(amount, 3 if amount >= 1.0 else 2)}"


def scaling_words(size: ServingSize) -> str:
    """Return what an autoscaler does; empty where nothing is feasible."""
    one = size.autoscaling
    if one is None:
        return ""
    few, many = one.min_replicas, one.max_replicas
    range_ = (
        plural(many, "replica")
        if few == many
        else say("{few} to {many} replicas", few=few, many=many)
    )
    return say(
        "Autoscaling: {range}, another one beyond {rate} each.",
        range=range_,
        rate=per_s(one.target_requests_per_s),
    )


def goal_words(goal: ServingGoal) -> str:
    """Return what is asked, as a clause."""
    requests = plural(round(goal.requests_per_day), "request")
    return say(
        "{requests} a day, {rate} at the peak, 99 of 100 within {ms}",
        requests=requests,
        rate=per_s(goal.peak_per_s),
        ms=ms(goal.p99_s),
    )


def machine_words(one: ServingCandidate) -> str:
    """Write ``3 x L4``, ``1/6 of A10``, ``2 x (4 x T4)``."""
    name = brief(one.replica.gpu_name)
    offer = one.offer
    each = offer.gpu_count if offer else 1
    if offer and offer.gpu_fraction < 1.0:
        name = say("1/{shares} of {name}", shares=round(1.0 / offer.gpu_fraction), name=name)
    machine = name if each == 1 else f"{each} x {name}"
    if one.machines <= 1:
        return machine
    return f"{one.machines} x {machine}" if each == 1 else f"{one.machines} x ({machine})"


def seller_words(one: ServingCandidate) -> str:
    """Write ``gcp g2-standard-4``; ``owned``; ``no offer``."""
    offer = one.offer
    if offer is None:
        return named("no offer")
    if offer.slug == f"{MEASURED}/{offer.instance}":
        return say("as measured")
    return say("owned") if offer.provider == OWNED else f"{offer.provider} {offer.instance}"


def headline(ranking: Sequence[ServingCandidate], best: ServingCandidate | None,
             goal: ServingGoal) -> str:  # fmt: skip
    """Return the answer in one sentence."""
    if best is None or best.at_peak is None:
        return _nothing(ranking, goal)
    rented = best.offer is not None and best.offer.provider != OWNED
    price = (
        say(", {usd} a million requests", usd=usd(best.usd_per_million))
        if best.usd_per_million and best.usd_per_million > 0.0
        else ""
    )
    return say(
        "{verb} {machine} ({seller}): p99 of {ms} at the peak of {rate}{price}.",
        verb=say("Rent") if rented else say("Take"),
        machine=machine_words(best),
        seller=seller_words(best),
        ms=ms(best.at_peak.p99_s),
        rate=per_s(goal.peak_per_s),
        price=price,
    )


def _nothing(ranking: Sequence[ServingCandidate], goal: ServingGoal) -> str:
    dear = [one for one in ranking if one.verdict == "too dear" and one.usd_per_month]
    if dear:
        least = dear[0]
        return say(
            "Nothing keeps {ms} for {usd} a month: the cheapest, {machine}, costs {cost}.",
            ms=ms(goal.p99_s),
            usd=usd(goal.budget_usd),
            machine=machine_words(least),
            cost=usd(least.usd_per_month or 0.0),
        )
    unpriced = [one for one in ranking if one.verdict == "no offer"]
    if unpriced:
        return say(
            "Nobody offers what keeps {ms}: {machine} would, at a price that the "
            "catalogue does not have.",
            ms=ms(goal.p99_s),
            machine=machine_words(unpriced[0]),
        )
    slow = [one for one in ranking if one.verdict == "too slow" and one.replica.latency_s]
    if slow:
        quickest = min(slow, key=lambda one: min(t.high for t in one.replica.latency_s.values()))
        return say(
            "No machine here keeps {ms}: {reason}",
            ms=ms(goal.p99_s),
            reason=quickest.replica.reason,
        )
    return say("Nothing here holds the model: not even one request fits in the memory of any card.")


def replica_reason(replica: Replica, goal: ServingGoal, high_s: Mapping[int, float]) -> str:
    """Return why one replica does what it does."""
    name = brief(replica.gpu_name)
    if not replica.runs:
        return say("The TensorFlow wheel does not run on {name}.", name=name)
    if not replica.fits:
        return say(
            "A request of {rows} does not fit on {name}.",
            rows=plural(goal.rows_per_request, "row"),
            name=name,
        )
    if replica.most_per_s > 0.0:
        return _carries(replica)
    one = min(high_s.values())
    front = (
        say(", and the front {ms} to read it", ms=ms(replica.host_s))
        if replica.host_s > 1e-4
        else ""
    )
    return say(
        "on {name}, a batch of one request takes up to {ms}{front}.",
        name=name,
        ms=ms(one),
        front=front,
    )


def _carries(replica: Replica) -> str:
    """Return how a replica batches, and what that brings."""
    first = say("the first waits up to {ms} for others", ms=ms(replica.max_delay_s))
    held = {
        "host": say(
            "its front takes {ms} of a request, and the model could do more", ms=ms(replica.host_s)
        ),
        "memory": say("no larger batch fits"),
    }.get(replica.bound_by, say("more would be too late"))
    return say(
        "A replica on {card} takes batches of up to {batch}; {first}; "
        "it carries {rate} in time: {held}.",
        card=brief(replica.gpu_name),
        batch=replica.max_batch_size,
        first=first if replica.max_delay_s else say("none waits for others"),
        rate=per_s(replica.most_per_s),
        held=held,
    )


def row_reason(one: ServingCandidate, goal: ServingGoal) -> str:
    """Return why this row stands where it does, as a clause."""
    replica = one.replica
    if one.verdict in ("cannot run", "does not fit", "too slow") or one.at_peak is None:
        return replica.reason.rstrip(".")
    bound = {
        "rate": say("each carries {rate} in time", rate=per_s(replica.most_per_s)),
        "host": say(
            "its front reads {rate} in time, the model could do more",
            rate=per_s(replica.most_per_s),
        ),
        "memory": say("memory ends at batches of {batch}", batch=replica.max_batch_size),
        "latency": say("the latency of one batch leaves {rate}", rate=per_s(replica.most_per_s)),
    }[replica.bound_by]
    used = say(
        "{share} of it used at the peak", share=percent(min(1.0, one.at_peak.utilisation_ratio))
    )
    machines = plural(goal.spare_machines, "spare machine")
    spare = say(", {machines}", machines=machines) if goal.spare_machines else ""
    dear = (
        say("; over {usd} a month", usd=usd(goal.budget_usd)) if one.verdict == "too dear" else ""
    )
    return say("{bound}, {used}{spare}{dear}", bound=bound, used=used, spare=spare, dear=dear)


def pick_reason(title: str, chosen: Mapping[str, ServingCandidate]) -> str:
    """Return why this one has the title."""
    one, cheapest = chosen[title], chosen["cheapest"]
    late = ms(one.at_peak.p99_s) if one.at_peak else "?"
    if title == "cheapest":
        return say("the least money, p99 {late}", late=late)
    if title == "fastest":
        return say("the shortest p99, {late}, {dearer}", late=late, dearer=_dearer(one, cheapest))
    if one is cheapest:
        return say("nothing within a tenth of its cost answers sooner, p99 {late}", late=late)
    return say("the shortest p99 within a tenth of the least money, {late}", late=late)


def _dearer(one: ServingCandidate, cheapest: ServingCandidate) -> str:
    if one is cheapest:
        return say("and the least money too")
    least, mine = cheapest.usd_per_month or 0.0, one.usd_per_month or 0.0
    if least < _SMALL_USD:
        return say("for {usd} a month", usd=usd(mine))
    return say("at {mine} times the least money", mine=significant(mine / least, 2))
