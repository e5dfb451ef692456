"""Bring newer prices into the user's own list: old ones become history, doubtful ones stay out."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog import offers
from tfdyno.catalog.offer_rules import FETCHED, Listing
from tfdyno.catalog.offers import COLUMNS, Rejected
from tfdyno.catalog.price_history import history_file, read_history, with_former
from tfdyno.catalog.tables import Faulty
from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import OSErrorsAs, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

QUARANTINE_COLUMNS = (*COLUMNS, "gpu_memory_total_gb", "reasons")


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
    gone: int
    """Rows fetched before that their provider offers no more."""
    quarantined: tuple[Rejected, ...]
    """Rows that break a rule."""
    malformed: tuple[Faulty, ...]
    """Lines that are no row of the table, or repeat one; quarantined, too."""
    written: bool
    offers_file: str
    quarantine_file: str
    history_file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Rows that would join the user's list."""

    file: str
    """Where they are from; empty: fetched."""
    listings: tuple[Listing, ...]
    malformed: tuple[Faulty, ...] = ()
    whole: frozenset[str] = frozenset()
    """Providers of whom these are all rows: what was fetched of them before and is none of these
    is offered no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The user's list and its companions as they would be."""

    incoming: Incoming
    own: dict[tuple[str, str, str], Listing]
    counts: dict[str, int]
    gone: int
    former: tuple[Listing, ...]
    """Rows whose price changed or that are offered no more: for the history."""
    rejected: tuple[Rejected, ...]

    def outcome(self, *, written: bool) -> Refresh:
        """Return what the plan does, or did."""
        malformed = self.incoming.malformed
        return Refresh(
            file=self.incoming.file,
            rows=sum(self.counts.values()) + len(self.rejected) + len(malformed),
            **self.counts,
            gone=self.gone,
            quarantined=self.rejected,
            malformed=malformed,
            written=written,
            offers_file=str(offers.user_file()),
            quarantine_file=str(_quarantine_file()),
            history_file=str(history_file()),
        )


def refresh(file: Path, *, write: bool) -> Refresh:
    """Merge a price list into the user's own; the newest date per machine and region wins.

    A row that breaks a rule or cannot be read goes to ``quarantine.csv`` beside the list with its
    reasons and never replaces a good one. Doing it twice changes nothing.

    Args:
        file: CSV with the columns of ``offers.csv``.
        write: False only counts.

    Raises:
        UsageError: The file cannot be read or has another header, or the data folder cannot be
            written.
    """
    made = plan(from_file(file))
    if write:
        write_plan(made)
    return made.outcome(written=write)


def from_file(file: Path) -> Incoming:
    """Read a price list of the user; raises ``UsageError`` as ``refresh`` does."""
    listings, malformed = offers.sift_listings(file)
    return Incoming(file=str(file), listings=listings, malformed=malformed)


def plan(incoming: Incoming) -> Plan:
    """Work out what a merge would do; nothing is written.

    Raises:
        UsageError: The user's list cannot be read.
    """
    own_file = offers.user_file()
    own = {one.key: one for one in offers.read_listings(own_file)} if own_file.exists() else {}
    shipped, _ = offers.split(offers.shipped_listings())
    good, rejected = offers.split(
        incoming.listings, _peers(incoming), themselves=not incoming.whole
    )
    current = offers.merge(shipped, own.values())
    counts = dict.fromkeys(("added", "changed", "unchanged", "older"), 0)
    former: list[Listing] = []
    for one in good:
        old = current.get(one.key)
        outcome = _outcome(one, old)
        counts[outcome] += 1
        if outcome in {"added", "changed"}:
            own[one.key] = one
        if old and outcome == "changed" and _prices(old) != _prices(one):
            former.append(old)
    listed = {one.key for one in incoming.listings}
    gone = [
        one
        for one in own.values()
        if one.provider in incoming.whole and one.date_precision == FETCHED
        and one.key not in listed
    ]  # fmt: skip
    for one in gone:
        del own[one.key]
    return Plan(
        incoming=incoming, own=own, counts=counts, gone=len(gone), rejected=rejected,
        former=(*former, *gone),
    )  # fmt: skip


def write_plan(made: Plan) -> str:
    """Write the list, and before it what it may not lose: quarantine and history.

    Each file is replaced in one step, so that a kill leaves the old list or the new one.

    Returns:
        What is wrong with the history that was there; empty: nothing.

    Raises:
        UsageError: The data folder cannot be written.
    """
    quarantine = _quarantine_file()
    _make_folder(quarantine.parent)
    damage = ""
    if made.rejected or made.incoming.malformed:
        write_atomic(quarantine, _with_quarantine(quarantine, made))
    if made.former:
        damage = _write_history(made.former)
    rows = [_own_cells(made.own[key]) for key in sorted(made.own)]
    write_atomic(offers.user_file(), _table((*COLUMNS, "available"), rows))
    return damage


def _write_history(former: tuple[Listing, ...]) -> str:
    """Add to the history; one that cannot be read is set aside under another name."""
    past = read_history()
    told = past.damage
    if past.damage:
        aside = _free_name(history_file())
        if past.unreadable:
            history_file().replace(aside)
        else:
            write_atomic(aside, history_file().read_bytes())
        told = f"{past.damage}; it was kept as {aside}, and what can be read goes on"
    rows = with_former(past.rows, former)
    write_atomic(history_file(), _table(COLUMNS, (_cells(one) for one in rows)))
    return told


def _free_name(path: Path) -> Path:
    count = 1
    while (aside := path.with_name(f"{path.stem}.damaged-{count}{path.suffix}")).exists():
        count += 1
    return aside


def _quarantine_file() -> Path:
    return offers.data_dir() / "quarantine.csv"


def _peers(incoming: Incoming) -> tuple[Listing, ...]:
    """Return the rows by whose prices others are judged.

    Of a fetched provider one row a card, that of its middle price: a provider with thousands of
    rows would set the level by itself, and all others would be wrong where it is.
    """
    shipped = offers.shipped_listings()
    if not incoming.whole:
        return shipped
    groups: dict[tuple[str, str], list[Listing]] = {}
    for one in incoming.listings:
        if one.gpus > 0 and one.usd_per_h > 0:
            groups.setdefault((one.provider, one.gpu_slug), []).append(one)
    middle = [
        sorted(some, key=lambda one: one.usd_per_h / one.gpus)[len(some) // 2]
        for some in groups.values()
    ]
    return (*shipped, *middle)


def _prices(one: Listing) -> tuple[float, float]:
    return one.usd_per_h, one.spot_usd_per_h


def _outcome(new: Listing, old: Listing | None) -> str:
    if old is None:
        return "added"
    if new == old:
        return "unchanged"
    return "older" if new.date < old.date else "changed"


def _make_folder(folder: Path) -> None:
    with OSErrorsAs(
        UsageError,
        f"cannot make the data folder {folder}",
        remedy="set TFDYNO_DATA to a folder that you may write",
    ):
        folder.mkdir(parents=True, exist_ok=True)


def _with_quarantine(path: Path, plan: Plan) -> bytes:
    """Join old and new quarantined rows, each once, in the order they were first seen.

    Of a machine that was fetched before the newest row stays: it comes anew every day.
    """
    rows: list[list[str]] = []
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
    new = [
        [*_cells(one.listing), _number(one.listing.gpu_memory_total_gb), "; ".join(one.reasons)]
        for one in plan.rejected
    ]
    columns = QUARANTINE_COLUMNS[:-1]
    new += [
        [*(one.values.get(name, "") for name in columns), one.reason]
        for one in plan.incoming.malformed
    ]
    fetched = {_name(row) for row in new if FETCHED in row}
    rows = [row for row in rows if FETCHED not in row or _name(row) not in fetched]
    for row in new:
        if row not in rows:
            rows.append(row)
    return _table(QUARANTINE_COLUMNS, rows)


def _name(row: list[str]) -> tuple[str, ...]:
    return tuple(row[COLUMNS.index(name)] for name in offers.KEY)


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


def _own_cells(one: Listing) -> list[str]:
    return [*_cells(one), "" if one.available is None else str(one.available)]


def _number(value: float) -> str:
    return "" if value == 0 else repr(int(value)) if value == int(value) else repr(value)
