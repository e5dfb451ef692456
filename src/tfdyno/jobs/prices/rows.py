"""Rows of price lists as the lists have them, and a table in CSV as such rows."""

from __future__ import annotations

import csv
import datetime
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.jobs.prices.fetch import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_CELL_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """A machine with GPUs in a region, by the names of the list."""

    instance: str
    region: str
    card: str
    memory_gb: float
    """Of one card; 0: not stated."""
    gpus: float
    vcpus: float = 0.0
    ram_gb: float = 0.0
    usd_per_h: float = 0.0
    """On demand; 0: none."""
    spot_usd_per_h: float = 0.0
    free: int | None = None
    """Such machines that can be had now; None: the list does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a list has of machines with GPUs."""

    rows: tuple[PriceRow, ...]
    unreadable: int = 0
    """Rows in which a number is none."""
    left_out: int = 0
    """Rows that are no price of a machine, as ``known_wrong`` of the list says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A list as it was found."""

    url: str
    clock: datetime.datetime | None
    """The time of its server."""
    reading: Reading
    version: str = ""
    """Of the list, where it has one."""


def read_csv(
    body: bytes,
    columns: Iterable[str],
    wanted: Callable[[dict[str, str]], bool] = lambda _row: True,
) -> list[dict[str, str]]:
    """Return the rows of a list in CSV.

    Args:
        body: The list.
        columns: Those that it must have.
        wanted: Says which rows are kept: most of a large list are machines without GPUs.

    Raises:
        SourceError: It is none, lacks a column, or has prices in another currency.
    """
    if body.lstrip()[:1] in (b"<", b"{"):
        raise SourceError("a web page or a message came in place of a list")
    csv.field_size_limit(_MOST_CELL_BYTES)
    try:
        reader = csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        header = reader.fieldnames or []
        if missing := [name for name in columns if name not in header]:
            raise SourceError(f"the list has no column {missing[0]}")
        whole = (row for row in reader if None not in row and None not in row.values())
        rows = [row for row in whole if wanted(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"the list is damaged ({error})") from None
    for column in (name for name in header if "currency" in name.lower()):
        if other := next((row[column] for row in rows if row[column] not in ("", "USD")), ""):
            raise SourceError(f"its prices are in {other}, not in USD")
    return rows


def number(text: str | float) -> float:
    """Read a finite number of at least 0; an empty cell is 0; raises ``ValueError``."""
    value = float(text or 0)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return value
