"""Rows of a list as rows of ``offers.csv``: names mapped, zones joined, what is unknown told."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.catalog.offer_rules import FETCHED, Listing
from tfdyno.catalog.price_sources import NO_CARD, card_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.catalog.price_sources import PriceList
    from tfdyno.jobs.prices.rows import PriceRow

ALL_REGIONS = "all-regions"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCard:
    """A name that no row of the table of cards has, or that two have: its prices stay out."""

    provider: str
    card: str
    memory_gb: float
    """Of one card as the list states it; 0: not stated."""
    instance: str
    """The first machine with it."""
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """What became of the rows of a list."""

    listings: tuple[Listing, ...]
    unknown: tuple[UnknownCard, ...]
    without_price: int
    """Machines that have no on-demand price above 0 anywhere in their region."""


def map_rows(rows: Iterable[PriceRow], of: PriceList, *, source: str, date: str) -> Mapped:
    """Return a row of ``offers.csv`` per machine and region, at its cheapest zone.

    Args:
        rows: As the list has them.
        of: What is known of the list.
        source: What the rows name as theirs.
        date: The day when they were fetched.
    """
    found: dict[tuple[str, str, str], Listing] = {}
    unknown: Counter[tuple[str, float]] = Counter()
    machine: dict[tuple[str, float], str] = {}
    for row in map(_printable, rows):
        card = card_of(of.provider, row.card, row.instance, row.memory_gb)
        if card is None:
            unknown[row.card, round(row.memory_gb)] += 1
            machine.setdefault((row.card, round(row.memory_gb)), row.instance)
        elif card.gpu_slug != NO_CARD and row.gpus:
            one = _listing(row, of, card.gpu_slug, card.gpu_count, source=source, date=date)
            found[one.key] = _cheaper(found.get(one.key), one)
    priced = [one for one in found.values() if one.usd_per_h > 0]
    return Mapped(
        listings=tuple(_joined(priced) if of.one_price else priced),
        unknown=tuple(
            UnknownCard(provider=of.provider, card=name, memory_gb=memory_gb, rows=count,
                        instance=machine[name, memory_gb])
            for (name, memory_gb), count in sorted(unknown.items())
        ),
        without_price=len(found) - len(priced),
    )  # fmt: skip


def _listing(
    row: PriceRow, of: PriceList, gpu_slug: str, known_count: float, *, source: str, date: str
) -> Listing:
    count = known_count or row.gpus
    return Listing(
        provider=of.provider,
        instance=f"{row.gpus:g} x {row.instance}" if of.count_in_instance else row.instance,
        region=_region(row.region, of),
        gpu_slug=gpu_slug,
        gpus=count,
        vcpus=int(row.vcpus),
        ram_gb=round(row.ram_gb, 1),
        usd_per_h=row.usd_per_h,
        spot_usd_per_h=row.spot_usd_per_h,
        date=date,
        date_precision=FETCHED,
        # Where the table knows the count better than the list, the list's memory counts as little.
        gpu_memory_total_gb=0.0 if known_count else round(row.memory_gb * row.gpus, 2),
        available=row.free,
        source=source,
    )


def _printable(row: PriceRow) -> PriceRow:
    """Take control characters out of names: a list could write on the reader's terminal."""
    if (row.instance + row.region + row.card).isprintable():
        return row
    return replace(row, instance=_plain(row.instance), region=_plain(row.region),
                   card=_plain(row.card))  # fmt: skip


def _plain(text: str) -> str:
    return "".join(one for one in text if one.isprintable())


def _region(location: str, of: PriceList) -> str:
    cut = re.sub(of.zone_suffix, "", location) if of.zone_suffix else location
    return cut or "unknown"


def _cheaper(one: Listing | None, other: Listing) -> Listing:
    """Join two zones of a region, or the on-demand and the spot row of a machine.

    Machines that are free in either are so at this price or more.
    """
    if one is None:
        return other
    first = min(one, other, key=lambda some: some.usd_per_h or float("inf"))
    spots = [some.spot_usd_per_h for some in (one, other) if some.spot_usd_per_h > 0]
    free = _sum_known(some.available for some in (one, other))
    return replace(first, spot_usd_per_h=min(spots, default=0.0), available=free)


def _joined(listings: list[Listing]) -> list[Listing]:
    """Make one row of a machine that costs the same in all its regions."""
    groups: dict[str, list[Listing]] = {}
    for one in listings:
        groups.setdefault(one.instance, []).append(one)
    joined: list[Listing] = []
    for some in groups.values():
        one_price = len({(one.usd_per_h, one.spot_usd_per_h) for one in some}) == 1
        free = _sum_known(one.available for one in some)
        joined += [replace(some[0], region=ALL_REGIONS, available=free)] if one_price else some
    return joined


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if known else None
