"""How far the price of an offer may go: as far as it went, else as far as other regions ask."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.offer_rules import LEAST_USD_PER_GPU_H, MOST_USD_PER_GPU_H, Listing
from tfdyno.catalog.offers import STALE_DAYS, day_of
from tfdyno.catalog.price_history import history_of
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.choose.hardware import OWNED, UNKNOWN_PRICE_RANGE, Offer, PriceRange

if TYPE_CHECKING:
    from collections.abc import Iterable

RECENT_DAYS = 365
"""What a machine cost before says little of what it will; a clock years off made such rows too."""
FEWEST_DAYS = 7
"""A price that stood still for less is not known to stand still."""
_Like = tuple[str, str, str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRecord:
    """What is known of prices beyond each offer's own."""

    regions: dict[_Like, list[Offer]]
    """Offers of one provider and machine."""
    former: dict[tuple[str, str, str], list[Listing]]

    def range_of(self, offer: Offer) -> PriceRange:
        """Return between which prices an offer was seen.

        Its own history first, since it tells of this region; then what other regions of the
        provider ask for the same machine, where this one goes when it is sold out here.
        """
        if offer.provider == OWNED:
            return PriceRange(basis="electricity")
        if offer.terms != "public":
            return PriceRange(basis="own price")
        one = _machine_of(offer)
        return self._by_history(one) or self._by_regions(one) or UNKNOWN_PRICE_RANGE

    def _by_history(self, offer: Offer) -> PriceRange | None:
        if (offer.provider, offer.instance, offer.region) not in self.former:
            return None
        gpus, now = offer.gpu_count * offer.gpu_fraction, day_of(offer.priced_on)
        points = [
            (day, one.usd_per_h)
            for one in history_of(offer, self.former).points
            if LEAST_USD_PER_GPU_H <= one.usd_per_h / gpus <= MOST_USD_PER_GPU_H
            and (now - (day := day_of(one.date))).days <= RECENT_DAYS
        ]
        prices = [usd for _, usd in points] + [offer.usd_per_h]
        first = min((day for day, _ in points), default=now)
        if min(prices) == max(prices) and (now - first).days < FEWEST_DAYS:
            return None
        return _ratios(offer, prices, PriceRange(basis="history", since=first.isoformat()))

    def _by_regions(self, offer: Offer) -> PriceRange | None:
        now = day_of(offer.priced_on)
        prices = [
            one.usd_per_h
            for one in self.regions.get(_like(offer), ())
            if abs((day_of(one.priced_on) - now).days) <= STALE_DAYS
        ]
        if not prices or min(prices) == max(prices):
            return None
        return _ratios(offer, prices, PriceRange(basis="regions", regions=len(prices)))


def price_record(
    offers: Iterable[Offer], former: dict[tuple[str, str, str], list[Listing]]
) -> PriceRecord:
    """Sort offers by machine; ``former`` prices are by provider, instance and region."""
    regions: dict[_Like, list[Offer]] = {}
    for offer in offers:
        if offer.terms == "public":
            regions.setdefault(_like(offer), []).append(offer)
    return PriceRecord(regions=regions, former=former)


def _like(offer: Offer) -> _Like:
    return offer.provider, offer.instance, offer.gpu_slug, offer.spot


def _machine_of(offer: Offer) -> Offer:
    """Return the offer of one machine, where this is of several that train together."""
    if offer.nodes == 1:
        return offer
    return replace(
        offer,
        instance=offer.instance.removeprefix(f"{offer.nodes} x "),
        gpu_count=offer.gpu_count // offer.nodes,
        usd_per_h=offer.usd_per_h / offer.nodes,
        nodes=1,
    )


def _ratios(offer: Offer, prices: list[float], known: PriceRange) -> PriceRange:
    return replace(
        known,
        low_ratio=min(1.0, min(prices) / offer.usd_per_h),
        high_ratio=max(1.0, max(prices) / offer.usd_per_h),
    )
