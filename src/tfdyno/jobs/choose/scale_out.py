"""Estimates over the number of replicas: the table of ``estimate --replicas 1,2,4,8``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog.links import find_link, most_in_one_machine
from tfdyno.catalog.offers import all_offers
from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.hardware import OWNED
from tfdyno.core.choose.scale_out import GpuPrice
from tfdyno.core.choose.sharding import Sharding
from tfdyno.model.choose.scale_out import scale_out
from tfdyno.model.time.scaling import has_peer_copies, way_of
from tfdyno.model.time.sharding import fewest_that_fit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Cluster, Gpu, Offer
    from tfdyno.core.choose.scale_out import ScaleOut
    from tfdyno.jobs.choose.predict import Predictor

    Joining = Callable[[Gpu, int], Cluster | None]
    Compiling = Callable[[Sharding, Estimate, Gpu, Mapping[int, float]], Sharding]


def scale_outs(
    gpus: Sequence[Gpu],
    found: Sequence[Estimate],
    alone: Callable[[Gpu], Estimate],
    *,
    global_batch: bool,
    samples_per_epoch: int,
    price: Callable[[Gpu], GpuPrice | None] | None = None,
) -> tuple[ScaleOut, ...]:
    """Say what more of each card bring; empty where they serve, or one number was asked for.

    Args:
        gpus: Cards, as they were asked for.
        found: Their estimates.
        alone: Estimates a card alone, where that was not asked for.
        global_batch: Whether the sum over the replicas is held, not the batch of each.
        samples_per_epoch: 0: not known.
        price: Of a card; None: the cheapest that somebody asks for it.
    """
    exchanging = [one for one in found if one.mode == "train"]
    if len({one.replicas for one in exchanging}) < 2:
        return ()
    series = []
    for gpu in gpus:
        mine = [one for one in found if one.gpu == gpu.slug]
        if all(one.replicas > 1 for one in mine):
            mine = [alone(gpu), *mine]
        series.append(
            scale_out(
                mine,
                holds="global batch" if global_batch else "batch per replica",
                samples_per_epoch=samples_per_epoch,
                price=(price or price_of)(gpu),
                through_host=_through_host(gpu, mine),
            )
        )
    return tuple(series)


def _through_host(gpu: Gpu, found: Sequence[Estimate]) -> bool:
    """Return whether those of several cards in a machine name a link without peer access."""
    links = {one.link for one in found if one.replicas > one.nodes and one.link}
    return any(not has_peer_copies(gpu, find_link(slug)) for slug in links)


def scaling_of(
    predictor: Predictor, gpu: Gpu, offer: Offer, global_batch_size: int = 0
) -> tuple[ScaleOut, ...]:
    """Say what 2, 4 and 8 of a card bring in one machine; empty where it cannot train with others.

    Args:
        predictor: Of the workload.
        gpu: The card.
        offer: That it is taken from, whose price counts.
        global_batch_size: 0: the batch of each replica is held.
    """
    trace = predictor.traced.trace
    if trace.workload.mode != "train" or ":" in gpu.slug:
        return ()
    most = most_in_one_machine(gpu)
    counts = [count for count in (1, 2, 4, 8) if count <= most]
    if global_batch_size:
        counts = [count for count in counts if global_batch_size % count == 0]
    found = [predictor.estimate(gpu, replicas=n, batch_size=global_batch_size // n) for n in counts]
    return scale_outs(
        [gpu],
        found,
        lambda one: predictor.estimate(one, batch_size=global_batch_size),
        global_batch=bool(global_batch_size),
        samples_per_epoch=trace.samples_per_epoch,
        price=lambda _: shared_price(offer),
    )


def shardings(
    gpus: Sequence[Gpu],
    found: Sequence[Estimate],
    joining: Joining,
    compiling: Compiling | None = None,
) -> tuple[Sharding, ...]:
    """Say by what several cards hold the batch where one does not hold its part.

    Only what one card was asked to hold counts, and only training.

    Args:
        gpus: Cards, as they were asked for.
        found: Their estimates.
        joining: What joins so many of a card, with the link and the network that were named.
        compiling: Puts XLA's memory in place of the formula's; None: formulas stay.
    """
    told = []
    for gpu in gpus:
        ones = [one for one in found if one.gpu == gpu.slug and one.replicas == 1]
        for one in ones:
            if one.fits == "no" and one.mode == "train" and ":" not in gpu.slug:
                rates = _bandwidths(gpu, joining)
                plans = fewest_that_fit(one, rates)
                ways = Sharding(gpu=gpu.slug, batch_size=one.batch_size, plans=plans,
                                most_cards=max(rates, default=1))  # fmt: skip
                told.append(compiling(ways, one, gpu, rates) if compiling else ways)
    return tuple(told)


def _bandwidths(gpu: Gpu, joining: Joining) -> dict[int, float]:
    """Return the bus bandwidth by number of cards that one machine holds or a network joins."""
    most, model = most_in_one_machine(gpu), time_model()
    joined = {count: _joined(gpu, count, joining) for count in (2, 4, 8, 16)}
    return {
        count: way_of(cluster, model).bytes_per_s
        for count, cluster in joined.items()
        if cluster and (count <= most or cluster.network)
    }


def _joined(gpu: Gpu, count: int, joining: Joining) -> Cluster | None:
    try:
        return joining(gpu, count)
    except UsageError:  # so many do not fill the nodes that were asked for
        return None


def price_of(gpu: Gpu) -> GpuPrice | None:
    """Return the user's price of an hour of one GPU, else the cheapest of whole cards that stay.

    None: nobody offers them.
    """
    offers = [
        offer
        for offer in all_offers(None)
        if offer.gpu_slug == gpu.slug and not offer.spot and offer.gpu_fraction >= 1.0
    ]
    own = [offer for offer in offers if offer.terms != "public"]
    best = min(own or offers, key=lambda offer: offer.usd_per_h / offer.gpu_count, default=None)
    return shared_price(best) if best else None


def shared_price(offer: Offer) -> GpuPrice | None:
    """Return what one GPU of an offer costs; None where it is the user's own."""
    if offer.provider == OWNED:
        return None
    return GpuPrice(
        usd_per_h=offer.usd_per_h / offer.gpu_count,
        offer=offer.slug,
        gpu_count=offer.gpu_count,
        priced_on=offer.priced_on,
        source=offer.source,
    )
