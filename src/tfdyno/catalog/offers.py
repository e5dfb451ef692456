"""Priced machines: the shipped list, the user's own list over it, one noun per price."""

from __future__ import annotations

import datetime
import functools
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog import gpus
from tfdyno.catalog.offer_rules import FETCHED, Listing, judge
from tfdyno.catalog.own_prices import read_own_offers
from tfdyno.catalog.tables import DATA, Faulty, Row, read_table, sift_table
from tfdyno.core.base import clock
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import GIB
from tfdyno.core.choose.hardware import OWNED, Offer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

SHIPPED = DATA / "offers.csv"
COLUMNS = (
    "provider",
    "instance",
    "gpu_slug",
    "gpu_count",
    "vcpus",
    "ram_gb",
    "region",
    "price_per_hour_usd",
    "spot_per_hour_usd",
    "date",
    "source",
    "date_precision",
)
KEY = ("provider", "instance", "region")
OPTIONAL_COLUMNS = ("gpu_memory_total_gb", "available")
STALE_DAYS = 90
VERY_OLD_DAYS = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A row that stays out of the offers, and every rule that it breaks."""

    listing: Listing
    reasons: tuple[str, ...]


def data_dir() -> Path:
    """Return the folder of the user's own tables: ``$TFDYNO_DATA``, else in the XDG data folder."""
    own = os.environ.get("TFDYNO_DATA")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "tfdyno"


def all_offers(extra: Path | None = None) -> tuple[Offer, ...]:
    """Return the user's own priced machines, then every offer that passes the rules.

    On-demand and spot are offers of their own; of both kinds the cheapest per GPU goes first.

    Args:
        extra: A file with the columns of ``offers.csv`` whose rows replace those of the same
            provider, instance and region, whatever their date.

    Raises:
        UsageError: ``extra`` or the user's own table is not such a file.
        ToolError: The shipped table is corrupt.
    """
    return _kept_offers(extra, today(), tuple(map(stamp_of, (user_file(), own_file(), extra))))


def stamp_of(path: Path | None) -> tuple[object, ...]:
    """Return what changes when a file is written anew."""
    try:
        state = path.stat() if path else None
    except OSError:
        state = None
    return (path, state and (state.st_mtime_ns, state.st_size, state.st_ino))


@functools.lru_cache(maxsize=2)
def _kept_offers(
    extra: Path | None, _day: datetime.date, _stamps: tuple[object, ...]
) -> tuple[Offer, ...]:
    """Read and judge the lists; a page asks for the same ones at each move of a control."""
    good, _ = sift(extra)
    own = [offer for offer in own_offers() if offer.provider != OWNED]
    found = (offer for listing in good for offer in _offers(listing))
    return (*_by_price(own), *_by_price(found))


def _by_price(found: Iterable[Offer]) -> list[Offer]:
    return sorted(found, key=lambda one: (usd_per_gpu_h(one), one.slug))


def own_offers() -> tuple[Offer, ...]:
    """Return the user's own machines, priced or not; raises ``UsageError`` for a wrong file."""
    return read_own_offers(own_file(), today()) if own_file().exists() else ()


def own_file() -> Path:
    """Return the file with the user's own machines and prices."""
    return data_dir() / "prices.toml"


def check_providers(names: Iterable[str], known: Collection[str]) -> None:
    """Refuse who offers nothing; raises ``UsageError``."""
    unknown = next((one for one in names if one not in known), None)
    if unknown is not None:
        raise UsageError(
            f"there is no offer of provider '{unknown}'",
            remedy=f"choose from {', '.join(sorted(known))}",
        )


def rejected_offers(extra: Path | None = None) -> tuple[Rejected, ...]:
    """Return the rows that ``all_offers`` leaves out, with reasons; raises as it does."""
    return sift(extra)[1]


def rejected_in(path: Path) -> tuple[Rejected, ...]:
    """Return the rows of one user's file that ``all_offers`` leaves out; raises as it does."""
    return split(read_listings(path), shipped_listings())[1]


def sift(extra: Path | None = None) -> tuple[tuple[Listing, ...], tuple[Rejected, ...]]:
    """Split every list into good and rejected rows; a rejected row never hides a good one."""
    shipped = shipped_listings()
    good, rejected = split(shipped)
    _check_data_dir()
    if user_file().exists():
        own, bad = _own(read_listings(user_file()), shipped)
        _warn_of_the_future(own, bad)
        good, rejected = tuple(merge(good, own).values()), (*rejected, *bad)
    if extra is not None:
        given, bad = split(read_listings(extra), shipped)
        kept = {listing.key: listing for listing in (*good, *given)}
        good, rejected = tuple(kept.values()), (*rejected, *bad)
    return good, rejected


def _own(
    rows: Iterable[Listing], shipped: tuple[Listing, ...]
) -> tuple[tuple[Listing, ...], tuple[Rejected, ...]]:
    """Judge the user's list; the level of what was fetched was judged when it came, by its peers.

    Here a provider with thousands of rows would set the level, and all others would be far off.
    """
    rows = tuple(rows)
    fetched, bad = split((one for one in rows if one.date_precision == FETCHED), themselves=False)
    other, worse = split((one for one in rows if one.date_precision != FETCHED), shipped)
    return (*fetched, *other), (*bad, *worse)


def split(
    listings: Iterable[Listing], peers: Iterable[Listing] = (), *, themselves: bool = True
) -> tuple[tuple[Listing, ...], tuple[Rejected, ...]]:
    """Judge ``listings`` by the price level of themselves and of ``peers``; else of peers alone."""
    listings = tuple(listings)
    verdicts = judge(
        listings,
        (*listings, *peers) if themselves else tuple(peers),
        {gpu.slug: gpu for gpu in gpus.all_gpus()},
        today=today(),
    )
    good = tuple(one for one, reasons in zip(listings, verdicts, strict=True) if not reasons)
    bad = tuple(
        Rejected(listing=one, reasons=reasons)
        for one, reasons in zip(listings, verdicts, strict=True)
        if reasons
    )
    return good, bad


def today() -> datetime.date:
    """Return the day by this machine's clock, or that of the newest price shipped if it is later.

    A clock behind what came with the program is wrong; by it every price would be of the future.
    """
    now = clock.today()
    newest = _newest_shipped()
    if now >= newest:
        return now
    warnings.warn(
        f"this machine's clock says {now}, but prices of {newest} came with tfdyno: ages are "
        "counted from then; set the clock",
        stacklevel=2,
    )
    return newest


def _warn_of_the_future(own: Iterable[Listing], rejected: Iterable[Rejected]) -> None:
    """Tell that prices of the user's list are newer than today: its clock, or this one, is off."""
    now = today()
    later = [
        one.listing.date
        for one in rejected
        if any(reason.endswith("is in the future") for reason in one.reasons)
    ]
    if later:
        warnings.warn(
            f"{len(later)} rows of {user_file()}, dated up to {max(later)}, are left out: this "
            f"machine's clock says {now}; set the clock, or take them anew with "
            "'tfdyno data refresh'",
            stacklevel=2,
        )
    newest = max((one.date for one in own if one.date_precision == FETCHED), default="")
    if newest > (now + datetime.timedelta(days=1)).isoformat():
        warnings.warn(
            f"this machine's clock says {now}, but prices of {newest} were fetched: their age "
            "counts as nothing until then; set the clock",
            stacklevel=2,
        )


def _check_data_dir() -> None:
    """Warn of a folder that was named and is not there: its prices would be missed in silence."""
    if os.environ.get("TFDYNO_DATA") and not data_dir().is_dir():
        warnings.warn(
            f"TFDYNO_DATA names {data_dir()}, which is no folder: only the prices that come with "
            "tfdyno are used",
            stacklevel=2,
        )


def merge(
    older: Iterable[Listing], newer: Iterable[Listing]
) -> dict[tuple[str, str, str], Listing]:
    """Keep per provider, instance and region the later row; ``newer`` wins a tie."""
    merged = {listing.key: listing for listing in older}
    for listing in newer:
        if listing.key not in merged or listing.date >= merged[listing.key].date:
            merged[listing.key] = listing
    return merged


def user_file() -> Path:
    """Return the user's own price list, which ``tfdyno data refresh`` writes."""
    return data_dir() / "offers.csv"


@functools.lru_cache(maxsize=1)
def shipped_listings() -> tuple[Listing, ...]:
    """Return the rows that come with tfdyno; raises ``ToolError`` when they are corrupt."""
    return _read(SHIPPED, shipped=True)


@functools.lru_cache(maxsize=1)
def _newest_shipped() -> datetime.date:
    return max(day_of(listing.date) for listing in shipped_listings())


def read_listings(path: Path) -> tuple[Listing, ...]:
    """Read a user's file with the columns of ``offers.csv``; raises ``UsageError``."""
    return _read(path, shipped=False)


def sift_listings(path: Path) -> tuple[tuple[Listing, ...], tuple[Faulty, ...]]:
    """Return the rows of a user's file that can be read, and the lines that cannot.

    Raises:
        UsageError: The file cannot be read, or its header is another.
    """
    return sift_table(path, COLUMNS, key=KEY, optional=OPTIONAL_COLUMNS, read=listing_of)


def age_days(offer: Offer, today: datetime.date) -> int:
    """Return days since the price was seen; a month without a day counts from its first day."""
    return max(0, (today - day_of(offer.priced_on)).days)


def staleness(offer: Offer, today: datetime.date) -> str:
    """Return ``very old`` over 365 days, ``stale`` over 90, else nothing."""
    age = age_days(offer, today)
    return "very old" if age > VERY_OLD_DAYS else "stale" if age > STALE_DAYS else ""


def usd_per_gpu_h(offer: Offer) -> float:
    """Price of one whole GPU for an hour."""
    return offer.usd_per_h / (offer.gpu_count * offer.gpu_fraction)


def _read(path: Path, *, shipped: bool) -> tuple[Listing, ...]:
    rows = read_table(
        path,
        COLUMNS,
        key=KEY,
        optional=OPTIONAL_COLUMNS,
        shipped=shipped,
        ordered=shipped,
    )
    return tuple(listing_of(row) for row in rows)


def listing_of(row: Row) -> Listing:
    """Read one row; what is wrong with it is the error of its line."""
    try:
        day_of(row.text("date"))
    except ValueError:
        raise row.fault(f"date is '{row.text('date')}', not 2026-11-21 or 2026-11") from None
    return Listing(
        provider=row.text("provider"),
        instance=row.text("instance"),
        region=row.text("region"),
        gpu_slug=row.text("gpu_slug"),
        gpus=row.number("gpu_count"),
        vcpus=row.whole("vcpus", default=0),
        ram_gb=row.number("ram_gb", default=0.0),
        usd_per_h=row.number("price_per_hour_usd"),
        spot_usd_per_h=row.number("spot_per_hour_usd", default=0.0),
        date=row.text("date"),
        date_precision=row.text("date_precision"),
        gpu_memory_total_gb=row.number("gpu_memory_total_gb", default=0.0),
        source=row.text("source"),
        available=row.whole("available") if row.text("available") else None,
    )


def day_of(date: str) -> datetime.date:
    """Return the day of a price; of a month, its first."""
    return datetime.date.fromisoformat(date if len(date) > 7 else f"{date}-01")


def _offers(listing: Listing) -> Iterable[Offer]:
    for spot, price in ((False, listing.usd_per_h), (True, listing.spot_usd_per_h)):
        if price > 0:
            yield Offer(
                slug="/".join((*listing.key, "spot" if spot else "on_demand")),
                provider=listing.provider,
                instance=listing.instance,
                region=listing.region,
                gpu_slug=listing.gpu_slug,
                gpu_count=max(1, round(listing.gpus)),
                gpu_fraction=min(1.0, listing.gpus),
                vcpus=listing.vcpus,
                ram_bytes=listing.ram_gb * GIB,
                usd_per_h=price,
                spot=spot,
                priced_on=listing.date,
                date_precision=listing.date_precision,
                source=listing.source,
                available=listing.available,
            )
