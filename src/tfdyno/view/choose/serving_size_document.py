"""What ``advise --scenario serve --json`` prints: the keys of ``advise``, and those of a service.

``hours`` is the month that a service runs, and ``cost_usd`` what that costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.choose.serving_size import HOURS_PER_MONTH
from tfdyno.view.base.documents import fields_of

if TYPE_CHECKING:
    from tfdyno.core.choose.serving_size import ServingCandidate, ServingSize


def size_document(size: ServingSize) -> dict[str, Any]:
    """Write ``{"ranking": […], "picks": {…}, "pareto": […], "autoscaling": {…}, …}``."""
    picks = {one.title: _short(one.candidate) | {"reason": one.reason} for one in size.picks}
    front = [_short(one) for one in size.ranking if one.pareto]
    return {
        "headline": size.headline,
        "title": size.title,
        "workload": size.reference,
        "goal": {
            **to_builtins(size.goal),
            "mean_per_s": size.goal.mean_per_s,
            "peak_per_s": size.goal.peak_per_s,
        },
        "ranking": [_candidate(one) for one in size.ranking],
        "picks": {title: picks.get(title) for title in ("cheapest", "fastest", "balanced")},
        "pareto": sorted(front, key=lambda row: row["cost_usd"]),
        **fields_of(
            size, "autoscaling", "curves", "precision", "execution", "assumptions", "notes",
            "sources", "catalogue_date", "made_on",
        ),
    }  # fmt: skip


def _short(one: ServingCandidate) -> dict[str, Any]:
    peak = one.at_peak
    return {
        "gpu": one.replica.gpu,
        "count": one.count,
        "machines": one.machines,
        "offer": one.offer.slug if one.offer else None,
        "spot": one.offer.spot if one.offer else False,
        "hours": HOURS_PER_MONTH,
        "cost_usd": one.usd_per_month,
        "usd_per_million": one.usd_per_million,
        "max_batch_size": one.replica.max_batch_size,
        "max_delay_s": one.replica.max_delay_s,
        "p50_s": peak.p50_s if peak else None,
        "p99_s": peak.p99_s if peak else None,
        "utilisation_ratio": peak.utilisation_ratio if peak else None,
        "reason": one.reason,
    }


def _candidate(one: ServingCandidate) -> dict[str, Any]:
    replica, offer = one.replica, one.offer
    return {
        **_short(one),
        "gpu_name": replica.gpu_name,
        **fields_of(one, "verdict", "pareto", "at_peak", "at_mean"),
        **fields_of(replica, "most_per_s", "bound_by"),
        "batching": replica.reason,
        "host_s": replica.host_s,
        "latency_s": {str(rows): to_builtins(time) for rows, time in replica.latency_s.items()},
        "latency_source": replica.latency_source,
        "provider": offer.provider if offer else None,
        "instance": offer.instance if offer else None,
        "region": offer.region if offer else None,
        "gpu_fraction": offer.gpu_fraction if offer else 1.0,
        "usd_per_h": offer.usd_per_h if offer else None,
        "priced_on": offer.priced_on if offer else None,
        "price_source": offer.source if offer else None,
    }
