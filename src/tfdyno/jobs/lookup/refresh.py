"""Bring a newer price list into the user's own data folder, and quarantine what to disbelieve."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog import offers
from tfdyno.catalog.offer_rules import Listing
from tfdyno.catalog.offers import COLUMNS, Rejected
from tfdyno.catalog.tables import Faulty
from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import OSErrorsAs, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

QUARANTINE_COLUMNS = (*COLUMNS, *offers.OPTIONAL_COLUMNS, "reasons")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """What merging a file would do, or did."""

    file: str
    rows: int
    added: int
    """Rows for a provider, instance and region without a price so far."""
    changed: int
    """Rows that replace an older price."""
    unchanged: int
    """Rows that the user's list already has in the same words."""
    older: int
    """Rows that are older than the price at hand, and are left out."""
    quarantined: tuple[Rejected, ...]
    """Rows that break a rule."""
    malformed: tuple[Faulty, ...]
    """Lines that are no row of the table, or repeat one; quarantined, too."""
    written: bool
    offers_file: str
    quarantine_file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    own: dict[tuple[str, str, str], Listing]
    counts: dict[str, int]
    rejected: tuple[Rejected, ...]
    malformed: tuple[Faulty, ...]


def refresh(file: Path, *, write: bool) -> Refresh:
    """Merge a price list into the user's own; the newest date per machine and region wins.

    A row that breaks a rule or cannot be read goes to ``quarantine.csv`` beside the list with its
    reasons and never replaces a good one. Doing it twice changes nothing. Both files are replaced
    in one step each, quarantine first, so that a kill leaves the old list or the new one.

    Args:
        file: CSV with the columns of ``offers.csv``.
        write: False only counts.

    Raises:
        UsageError: The file cannot be read or has another header, or the data folder cannot be
            written.
    """
    plan = _plan(*offers.sift_listings(file))
    quarantine = offers.data_dir() / "quarantine.csv"
    if write:
        _make_folder(quarantine.parent)
        if plan.rejected or plan.malformed:
            write_atomic(quarantine, _with_quarantine(quarantine, plan))
        write_atomic(offers.user_file(), _table(COLUMNS, (_cells(one) for one in _sorted(plan))))
    return Refresh(
        file=str(file),
        rows=sum(plan.counts.values()) + len(plan.rejected) + len(plan.malformed),
        **plan.counts,
        quarantined=plan.rejected,
        malformed=plan.malformed,
        written=write,
        offers_file=str(offers.user_file()),
        quarantine_file=str(quarantine),
    )


def _plan(incoming: tuple[Listing, ...], malformed: tuple[Faulty, ...]) -> _Plan:
    own_file = offers.user_file()
    own = {one.key: one for one in offers.read_listings(own_file)} if own_file.exists() else {}
    shipped, _ = offers.split(offers.shipped_listings())
    good, rejected = offers.split(incoming, offers.shipped_listings())
    current = offers.merge(shipped, own.values())
    counts = dict.fromkeys(("added", "changed", "unchanged", "older"), 0)
    for one in good:
        outcome = _outcome(one, current.get(one.key))
        counts[outcome] += 1
        if outcome in {"added", "changed"}:
            own[one.key] = one
    return _Plan(own=own, counts=counts, rejected=rejected, malformed=malformed)


def _outcome(new: Listing, old: Listing | None) -> str:
    if old is None:
        return "added"
    if new == old:
        return "unchanged"
    return "older" if new.date < old.date else "changed"


def _sorted(plan: _Plan) -> list[Listing]:
    return [plan.own[key] for key in sorted(plan.own)]


def _make_folder(folder: Path) -> None:
    with OSErrorsAs(
        UsageError,
        f"cannot make the data folder {folder}",
        remedy="set TFDYNO_DATA to a folder that you may write",
    ):
        folder.mkdir(parents=True, exist_ok=True)


def _with_quarantine(path: Path, plan: _Plan) -> bytes:
    """Join old and new quarantined rows, each once, in the order they were first seen."""
    rows: list[list[str]] = []
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
    new = [
        [*_cells(one.listing), _number(one.listing.gpu_memory_total_gb), "; ".join(one.reasons)]
        for one in plan.rejected
    ]
    columns = QUARANTINE_COLUMNS[:-1]
    new += [[*(one.values.get(name, "") for name in columns), one.reason] for one in plan.malformed]
    for row in new:
        if row not in rows:
            rows.append(row)
    return _table(QUARANTINE_COLUMNS, rows)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def _cells(one: Listing) -> list[str]:
    """Write the row in the order of ``COLUMNS``, numbers so that they read back the same."""
    return [
        one.provider,
        one.instance,
        one.gpu_slug,
        _number(one.gpus),
        _number(one.vcpus),
        _number(one.ram_gb),
        one.region,
        _number(one.usd_per_h),
        _number(one.spot_usd_per_h),
        one.date,
        one.source,
        one.date_precision,
    ]


def _number(value: float) -> str:
    return "" if value == 0 else repr(int(value)) if value == int(value) else repr(value)
