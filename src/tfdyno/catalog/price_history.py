"""What priced machines cost before: rows that newer ones replaced, and the range that they make."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tfdyno.catalog import offers
from tfdyno.catalog.offer_rules import Listing, absurd_price, wrong_count, wrong_spot
from tfdyno.catalog.tables import Row, sift_table
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.hardware import Offer

HISTORY_KEY = (*offers.KEY, "date")
MOST_POINTS = 40
"""Former prices of one machine that are kept, the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """A price, and the day it was last seen."""

    date: str
    usd_per_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceHistory:
    """What one offer cost, and what it costs now."""

    points: tuple[PricePoint, ...]
    """Oldest first; the last one is the price now."""
    low_usd_per_h: float
    high_usd_per_h: float
    change_ratio: float
    """The price now over the oldest known one, less 1: -0.2 is a fifth cheaper. A machine that
    costs electricity alone has none, and stays at 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerPrices:
    """The history file, as far as it can be read."""

    rows: tuple[Listing, ...]
    damage: str
    """Why the file, or some of its lines, are left out; empty: it is whole."""
    unreadable: bool
    """Nothing of the file can be read."""


def history_file() -> Path:
    """Return where former prices are kept."""
    return offers.data_dir() / "price_history.csv"


def read_history() -> FormerPrices:
    """Read the user's history; damage is told and never an error."""
    path = history_file()
    return _read(path, offers.stamp_of(path))


def former_prices() -> dict[tuple[str, str, str], list[Listing]]:
    """Return what of the user's history can be read, by provider, instance and region."""
    path = history_file()
    return _machines(path, offers.stamp_of(path))


@functools.lru_cache(maxsize=1)
def _machines(path: Path, stamp: tuple[object, ...]) -> dict[tuple[str, str, str], list[Listing]]:
    return by_machine(_read(path, stamp).rows)


@functools.lru_cache(maxsize=1)
def _read(path: Path, _stamp: tuple[object, ...]) -> FormerPrices:
    """Read the file as it stands: a page that asks again and again reads it once."""
    if not path.exists():
        return FormerPrices(rows=(), damage="", unreadable=False)
    try:
        rows, faulty = sift_table(
            path, offers.COLUMNS, key=HISTORY_KEY, optional=(), read=_former_price
        )
    except UsageError as error:
        return FormerPrices(rows=(), damage=error.what, unreadable=True)
    damage = ""
    if faulty:
        count = f"{len(faulty)} lines" if len(faulty) > 1 else "a line"
        damage = f"{count} of {path} cannot be read, the first: {faulty[0].reason}"
    return FormerPrices(rows=rows, damage=damage, unreadable=False)


def _former_price(row: Row) -> Listing:
    """Read one row; a price that no machine has ever had is a fault of its line."""
    one = offers.listing_of(row)
    if why := wrong_spot(one) or wrong_count(one) or absurd_price(one):
        raise row.fault(why)
    return one


def history_of(offer: Offer, former: dict[tuple[str, str, str], list[Listing]]) -> PriceHistory:
    """Return the course of an offer's price, on-demand or spot as the offer is.

    Args:
        offer: With its price now.
        former: Rows of the history by provider, instance and region.
    """
    past = former.get((offer.provider, offer.instance, offer.region), [])
    prices = {
        one.date: one.spot_usd_per_h if offer.spot else one.usd_per_h
        for one in past
        if one.gpu_slug == offer.gpu_slug and one.date < offer.priced_on
    }
    points = [PricePoint(date=date, usd_per_h=usd) for date, usd in sorted(prices.items()) if usd]
    points.append(PricePoint(date=offer.priced_on, usd_per_h=offer.usd_per_h))
    levels = [point.usd_per_h for point in points]
    return PriceHistory(
        points=tuple(points),
        low_usd_per_h=min(levels),
        high_usd_per_h=max(levels),
        change_ratio=levels[-1] / levels[0] - 1 if levels[0] else 0.0,
    )


def by_machine(rows: tuple[Listing, ...]) -> dict[tuple[str, str, str], list[Listing]]:
    """Return rows by provider, instance and region."""
    found: dict[tuple[str, str, str], list[Listing]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return found


def with_former(rows: tuple[Listing, ...], more: tuple[Listing, ...]) -> tuple[Listing, ...]:
    """Add rows to a history: each machine and day once, of every machine the newest ones."""
    joined = {(*row.key, row.date): row for row in (*rows, *more)}
    machines = by_machine(tuple(joined[key] for key in sorted(joined)))
    return tuple(row for some in machines.values() for row in some[-MOST_POINTS:])
