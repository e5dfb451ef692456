"""The sentences of a size: each is built from the numbers, none is fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.core.choose.hardware import OWNED
from tfdyno.words.base.amounts import percent, plural
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
    range_ = plural(many, "replica") if few == many else f"{few} to {many} replicas"
    return f"Autoscaling: {range_}, another one beyond {per_s(one.target_requests_per_s)} each."


def goal_words(goal: ServingGoal) -> str:
    """Return what is asked, as a clause."""
    requests = plural(round(goal.requests_per_day), "request")
    return (
        f"{requests} a day, {per_s(goal.peak_per_s)} at the peak, 99 of 100 within {ms(goal.p99_s)}"
    )


def machine_words(one: ServingCandidate) -> str:
    """Write ``3 x L4``, ``1/6 of A10``, ``2 x (4 x T4)``."""
    name = brief(one.replica.gpu_name)
    offer = one.offer
    each = offer.gpu_count if offer else 1
    if offer and offer.gpu_fraction < 1.0:
        name = f"1/{round(1.0 / offer.gpu_fraction)} of {name}"
    machine = name if each == 1 else f"{each} x {name}"
    if one.machines <= 1:
        return machine
    return f"{one.machines} x {machine}" if each == 1 else f"{one.machines} x ({machine})"


def seller_words(one: ServingCandidate) -> str:
    """Write ``gcp g2-standard-4``; ``owned``; ``no offer``."""
    offer = one.offer
    if offer is None:
        return "no offer"
    if offer.slug == f"{MEASURED}/{offer.instance}":
        return "as measured"
    return "owned" if offer.provider == OWNED else f"{offer.provider} {offer.instance}"


def headline(ranking: Sequence[ServingCandidate], best: ServingCandidate | None,
             goal: ServingGoal) -> str:  # fmt: skip
    """Return the answer in one sentence."""
    if best is None or best.at_peak is None:
        return _nothing(ranking, goal)
    rented = best.offer is not None and best.offer.provider != OWNED
    price = (
        f", {usd(best.usd_per_million)} a million requests"
        if best.usd_per_million and best.usd_per_million > 0.0
        else ""
    )
    return (
        f"{'Rent' if rented else 'Take'} {machine_words(best)} ({seller_words(best)}): p99 of "
        f"{ms(best.at_peak.p99_s)} at the peak of {per_s(goal.peak_per_s)}{price}."
    )


def _nothing(ranking: Sequence[ServingCandidate], goal: ServingGoal) -> str:
    dear = [one for one in ranking if one.verdict == "too dear" and one.usd_per_month]
    if dear:
        least = dear[0]
        return (
            f"Nothing keeps {ms(goal.p99_s)} for {usd(goal.budget_usd)} a month: the cheapest, "
            f"{machine_words(least)}, costs {usd(least.usd_per_month or 0.0)}."
        )
    unpriced = [one for one in ranking if one.verdict == "no offer"]
    if unpriced:
        return (
            f"Nobody offers what keeps {ms(goal.p99_s)}: {machine_words(unpriced[0])} would, "
            "at a price that the catalogue does not have."
        )
    slow = [one for one in ranking if one.verdict == "too slow" and one.replica.latency_s]
    if slow:
        quickest = min(slow, key=lambda one: min(t.high for t in one.replica.latency_s.values()))
        return f"No machine here keeps {ms(goal.p99_s)}: {quickest.replica.reason}"
    return "Nothing here holds the model: not even one request fits in the memory of any card."


def replica_reason(replica: Replica, goal: ServingGoal, high_s: Mapping[int, float]) -> str:
    """Return why one replica does what it does."""
    name = brief(replica.gpu_name)
    if not replica.runs:
        return f"The TensorFlow wheel does not run on {name}."
    if not replica.fits:
        return f"A request of {plural(goal.rows_per_request, 'row')} does not fit on {name}."
    if replica.most_per_s > 0.0:
        return _carries(replica)
    one = min(high_s.values())
    front = f", and the front {ms(replica.host_s)} to read it" if replica.host_s > 1e-4 else ""
    return f"on {name}, a batch of one request takes up to {ms(one)}{front}."


def _carries(replica: Replica) -> str:
    """Return how a replica batches, and what that brings."""
    first = f"the first waits up to {ms(replica.max_delay_s)} for others"
    held = {
        "host": f"its front takes {ms(replica.host_s)} of a request, and the model could do more",
        "memory": "no larger batch fits",
    }.get(replica.bound_by, "more would be too late")
    return (
        f"A replica on {brief(replica.gpu_name)} takes batches of up to {replica.max_batch_size}; "
        f"{first if replica.max_delay_s else 'none waits for others'}; it carries "
        f"{per_s(replica.most_per_s)} in time: {held}."
    )


def row_reason(one: ServingCandidate, goal: ServingGoal) -> str:
    """Return why this row stands where it does, as a clause."""
    replica = one.replica
    if one.verdict in ("cannot run", "does not fit", "too slow") or one.at_peak is None:
        return replica.reason.rstrip(".")
    bound = {
        "rate": f"each carries {per_s(replica.most_per_s)} in time",
        "host": f"its front reads {per_s(replica.most_per_s)} in time, the model could do more",
        "memory": f"memory ends at batches of {replica.max_batch_size}",
        "latency": f"the latency of one batch leaves {per_s(replica.most_per_s)}",
    }[replica.bound_by]
    used = f"{percent(min(1.0, one.at_peak.utilisation_ratio))} of it used at the peak"
    spare = f", {plural(goal.spare_machines, 'spare machine')}" if goal.spare_machines else ""
    dear = f"; over {usd(goal.budget_usd)} a month" if one.verdict == "too dear" else ""
    return f"{bound}, {used}{spare}{dear}"


def pick_reason(title: str, chosen: Mapping[str, ServingCandidate]) -> str:
    """Return why this one has the title."""
    one, cheapest = chosen[title], chosen["cheapest"]
    late = ms(one.at_peak.p99_s) if one.at_peak else "?"
    if title == "cheapest":
        return f"the least money, p99 {late}"
    if title == "fastest":
        return f"the shortest p99, {late}, {_dearer(one, cheapest)}"
    if one is cheapest:
        return f"nothing within a tenth of its cost answers sooner, p99 {late}"
    return f"the shortest p99 within a tenth of the least money, {late}"


def _dearer(one: ServingCandidate, cheapest: ServingCandidate) -> str:
    if one is cheapest:
        return "and the least money too"
    least, mine = cheapest.usd_per_month or 0.0, one.usd_per_month or 0.0
    if least < _SMALL_USD:
        return f"for {usd(mine)} a month"
    return f"at {significant(mine / least, 2)} times the least money"
