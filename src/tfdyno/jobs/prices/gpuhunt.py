"""gpuhunt's list of a provider: a CSV in a zip, on-demand and spot prices in rows of their own."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import TYPE_CHECKING

from tfdyno.jobs.prices.fetch import SourceError
from tfdyno.jobs.prices.rows import Fetched, PriceRow, Reading, number, read_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.catalog.price_sources import PriceSource
    from tfdyno.jobs.prices.fetch import Answered

_COLUMNS = ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name",
            "gpu_memory", "spot")  # fmt: skip
_MOST_VERSION_BYTES = 4096
_VERSION = re.compile(rb"[0-9A-Za-z._-]{1,64}")
_SPOT = {"true": True, "false": False}


def fetch_list(source: PriceSource, name: str, get: Callable[..., Answered]) -> Fetched:
    """Fetch the newest version of a provider's list.

    Args:
        source: Where the lists are.
        name: Of the provider there.
        get: Returns the answer of an address; raises ``SourceError``.

    Raises:
        SourceError: There is no such list, or what came is none.
    """
    told = get(f"{source.url}/{name}/version", most_bytes=_MOST_VERSION_BYTES).body.strip()
    if not _VERSION.fullmatch(told):
        raise SourceError("what should name the version of the list is something else")
    version = told.decode()
    url = f"{source.url}/{name}/{version}/catalog.zip"
    answer = get(url)
    reading = read_list(
        answer.body, name, most_bytes=source.most_bytes, skip_flags=source.skip_flags
    )
    return Fetched(url=url, clock=answer.date, reading=reading, version=version)


def read_list(body: bytes, name: str, *, most_bytes: int, skip_flags: Sequence[str]) -> Reading:
    """Read the machines with GPUs of a zipped list.

    Args:
        body: The zip.
        name: The provider by gpuhunt's name, which is that of the file within.
        most_bytes: The most that the list may unfold to.
        skip_flags: Rows with one of these are left out.

    Raises:
        SourceError: It is no such list.
    """
    rows: list[PriceRow] = []
    unreadable = left_out = 0
    content = _unzipped(body, f"{name}.csv", most_bytes)
    for raw in read_csv(content, _COLUMNS, lambda raw: raw["gpu_count"] not in ("0", "")):
        if raw.get("gpu_vendor") not in (None, "", "nvidia"):
            continue
        if set((raw.get("flags") or "").split()) & set(skip_flags):
            left_out += 1
            continue
        try:
            rows.append(_row(raw))
        except (ValueError, KeyError):
            unreadable += 1
    return Reading(rows=tuple(rows), unreadable=unreadable, left_out=left_out)


def _unzipped(body: bytes, name: str, most_bytes: int) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as folder, folder.open(name) as file:
            content = file.read(most_bytes + 1)
    except KeyError:
        raise SourceError(f"the zip has no {name}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError,
            NotImplementedError, RuntimeError):  # fmt: skip
        raise SourceError("the zip is damaged, or something else came in its place") from None
    if len(content) > most_bytes:
        raise SourceError(f"the list unfolds to over {most_bytes / 1e6:.0f} MB")
    return content


def _row(raw: dict[str, str]) -> PriceRow:
    price, spot = number(raw["price"]), _SPOT[raw["spot"].lower()]
    return PriceRow(
        instance=raw["instance_name"],
        region=raw["location"],
        card=raw["gpu_name"],
        memory_gb=number(raw["gpu_memory"]),
        gpus=number(raw["gpu_count"]),
        vcpus=number(raw["cpu"]),
        ram_gb=number(raw["memory"]),
        usd_per_h=0.0 if spot else price,
        spot_usd_per_h=price if spot else 0.0,
    )
