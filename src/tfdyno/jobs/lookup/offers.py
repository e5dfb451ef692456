"""Pick priced machines by GPU, provider and kind of price, with the age of every price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tfdyno.catalog import gpus, offers
from tfdyno.catalog.price_history import PriceHistory, by_machine, history_of, read_history
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.choose.hardware import OWNED, Offer

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterable
    from pathlib import Path

SortKey = Literal["price", "machine", "age", "gpu", "provider"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedOffer:
    """An offer with what follows from its price and date."""

    offer: Offer
    usd_per_gpu_h: float
    age_days: int
    staleness: str
    """Empty, ``stale`` (over 90 days) or ``very old`` (over 365)."""


def list_offers(
    *,
    gpu: str = "",
    provider: str = "",
    spot: bool | None = None,
    sort: SortKey = "price",
    extra: Path | None = None,
    today: datetime.date | None = None,
) -> tuple[PricedOffer, ...]:
    """Return the user's machines, then the offers that pass the rules, as chosen and in order.

    Args:
        gpu: Names as ``tfdyno gpus`` takes them, separated by commas; empty means all.
        provider: Empty means all; several are separated by commas.
        spot: Only spot (True), only on-demand (False), or both (None).
        sort: Price of one GPU, price of the machine, age, GPU or provider.
        extra: A price list of the user's own that goes before the others.
        today: The day that ages count from.

    Raises:
        UsageError: A GPU or provider is not known, or ``extra`` is not a price list.
    """
    today = today or offers.today()
    own = [offer for offer in offers.own_offers() if offer.provider == OWNED]
    found = [_priced(offer, today) for offer in (*own, *offers.all_offers(extra))]
    wanted = {one.slug for one in gpus.parse_list(gpu)} if gpu else set()
    providers = _providers(provider, {one.offer.provider for one in found})
    found = [
        one
        for one in found
        if (not wanted or one.offer.gpu_slug in wanted)
        and (not providers or one.offer.provider in providers)
        and (spot is None or one.offer.spot == spot)
    ]
    return tuple(sorted(found, key=lambda one: _order(one, sort)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Histories:
    """The courses of prices, and what of them cannot be read."""

    by_slug: dict[str, PriceHistory]
    damage: str
    """Empty: the history is whole."""


def histories(found: Iterable[PricedOffer]) -> Histories:
    """Return what offers cost before, by slug; damage of the history is told and no error."""
    former = read_history()
    machines = by_machine(former.rows)
    return Histories(
        by_slug={one.offer.slug: history_of(one.offer, machines) for one in found},
        damage=former.damage,
    )


def _order(one: PricedOffer, sort: SortKey) -> tuple[bool, float | str, float, str]:
    first: dict[SortKey, float | str] = {
        "price": one.usd_per_gpu_h,
        "machine": one.offer.usd_per_h,
        "age": one.age_days,
        "gpu": one.offer.gpu_slug,
        "provider": one.offer.provider,
    }
    public = one.offer.terms == "public"
    return public, first[sort], one.usd_per_gpu_h, one.offer.slug


def _priced(offer: Offer, today: datetime.date) -> PricedOffer:
    return PricedOffer(
        offer=offer,
        usd_per_gpu_h=offers.usd_per_gpu_h(offer),
        age_days=offers.age_days(offer, today) if offer.priced_on else 0,
        staleness=offers.staleness(offer, today) if offer.terms == "public" else "",
    )


def _providers(text: str, known: set[str]) -> set[str]:
    names = {name.strip().lower() for name in text.split(",") if name.strip()}
    offers.check_providers(sorted(names), known)
    return names
