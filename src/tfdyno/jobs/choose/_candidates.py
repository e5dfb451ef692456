"""Every card and offer with its estimate, hours, cost and verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import assumed
from tfdyno.catalog.software import wheel_support
from tfdyno.core.base.units import HOUR_S
from tfdyno.core.choose.advice import Candidate
from tfdyno.core.choose.hardware import OWNED
from tfdyno.jobs.choose.market import is_stale
from tfdyno.jobs.choose.predict import shared_batch
from tfdyno.jobs.machine.wheels import supported
from tfdyno.model.choose.choose import ranked, verdict_of
from tfdyno.model.choose.cost import (
    hours_parts,
    joined_parts,
    run_cost_usd,
    run_energy_kwh,
    steps_of,
    whole_hours,
)
from tfdyno.words.choose.reasons import row_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.choose.advice import Run
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu, Offer
    from tfdyno.core.choose.software import WheelSupport
    from tfdyno.jobs.choose._feeding import Feeder
    from tfdyno.jobs.choose.market import Supply
    from tfdyno.jobs.choose.predict import Predictor

Key = tuple[str, float, int, int]
"""Card, share of it, number of them, machines: what has one estimate."""


def candidates_of(
    supplies: Sequence[Supply],
    predictor: Predictor,
    run: Run,
    *,
    global_batch_size: int,
    tensorflow: str,
    feeder: Feeder | None = None,
    also: Sequence[tuple[Predictor, Run]] = (),
) -> tuple[Candidate, ...]:
    """Rank everything that can be had; a supply that cannot share the global batch is left out.

    Args:
        supplies: Cards and offers.
        predictor: Answers for every card.
        run: How long.
        global_batch_size: That the replicas share; 0: each has its own.
        tensorflow: Release whose wheel must run.
        feeder: The input that was measured: an offer's CPUs may hold its GPUs back; None: data
            arrive in time.
        also: Other calls of ``fit`` in the same script, whose hours and energy come on top.
    """
    is_jax = predictor.traced.software.framework == "jax"
    support_of = wheel_support if is_jax else supported  # JAX brings an XLA of its own
    estimates: dict[Key, list[Estimate]] = {}
    found = []
    for supply in supplies:
        if global_batch_size and global_batch_size % supply.count:
            continue
        key = _key(supply)
        if key not in estimates:
            size = shared_batch(global_batch_size, supply.count) if global_batch_size else 0
            estimates[key] = [
                on_its_machines(one, supply.offer).estimate(
                    supply.gpu, replicas=supply.count, batch_size=size
                )
                for one in (predictor, *(other for other, _ in also))
            ]
        support = support_of(supply.gpu, tensorflow)
        estimate, *others = estimates[key]
        more = [(length, other) for (_, length), other in zip(also, others, strict=True)]
        found.append(_candidate(supply, estimate, run, support, feeder, more))
    return ranked(found)


def on_its_machines(predictor: Predictor, offer: Offer | None) -> Predictor:
    """Return the predictor with the GPUs of the offer's machine, which only a network asks for."""
    if offer is None or not predictor.network:
        return predictor
    return replace(predictor, gpus_per_node=offer.gpu_count // offer.nodes)


def card_of(supplies: Iterable[Supply], candidate: Candidate) -> Gpu:
    """Return the card that a candidate was made of, or the share of one."""
    offer = candidate.offer
    wanted = candidate.gpu, candidate.count, offer and offer.slug
    return next(
        one.gpu for one in supplies
        if (one.gpu.slug, one.count, one.offer and one.offer.slug) == wanted
    )  # fmt: skip


def check_shares(supplies: Sequence[Supply], global_batch_size: int) -> None:
    """Refuse a global batch that no supply can share; raises ``UsageError``. 0: none is held."""
    fewest = min(supply.count for supply in supplies)
    if global_batch_size and all(global_batch_size % supply.count for supply in supplies):
        shared_batch(global_batch_size, fewest)


def _candidate(
    supply: Supply,
    estimate: Estimate,
    run: Run,
    support: WheelSupport,
    feeder: Feeder | None,
    also: Sequence[tuple[Run, Estimate]] = (),
) -> Candidate:
    """Return what a supply comes to; ``also`` are other calls of ``fit``, on top."""
    offer, assumption = supply.offer, assumed()
    feeding = None
    if feeder:
        estimate, feeding = feeder.on(estimate, offer, supply.gpu)
    overhead = assumption.spot_overhead_ratio if offer and offer.spot else 0.0
    parts = hours_parts(
        run, estimate, assumed=assumption,
        start_h=start_h(supply, estimate), interruption_ratio=overhead,
    )  # fmt: skip
    parts = joined_parts(
        [
            parts,
            *(
                hours_parts(length, other, assumed=assumption, interruption_ratio=overhead)
                for length, other in also
            ),
        ]
    )
    hours = whole_hours(parts)
    energy_kwh = run_energy_kwh(run, estimate)
    for length, other in also:
        energy_kwh = energy_kwh.together(run_energy_kwh(length, other))
    steps = steps_of(run, estimate) + sum(steps_of(*one) for one in also)
    epochs = max(1, run.epochs) + sum(max(1, length.epochs) for length, _ in also)
    # The step that is told is the main one, but for one that the card does not hold as well.
    estimate = max([estimate, *(other for _, other in also)], key=_trouble)
    cost = None
    if offer:
        prices = supply.price_range
        cost = run_cost_usd(offer, hours, energy_kwh, assumed=assumption, price_range=prices)
    # A board gets its TensorFlow from the maker's image, which the official wheel says nothing of.
    runs = support.verdict != "cannot" or (run.scenario == "edge" and supply.gpu.market == "edge")
    draft = Candidate(
        gpu=supply.gpu.slug,
        gpu_name=supply.gpu.name,
        count=supply.count,
        offer=offer,
        estimate=estimate,
        steps=steps,
        hours=hours,
        cost_usd=cost,
        usd_per_epoch=cost.times(1.0 / epochs) if cost else None,
        energy_kwh=energy_kwh,
        verdict=verdict_of(run, estimate, hours=hours, cost_usd=cost, runs=runs),
        tensorflow=_tensorflow(support),
        reason="",
        pareto=False,
        hours_parts=parts,
        feeding=feeding,
        price_range=supply.price_range,
        launch_price_usd=supply.gpu.launch_price_usd,
    )
    draft = with_reason(draft, run)
    if feeder and offer and not feeding:
        return replace(draft, reason=f"{draft.reason}, vCPUs not known")
    return draft


def _trouble(estimate: Estimate) -> tuple[int, float]:
    """Order estimates by how surely the step fits; the first of those that do stays."""
    place = ("yes", "unverified", "may not", "no").index(estimate.fits)
    used_ratio = estimate.device_memory_bytes.best / estimate.usable_memory_bytes
    return place, used_ratio if place else 0.0


def start_h(supply: Supply, estimate: Estimate) -> float:
    """Count hours before the first step: a rented machine boots, each GPU builds a graph."""
    rented = supply.offer is not None and supply.offer.provider != OWNED
    boot_s = assumed().start_up_s if rented else 0.0
    graph = estimate.execution == "graph"
    build_s = assumed().graph_build_s * estimate.replicas if graph else 0.0
    return (boot_s + build_s) / HOUR_S


def with_reason(draft: Candidate, run: Run) -> Candidate:
    """Return the candidate with the words for its row."""
    return replace(draft, reason=row_reason(draft, run, stale=is_stale(draft.offer)))


def _tensorflow(support: WheelSupport) -> str:
    driver = f", driver {support.driver_linux} or later" if support.driver_linux else ""
    what = f"{support.outcome}: {support.detail}"
    return f"{what}{driver}" if support.outcome in ("jit", "graph") else what


def _key(supply: Supply) -> Key:
    offer = supply.offer
    share, nodes = (offer.gpu_fraction, offer.nodes) if offer else (1.0, 1)
    return supply.gpu.slug, share, supply.count, nodes
