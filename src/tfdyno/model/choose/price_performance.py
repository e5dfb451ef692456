"""What a measured speed costs: samples per dollar and dollars per epoch on dated offers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.units import HOUR_S
from tfdyno.core.choose.hardware import Offer
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.measure.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePerformance:
    """A measurement on one offer; date and source of the price are the offer's."""

    offer: Offer
    machines: int
    """The machines of the offer that the replicas need."""
    usd_per_h: float
    """The price of all those machines, whole: cards that the run did not use are paid too."""
    samples_per_usd: float
    usd_per_epoch: float | None
    """None where the length of the data is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The cheapest on-demand and the cheapest spot offer, or why there is none."""

    offers: tuple[PricePerformance, ...] = ()
    reason: str = ""
    """One sentence where ``offers`` is empty."""


def price_performance(
    measurement: Measurement, throughput_per_s: float, offers: Sequence[Offer]
) -> Priced:
    """Return what the measured speed would cost on the offers of the measured card.

    samples per US$ = throughput * 3600 / price of an hour of as many whole machines as the
    replicas need; US$ per epoch = samples of an epoch / samples per US$.

    Args:
        measurement: Its cards must be of one model that the catalogue knows.
        throughput_per_s: Samples per second over all replicas.
        offers: Priced machines, of any card.
    """
    slugs = {card.slug for card in measurement.environment.cards}
    if measurement.environment.device == "cpu" or not slugs:
        return Priced(reason=say("It was measured without a GPU: the catalogue prices GPUs only."))
    if len(slugs) > 1 or "" in slugs:
        names = sorted({card.name for card in measurement.environment.cards})
        reason = say(
            "{cards}: the catalogue has no row for it."
            if len(names) == 1
            else "{cards}: the catalogue has no price of such a mixture.",
            cards=" + ".join(names),
        )
        return Priced(reason=reason)
    (slug,) = slugs
    replicas = measurement.task.replica_count
    fitting = [one for one in offers if one.gpu_slug == slug and one.gpu_fraction == 1.0]
    found = [
        _priced(cheapest, replicas, throughput_per_s, measurement.task.samples_per_epoch)
        for spot in (False, True)
        if (cheapest := _cheapest((o for o in fitting if o.spot == spot), replicas))
    ]
    if not found:
        return Priced(reason=say("The catalogue has no offer of {card}.", card=slug))
    return Priced(offers=tuple(found))


def _cheapest(offers: Iterable[Offer], replicas: int) -> Offer | None:
    return min(offers, key=lambda one: (_usd_per_h(one, replicas), one.slug), default=None)


def _machines(offer: Offer, replicas: int) -> int:
    return math.ceil(replicas / offer.gpu_count)


def _usd_per_h(offer: Offer, replicas: int) -> float:
    return _machines(offer, replicas) * offer.usd_per_h


def _priced(
    offer: Offer, replicas: int, throughput_per_s: float, samples_per_epoch: int
) -> PricePerformance:
    usd_per_h = _usd_per_h(offer, replicas)
    samples_per_usd = throughput_per_s * HOUR_S / usd_per_h
    return PricePerformance(
        offer=offer,
        machines=_machines(offer, replicas),
        usd_per_h=usd_per_h,
        samples_per_usd=samples_per_usd,
        usd_per_epoch=samples_per_epoch / samples_per_usd if samples_per_epoch else None,
    )
