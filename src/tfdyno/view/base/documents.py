"""What ``--json`` prints: the documented keys, stable from release to release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.advice import Advice, Candidate, CostOrder, Pick
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.scale_out import ScaleOut
    from tfdyno.core.choose.sharding import Sharding
    from tfdyno.core.choose.workload import Trace
    from tfdyno.core.measure.feed import Feeding

_ESTIMATE_LEFT_OUT = ("layers", "roofline", "largest_buffers", "live_curve_bytes", "explanation")
_OF_SCALED = (
    "replicas", "nodes", "link", "network", "batch_size", "global_batch_size", "execution",
    "step_s", "samples_per_s",
)  # fmt: skip
_OF_TRACE = (
    "policy", "optimizer", "loss", "parameter_count", "trainable_parameter_count",
    "script_batch_size", "samples_per_epoch", "epochs", "validation", "path", "path_reason",
    "seconds_s", "script_seconds_s", "versions", "warnings",
)  # fmt: skip


def fields_of(noun: object, *names: str) -> dict[str, Any]:
    """Return fields of a noun under their names, as JSON has them."""
    return {name: to_builtins(getattr(noun, name)) for name in names}


def estimate_document(
    estimates: Sequence[Estimate],
    trace: Trace,
    batch_source: str,
    notes: Sequence[str],
    scaling: Sequence[ScaleOut] = (),
    sharding: Sequence[Sharding] = (),
) -> dict[str, Any]:
    """Write ``{"estimates": […], "trace": {…}}``: every field of each estimate, under its name."""
    return {
        "estimates": [to_builtins(one) for one in estimates],
        "trace": {**trace_document(trace), "batch_source": batch_source},
        "notes": list(notes),
        **({"scaling": [scaling_document(one) for one in scaling]} if scaling else {}),
        **({"sharding": [to_builtins(one) for one in sharding]} if sharding else {}),
    }


def scaling_document(series: ScaleOut) -> dict[str, Any]:
    """Return what more of a card bring; the estimates themselves stand in ``estimates``."""
    rows = []
    for row in series.rows:
        one = row.estimate
        rows.append(
            {
                **fields_of(one, *_OF_SCALED),
                **fields_of(row, "gain_ratio", "efficiency_ratio", "added_ratio"),
                "exposed_s": one.exposed_s,
                "usd_per_million_samples": _range(row.million_samples_usd),
                "usd_per_epoch": _range(row.usd_per_epoch),
                "fits": one.fits,
            }
        )
    return {
        **fields_of(series, "gpu", "holds", "pays_until", "switched_to", "switch_ratio", "price"),
        "rows": rows,
    }


def trace_document(trace: Trace) -> dict[str, Any]:
    """Return facts of the trace that a reader of the estimates may want; no tensors."""
    return {
        "workload": trace.workload.reference,
        "title": trace.title,
        "mode": trace.workload.mode,
        **fields_of(trace, *_OF_TRACE),
    }


def advice_document(advice: Advice, trace: Trace) -> dict[str, Any]:
    """Write ``{"ranking": […], "picks": {…}, "pareto": […], …}``: costs and hours as plain numbers.

    The range of each stands beside it (``hours_range``, ``cost_usd_range``).
    """
    rows = {one.slug: one for one in advice.ranking}
    picks = {one.title: _pick(one, rows) for one in advice.picks}
    return {
        "headline": advice.headline,
        "title": advice.title,
        "ranking": [_candidate(one) for one in advice.ranking],
        "picks": {title: picks.get(title) for title in ("cheapest", "fastest", "balanced")},
        "pareto": sorted(
            (_short(one) for one in advice.ranking if one.pareto), key=lambda row: row["hours"]
        ),
        **fields_of(advice, "changes", "buy_or_rent", "run"),
        "scaling": [scaling_document(one) for one in advice.scaling],
        **fields_of(
            advice, "assumptions", "notes", "sources", "catalogue_date", "made_on", "exact",
            "open_fits",
        ),
        "trace": trace_document(trace),
    }  # fmt: skip


def _pick(one: Pick, rows: Mapping[str, Candidate]) -> dict[str, Any]:
    """Return a pick with the rows that its ranges do not tell from it, and what decides."""
    return {
        **_short(one.candidate),
        "reason": one.reason,
        "ties": [_name(rows[slug]) for slug in one.ties if slug in rows],
        "runner_up": _name(rows[one.runner_up]) if one.runner_up in rows else None,
        "decided_by": one.decided_by or None,
    }


def _name(one: Candidate) -> dict[str, Any]:
    offer = one.offer.slug if one.offer else None
    return {"gpu": one.gpu, "count": one.count, "offer": offer, "spot": one.spot}


def _short(one: Candidate) -> dict[str, Any]:
    return {
        **_name(one),
        "hours": one.hours.best,
        "hours_range": to_builtins(one.hours),
        "cost_usd": one.cost_usd.best if one.cost_usd else None,
        "cost_usd_range": _range(one.cost_usd),
        "reason": one.reason,
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    offer, estimate = one.offer, to_builtins(one.estimate)
    validating = one.part_h("validation")
    return {
        **_short(one),
        **fields_of(one, "gpu_name", "verdict", "pareto", "steps"),
        "validation_hours": validating.best if validating else None,
        "hours_parts": {part.kind: to_builtins(part.hours) for part in one.hours_parts},
        "usd_per_epoch": one.usd_per_epoch.best if one.usd_per_epoch else None,
        "energy_kwh": one.energy_kwh.best,
        "energy_kwh_range": to_builtins(one.energy_kwh),
        "provider": offer.provider if offer else None,
        "instance": offer.instance if offer else None,
        "region": offer.region if offer else None,
        "gpu_fraction": offer.gpu_fraction if offer else 1.0,
        "usd_per_h": offer.usd_per_h if offer else None,
        "usd_per_h_range": _price_range(one),
        "available": offer.available if offer else None,
        "launch_price_usd": one.launch_price_usd or None,
        **_order(one.to_first),
        "priced_on": offer.priced_on if offer else None,
        "date_precision": offer.date_precision if offer else None,
        "price_source": offer.source if offer else None,
        "tensorflow": one.tensorflow,
        "vcpus": offer.vcpus or None if offer else None,
        "feed": _feed(one.feeding) if one.feeding else None,
        "estimate": {key: estimate[key] for key in estimate if key not in _ESTIMATE_LEFT_OUT},
    }


def _price_range(one: Candidate) -> dict[str, Any] | None:
    """Return between which prices the offer was seen; ``low`` and ``high`` only where it is known.

    It is no probability; ``basis`` says what it rests on.
    """
    offer, prices = one.offer, one.price_range
    if offer is None:
        return None
    ends = {
        "low": offer.usd_per_h * prices.low_ratio,
        "high": offer.usd_per_h * prices.high_ratio,
    }
    known = prices.basis not in ("unknown", "electricity")
    return {
        "basis": prices.basis,
        **(ends if known else {"low": None, "high": None}),
        "since": prices.since or None,
        "regions": prices.regions or None,
    }


def _order(order: CostOrder | None) -> dict[str, Any]:
    """Say whether a row is a tie with the first, or what puts the first before it."""
    return {
        "tied_with_first": order.tied if order else None,
        "unsure_by": order.unsure_by or None if order else None,
        "decided_by": order.decided_by or None if order else None,
    }


def _feed(given: Feeding) -> dict[str, Any]:
    """Say what the offer's CPUs make ready; the slower, it or the GPU, sets hours and cost."""
    return {
        "vcpus": given.vcpus,
        "fed_ratio": given.fed_ratio,
        "samples_per_s": given.rate_per_s.best,
        "samples_per_s_range": to_builtins(given.rate_per_s),
        "thread_stages": list(given.thread_stages),
        "needed_samples_per_s": given.needed_per_s.best,
        "needed_samples_per_s_range": to_builtins(given.needed_per_s),
    }


def _range(value: Interval | None) -> dict[str, float] | None:
    return to_builtins(value) if value else None
