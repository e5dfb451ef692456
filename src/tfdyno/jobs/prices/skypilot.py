"""SkyPilot's list of a provider: a CSV with a row per machine, region and zone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.units import GIB
from tfdyno.jobs.prices.rows import Fetched, PriceRow, Reading, number, read_csv

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.catalog.price_sources import PriceList, PriceSource
    from tfdyno.jobs.prices.fetch import Answered

_COLUMNS = ("InstanceType", "vCPUs", "MemoryGiB", "AcceleratorName", "AcceleratorCount",
            "GpuInfo", "Region", "Price", "SpotPrice")  # fmt: skip
_MEMORY = re.compile(r"MemoryInfo\W+SizeInMiB\W+(\d+(?:\.\d+)?)")
_MIB = 2**20


def fetch_list(source: PriceSource, name: str, get: Callable[..., Answered]) -> Fetched:
    """Fetch a provider's list; raises ``SourceError`` as ``get`` and ``read_list`` do."""
    url = f"{source.url}/{name}/vms.csv"
    answer = get(url)
    return Fetched(url=url, clock=answer.date, reading=read_list(answer.body, source.lists[name]))


def read_list(body: bytes, of: PriceList) -> Reading:
    """Read the machines with GPUs of a list.

    Raises:
        SourceError: It is no such list.
    """
    machines: list[tuple[PriceRow, str]] = []
    hosts: list[tuple[PriceRow, str]] = []
    parts: dict[tuple[str, float, str], PriceRow] = {}
    unreadable = 0
    for raw in read_csv(
        body, _COLUMNS, lambda raw: bool(raw["AcceleratorName"]) or raw["InstanceType"] in of.hosts
    ):
        try:
            row = _row(raw, of)
        except ValueError:
            unreadable += 1
            continue
        zone = raw.get("AvailabilityZone", "") or row.region
        if not row.instance:
            parts[row.card, row.gpus, zone] = row
        elif row.card:
            machines.append((row, zone))
        else:
            hosts.append((row, zone))
    whole = [_with_gpus(host, of.hosts[host.instance], zone, parts) for host, zone in hosts]
    kept = [row for row, _ in machines] + [row for row in whole if row]
    return Reading(rows=tuple(kept), unreadable=unreadable, left_out=whole.count(None))


def _row(raw: dict[str, str], of: PriceList) -> PriceRow:
    gpus = number(raw["AcceleratorCount"])
    name = raw["AcceleratorName"]
    if of.name_in_instance and (found := re.search(of.name_in_instance, raw["InstanceType"])):
        name = found[1]
    return PriceRow(
        instance=raw["InstanceType"],
        region=raw["Region"],
        card=name,
        memory_gb=_memory_gb(raw["GpuInfo"], gpus, of),
        gpus=gpus,
        vcpus=number(raw["vCPUs"]),
        ram_gb=number(raw["MemoryGiB"]),
        usd_per_h=number(raw["Price"]),
        spot_usd_per_h=number(raw["SpotPrice"]),
    )


def _memory_gb(info: str, gpus: float, of: PriceList) -> float:
    found = _MEMORY.search(info)
    if not found:
        return 0.0
    stated = float(found[1])
    stated = stated if of.memory_unit == "GB" else stated * _MIB / GIB
    return stated / gpus if of.memory_of == "machine" and gpus else stated


def _with_gpus(
    host: PriceRow, gpus: str, zone: str, parts: dict[tuple[str, float, str], PriceRow]
) -> PriceRow | None:
    """Add up host and GPUs; None: one has no price, or one that cannot be right."""
    count, _, card = gpus.partition(" ")
    part = parts.get((card, float(count), zone))
    if part is None or not (host.usd_per_h and part.usd_per_h):
        return None
    if part.spot_usd_per_h > part.usd_per_h or host.spot_usd_per_h > host.usd_per_h:
        return None
    both = host.spot_usd_per_h and part.spot_usd_per_h
    return replace(
        host,
        card=card,
        gpus=part.gpus,
        usd_per_h=round(host.usd_per_h + part.usd_per_h, 6),
        spot_usd_per_h=round(host.spot_usd_per_h + part.spot_usd_per_h, 6) if both else 0.0,
    )
