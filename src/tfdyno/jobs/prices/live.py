"""Answers of providers themselves, without an account: Vast's offers and Lium's nodes, in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.catalog.offer_rules import WHOLE_COUNTS
from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.prices.fetch import SourceError
from tfdyno.jobs.prices.rows import Fetched, PriceRow, Reading, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.catalog.price_sources import PriceSource
    from tfdyno.jobs.prices.fetch import Answered

_MIB_A_GIB = 1024
_MB_A_GB = 1000
VAST_QUERY = to_json(
    {
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "order": [["score", "desc"]],
        "limit": 3000,
    }
)
"""What is asked of Vast: all that can be rented now; without a limit it names a few."""


def fetch_vast(source: PriceSource, _name: str, get: Callable[..., Answered]) -> Fetched:
    """Fetch Vast's offers of now; raises ``SourceError`` as ``get`` and ``read_vast`` do."""
    answer = get(source.url, query=VAST_QUERY)
    return Fetched(url=source.url, clock=answer.date, reading=read_vast(answer.body))


def fetch_lium(source: PriceSource, _name: str, get: Callable[..., Answered]) -> Fetched:
    """Fetch Lium's nodes of now; raises ``SourceError`` as ``get`` and ``read_lium`` do."""
    answer = get(source.url)
    return Fetched(url=source.url, clock=answer.date, reading=read_lium(answer.body))


def read_vast(body: bytes) -> Reading:
    """Read Vast's offers; like machines of a country are one, by card and count.

    Raises:
        SourceError: It is no such answer.
    """
    return _read(body, "offers", _vast_rows)


def read_lium(body: bytes) -> Reading:
    """Read Lium's nodes: any count of GPUs from the least that is let to what is free.

    Raises:
        SourceError: It is no such answer.
    """
    return _read(body, "nodes", _lium_rows)


def _read(body: bytes, key: str, rows_of: Callable[[dict[str, Any]], list[PriceRow]]) -> Reading:
    try:
        found = from_json(body, dict[str, Any])[key]
    except (UsageError, KeyError):
        raise SourceError("a web page or a message came in place of a list") from None
    if not isinstance(found, list):
        raise SourceError("the answer has another form than it used to")
    rows: list[PriceRow] = []
    unreadable = 0
    for one in found:
        try:
            rows += rows_of(one)
        except (KeyError, TypeError, ValueError, AttributeError):
            unreadable += 1
    return Reading(rows=tuple(rows), unreadable=unreadable)


def _vast_rows(raw: dict[str, Any]) -> list[PriceRow]:
    card, gpus = _card(raw["gpu_name"]), _whole(raw["num_gpus"])
    cores, share = number(raw["cpu_cores"] or 0), number(raw["cpu_cores_effective"] or 0)
    ram_gb = number(raw["cpu_ram"]) / _MB_A_GB * (share / cores if cores else 0.0)
    return [
        PriceRow(
            instance=f"{gpus}x-{card}",
            region=str(raw.get("geolocation") or "").rpartition(",")[2].strip(),
            card=card,
            memory_gb=number(raw["gpu_ram"]) / _MIB_A_GIB,
            gpus=gpus,
            vcpus=share,
            ram_gb=ram_gb,
            usd_per_h=number(raw["dph_base"]),
            spot_usd_per_h=number(raw.get("min_bid") or 0),
            free=1,
        )
    ]


def _lium_rows(raw: dict[str, Any]) -> list[PriceRow]:
    card, all_gpus = _card(raw["gpu_model"]), _whole(raw["gpu_count"])
    free = min(_whole(raw["available_gpu_count"]), all_gpus)
    least = max(1, _whole(raw.get("min_rentable_gpu_count") or all_gpus))
    usd_per_h = number(raw["price_per_gpu_hour"])
    vcpus, ram_gb = number(raw.get("cpu_count") or 0), number(raw.get("ram_gb") or 0)
    return [
        PriceRow(
            instance=f"{count}x-{card}",
            region=str(raw.get("country_code") or ""),
            card=card,
            memory_gb=number(raw["gpu_memory_gb"]),
            gpus=count,
            vcpus=vcpus * count / all_gpus,
            ram_gb=ram_gb * count / all_gpus,
            usd_per_h=round(usd_per_h * count, 6),
            free=free // count,
        )
        for count in sorted(WHOLE_COUNTS)
        if least <= count <= free
    ]


def _card(name: str) -> str:
    return name.strip().replace(" ", "_")


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value
