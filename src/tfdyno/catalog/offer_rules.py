"""Which priced rows to believe: pure rules that return reasons, nothing read or written."""

from __future__ import annotations

import datetime
import statistics
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.hardware import Gpu

PRICE_FACTOR = 4.0
"""A price per GPU further than this from the median over all rows of that GPU is not believed."""
LEAST_USD_PER_GPU_H, MOST_USD_PER_GPU_H = 0.01, 100.0
"""No whole GPU is rented for less or more, whatever its peers cost: a unit or a comma is wrong."""
FETCHED = "day when it was fetched"
"""The date precision of rows from public lists: their day is that of the servers' clocks."""
FEWEST_PEERS = 3
"""Rows that a median needs before it may judge one of them."""
WHOLE_COUNTS = frozenset({1, 2, 3, 4, 5, 8, 10, 16})
MEMORY_TOLERANCE_RATIO = 0.07


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One row of a price list, units as in ``offers.csv``."""

    provider: str
    instance: str
    region: str
    gpu_slug: str
    gpus: float
    """GPUs in the machine; below 1 the share of a card that a virtual GPU gets."""
    vcpus: int
    ram_gb: float
    usd_per_h: float
    spot_usd_per_h: float
    """0: none."""
    date: str
    """``2026-11-21`` or ``2026-11``."""
    date_precision: str
    gpu_memory_total_gb: float
    """GPU memory of the machine as the list states it; 0: not stated."""
    source: str
    available: int | None = None
    """Such machines that were free on that day, at this price or more; None: nobody says."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What names the row: provider, instance and region."""
        return self.provider, self.instance, self.region


def judge(
    listings: Sequence[Listing],
    peers: Sequence[Listing],
    gpus: Mapping[str, Gpu],
    *,
    today: datetime.date,
) -> list[tuple[str, ...]]:
    """Return every reason against each row, in order; an empty tuple where a row is believed.

    Args:
        listings: Rows to judge.
        peers: Rows whose prices make the median per GPU; usually contain ``listings``.
        gpus: The catalogue by slug.
        today: The latest day that a price may have.

    Source:
        Errors found in public price lists: discounted rates listed as on-demand, accelerators
        priced without their host, wrong GPU counts, spot prices of 0 or above on-demand.
    """
    medians = median_usd_per_gpu_h(peers)
    return [
        tuple(
            filter(
                None,
                (
                    unknown_gpu(one, gpus),
                    wrong_spot(one),
                    wrong_count(one),
                    wrong_memory(one, gpus),
                    absurd_price(one) or price_far_off(one, medians),
                    host_missing(one),
                    undocumented(one),
                    from_the_future(one, today),
                ),
            )
        )
        for one in listings
    ]


def median_usd_per_gpu_h(peers: Sequence[Listing]) -> dict[str, float]:
    """Return on-demand US$ per whole GPU and hour: the median of each GPU with 3 rows or more."""
    prices: dict[str, list[float]] = {}
    for peer in {peer.key: peer for peer in peers}.values():
        if peer.gpus > 0 and peer.usd_per_h > 0 and not host_missing(peer):
            prices.setdefault(peer.gpu_slug, []).append(peer.usd_per_h / peer.gpus)
    return {
        slug: statistics.median(some) for slug, some in prices.items() if len(some) >= FEWEST_PEERS
    }


def unknown_gpu(listing: Listing, gpus: Mapping[str, Gpu]) -> str:
    """The GPU must be an exact slug: names are never guessed from a prefix."""
    return "" if listing.gpu_slug in gpus else f"there is no GPU '{listing.gpu_slug}'"


def wrong_spot(listing: Listing) -> str:
    """Spot above on-demand means that one of the two is wrong; 0 means that there is none."""
    if listing.usd_per_h <= 0:
        return "the on-demand price is not above 0"
    if listing.spot_usd_per_h > listing.usd_per_h:
        return f"spot {listing.spot_usd_per_h:g} is above on-demand {listing.usd_per_h:g} USD/h"
    return ""


def wrong_count(listing: Listing) -> str:
    """Machines have 1, 2, 3, 4, 5, 8, 10 or 16 GPUs, or a share of one."""
    if 0 < listing.gpus < 1 or listing.gpus in WHOLE_COUNTS:
        return ""
    return f"no machine has {listing.gpus:g} GPUs"


def wrong_memory(listing: Listing, gpus: Mapping[str, Gpu]) -> str:
    """Stated GPU memory must be the card's times the count within 7 %."""
    gpu = gpus.get(listing.gpu_slug)
    if gpu is None or not listing.gpu_memory_total_gb:
        return ""
    expected = gpu.memory_bytes / GIB * listing.gpus
    if abs(listing.gpu_memory_total_gb / expected - 1) <= MEMORY_TOLERANCE_RATIO:
        return ""
    return f"{listing.gpu_memory_total_gb:g} GB of GPU memory stated, {expected:g} GB expected"


def price_far_off(listing: Listing, medians: Mapping[str, float]) -> str:
    """The price per GPU must be within a factor of 4 of the median."""
    median = medians.get(listing.gpu_slug)
    if not median or listing.gpus <= 0 or listing.usd_per_h <= 0:
        return ""
    price = listing.usd_per_h / listing.gpus
    if median / PRICE_FACTOR <= price <= median * PRICE_FACTOR:
        return ""
    return f"{price:.2f} USD/h per GPU is over a factor 4 from the median {median:.2f}"


def absurd_price(listing: Listing) -> str:
    """A whole GPU costs between a cent and 100 USD an hour."""
    if listing.gpus <= 0 or listing.usd_per_h <= 0:
        return ""
    price = listing.usd_per_h / listing.gpus
    if LEAST_USD_PER_GPU_H <= price <= MOST_USD_PER_GPU_H:
        return ""
    return f"{price:,.4g} USD/h per GPU cannot be"


def host_missing(listing: Listing) -> str:
    """Refuse a price of the accelerator alone: it is not the price of a machine."""
    if "GPU part only" in listing.instance:
        return "the price is of the GPU without its host"
    return ""


def from_the_future(listing: Listing, today: datetime.date) -> str:
    """A price of a day to come is a slip of the keyboard; a day is left for time zones.

    Of what was fetched the servers told the day: there it is this machine's clock that is wrong.
    """
    if listing.date_precision == FETCHED:
        return ""
    latest = (today + datetime.timedelta(days=1)).isoformat()[: len(listing.date)]
    return f"its date {listing.date} is in the future" if listing.date > latest else ""


def undocumented(listing: Listing) -> str:
    """Every price says where it comes from and how exact its date is."""
    return (
        "" if listing.source and listing.date_precision else "source or date precision is missing"
    )
