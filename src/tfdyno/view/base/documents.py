"""What ``--json`` prints: the documented keys, stable from release to release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.advice import Advice, Candidate, Pick
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.scale_out import ScaleOut
    from tfdyno.core.choose.sharding import Sharding
    from tfdyno.core.choose.workload import Trace
    from tfdyno.core.measure.feed import Feeding

_ESTIMATE_LEFT_OUT = ("layers", "roofline", "largest_buffers", "live_curve_bytes", "explanation")


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
                "replicas": one.replicas,
                "nodes": one.nodes,
                "link": one.link,
                "network": one.network,
                "batch_size": one.batch_size,
                "global_batch_size": one.global_batch_size,
                "execution": one.execution,
                "step_s": to_builtins(one.step_s),
                "samples_per_s": to_builtins(one.samples_per_s),
                "gain_ratio": to_builtins(row.gain_ratio),
                "efficiency_ratio": to_builtins(row.efficiency_ratio),
                "added_ratio": row.added_ratio,
                "exposed_s": one.exposed_s,
                "usd_per_million_samples": _range(row.million_samples_usd),
                "usd_per_epoch": _range(row.usd_per_epoch),
                "fits": one.fits,
            }
        )
    return {
        "gpu": series.gpu,
        "holds": series.holds,
        "pays_until": series.pays_until,
        "switched_to": series.switched_to,
        "switch_ratio": series.switch_ratio,
        "price": to_builtins(series.price) if series.price else None,
        "rows": rows,
    }


def trace_document(trace: Trace) -> dict[str, Any]:
    """Return facts of the trace that a reader of the estimates may want; no tensors."""
    return {
        "workload": trace.workload.reference,
        "title": trace.title,
        "mode": trace.workload.mode,
        "policy": trace.policy,
        "optimizer": trace.optimizer,
        "loss": trace.loss,
        "parameter_count": trace.parameter_count,
        "trainable_parameter_count": trace.trainable_parameter_count,
        "script_batch_size": trace.script_batch_size,
        "samples_per_epoch": trace.samples_per_epoch,
        "epochs": trace.epochs,
        "validation": to_builtins(trace.validation),
        "path": trace.path,
        "path_reason": trace.path_reason,
        "seconds_s": trace.seconds_s,
        "script_seconds_s": trace.script_seconds_s,
        "versions": trace.versions,
        "warnings": list(trace.warnings),
    }


def advice_document(advice: Advice, trace: Trace) -> dict[str, Any]:
    """Write ``{"ranking": […], "picks": {…}, "pareto": […], …}``: costs and hours as plain numbers.

    The range of each stands beside it (``hours_range``, ``cost_usd_range``).
    """
    picks = {pick.title: _pick(pick) for pick in advice.picks}
    return {
        "headline": advice.headline,
        "title": advice.title,
        "ranking": [_candidate(one) for one in advice.ranking],
        "picks": {title: picks.get(title) for title in ("cheapest", "fastest", "balanced")},
        "pareto": sorted(
            (_short(one) for one in advice.ranking if one.pareto), key=lambda row: row["hours"]
        ),
        "changes": [to_builtins(one) for one in advice.changes],
        "buy_or_rent": [to_builtins(one) for one in advice.buy_or_rent],
        "run": to_builtins(advice.run),
        "scaling": [scaling_document(one) for one in advice.scaling],
        "assumptions": advice.assumptions,
        "notes": list(advice.notes),
        "sources": list(advice.sources),
        "catalogue_date": advice.catalogue_date,
        "made_on": advice.made_on,
        "exact": advice.exact,
        "open_fits": list(advice.open_fits),
        "trace": trace_document(trace),
    }


def _pick(pick: Pick) -> dict[str, Any]:
    return {**_short(pick.candidate), "reason": pick.reason}


def _short(one: Candidate) -> dict[str, Any]:
    return {
        "gpu": one.gpu,
        "count": one.count,
        "offer": one.offer.slug if one.offer else None,
        "spot": one.spot,
        "hours": one.hours.best,
        "hours_range": to_builtins(one.hours),
        "cost_usd": one.cost_usd.best if one.cost_usd else None,
        "cost_usd_range": _range(one.cost_usd),
        "reason": one.reason,
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    offer, estimate = one.offer, to_builtins(one.estimate)
    return {
        **_short(one),
        "gpu_name": one.gpu_name,
        "verdict": one.verdict,
        "pareto": one.pareto,
        "steps": one.steps,
        "validation_hours": one.validation_h.best if one.validation_h else None,
        "usd_per_epoch": one.usd_per_epoch.best if one.usd_per_epoch else None,
        "energy_kwh": one.energy_kwh.best,
        "energy_kwh_range": to_builtins(one.energy_kwh),
        "provider": offer.provider if offer else None,
        "instance": offer.instance if offer else None,
        "region": offer.region if offer else None,
        "gpu_fraction": offer.gpu_fraction if offer else 1.0,
        "usd_per_h": offer.usd_per_h if offer else None,
        "priced_on": offer.priced_on if offer else None,
        "date_precision": offer.date_precision if offer else None,
        "price_source": offer.source if offer else None,
        "tensorflow": one.tensorflow,
        "vcpus": offer.vcpus or None if offer else None,
        "feed": _feed(one.feeding) if one.feeding else None,
        "estimate": {key: estimate[key] for key in estimate if key not in _ESTIMATE_LEFT_OUT},
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
