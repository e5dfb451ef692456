"""The user's own machines and prices, ``prices.toml``: they go before what others ask."""

from __future__ import annotations

import datetime
import warnings
from typing import TYPE_CHECKING, Any, get_args

from tfdyno.catalog import gpus
from tfdyno.catalog.offer_rules import WHOLE_COUNTS
from tfdyno.core.base.codec import read_toml
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import one_of, positive, whole
from tfdyno.core.base.units import GIB
from tfdyno.core.choose.hardware import OWNED, Offer, OwnTerms

if TYPE_CHECKING:
    from pathlib import Path

OWN = "own"
"""The provider of a priced machine that names none."""
OLD_RATE_DAYS = 90
_CURRENCY_KEYS = ("currency", "usd_per_unit", "rate_date")
_MACHINE_KEYS = ("name", "terms", "gpu", "gpus", "per_hour", "provider", "region", "vcpus",
                 "ram_gb", "date", "until")  # fmt: skip


def read_own_offers(path: Path, today: datetime.date) -> tuple[Offer, ...]:
    """Return the user's machines; of those that cost electricity alone the provider is ``OWNED``.

    Args:
        path: The file; without it there are none.
        today: A machine whose ``until`` is before is left out.

    Raises:
        UsageError: The file is not such a file; names the machine and the key.
    """
    if not path.exists():
        return ()
    raw = read_toml(path)
    machines = raw.pop("machine", [])
    if not isinstance(machines, list) or not all(isinstance(one, dict) for one in machines):
        raise UsageError(f"{path}: machine is no list of tables",
                         remedy="begin each machine with [[machine]]")  # fmt: skip
    for key in raw:
        one_of(key, (*_CURRENCY_KEYS, "machine"), f"{path}: the key")
    usd, rate = _rate(raw, path, today)
    changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, tz=datetime.UTC).date()
    found: dict[str, Offer] = {}
    for number, machine in enumerate(machines, start=1):
        where = f"{path}, machine {machine.get('name', number)}"
        offer = _offer(machine, where, usd=usd, rate=rate, changed=min(changed, today), today=today)
        if offer is None:
            continue
        if offer.slug in found:
            raise UsageError(f"{where} is there twice", remedy="give each machine its own name")
        found[offer.slug] = offer
    return tuple(found.values())


def _rate(raw: dict[str, Any], path: Path, today: datetime.date) -> tuple[float, str]:
    """Return USD for a unit of the currency, and in words how it was exchanged."""
    currency = str(raw.get("currency", "USD")).upper()
    if currency == "USD":
        if extra := [key for key in _CURRENCY_KEYS[1:] if key in raw]:
            raise UsageError(f"{path}: {extra[0]} is for another currency than USD",
                             remedy=f"add currency, or leave {extra[0]} out")  # fmt: skip
        return 1.0, ""
    if missing := [key for key in _CURRENCY_KEYS[1:] if key not in raw]:
        raise UsageError(f"{path}: prices in {currency} need {missing[0]}",
                         remedy="give what a unit is in USD, and the day of that rate")  # fmt: skip
    usd = positive(raw["usd_per_unit"], f"{path}: usd_per_unit")
    date = _date(raw["rate_date"], f"{path}: rate_date")
    if date > today + datetime.timedelta(days=1):
        raise UsageError(f"{path}: rate_date {date} is in the future")
    if (today - date).days > OLD_RATE_DAYS:
        warnings.warn(
            f"the rate of {currency} in {path} is of {date}, {(today - date).days} days ago: your "
            "own prices in USD are as old",
            stacklevel=2,
        )
    return usd, f", 1 {currency} = {usd:g} USD of {date}"


def _offer(
    raw: dict[str, Any], where: str, *, usd: float, rate: str, changed: datetime.date,
    today: datetime.date,
) -> Offer | None:  # fmt: skip
    for key in raw:
        one_of(key, _MACHINE_KEYS, f"{where}: the key")
    for key in ("name", "gpu", "terms"):
        if not isinstance(raw.get(key), str) or not raw[key].strip():
            raise UsageError(f"{where} has no {key}", remedy=f"add {key}, a text")
    terms = one_of(raw["terms"], get_args(OwnTerms), f"{where}: terms")
    count = whole(raw.get("gpus", 1), f"{where}: gpus", most=max(WHOLE_COUNTS))
    if "per_hour" not in raw and terms != OWNED:
        raise UsageError(f"{where} has no per_hour", remedy="give what the machine costs an hour")
    until = _date(raw["until"], f"{where}: until") if "until" in raw else None
    if until and until < today:
        warnings.warn(f"{where} ended on {until} and is left out", stacklevel=2)
        return None
    priced = "per_hour" in raw
    provider = str(raw.get("provider") or OWN).lower() if priced else OWNED
    if priced and provider == OWNED:  # which stands for what costs electricity alone
        provider = OWN
    try:
        gpu = gpus.find(raw["gpu"])
    except UsageError as error:
        raise UsageError(f"{where}: {error.what}", why=error.why, remedy=error.remedy) from None
    region = str(raw.get("region", ""))
    return Offer(
        slug="/".join((provider, raw["name"], region, terms)),
        provider=provider,
        instance=raw["name"],
        region=region,
        gpu_slug=gpu.slug,
        gpu_count=count,
        gpu_fraction=1.0,
        vcpus=whole(raw.get("vcpus", 0), f"{where}: vcpus", least=0),
        ram_bytes=whole(raw.get("ram_gb", 0), f"{where}: ram_gb", least=0) * GIB,
        usd_per_h=positive(raw["per_hour"], f"{where}: per_hour") * usd if priced else 0.0,
        spot=False,
        priced_on=(_date(raw["date"], f"{where}: date") if "date" in raw else changed).isoformat()
        if priced
        else "",
        date_precision="day" if "date" in raw else "day when the file was changed",
        source=f"your own prices.toml{rate if priced else ''}",
        terms=terms,
    )


def _date(value: object, what: str) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(str(value))
    except ValueError:
        raise UsageError(f"{what} is '{value}', no day", remedy="write it as 2026-11-21") from None
