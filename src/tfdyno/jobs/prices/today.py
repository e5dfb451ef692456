"""Fetch today's prices of every provider at once, each from the first of its lists that answers."""

from __future__ import annotations

import datetime
import queue
import statistics
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.catalog.offer_rules import Listing
from tfdyno.catalog.price_sources import PriceList, PriceSource
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.jobs.prices import gpuhunt, live, skypilot
from tfdyno.jobs.prices.fetch import SourceError, fetch
from tfdyno.jobs.prices.listings import UnknownCard, map_rows
from tfdyno.jobs.prices.rows import Fetched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


USUAL_TIMEOUT_S = 60.0
_GRACE_S = 5.0
"""What a thread may need beyond its time: a look-up of a name has no limit of its own."""
_CLOCK_TOLERANCE_DAYS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedList:
    """A provider whose prices were read, and from where."""

    provider: str
    source: str
    """Name of the source."""
    url: str
    prices: int
    """Rows of ``offers.csv`` that it came to."""
    unreadable: int
    """Rows in which a number is none."""
    left_out: int
    """Rows that are no price of a machine, as is known of the list."""
    without_price: int
    """Machines without an on-demand price."""
    label: str
    """What its rows name as their source, without the version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedList:
    """A list that could not be had or read."""

    provider: str
    source: str
    url: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """Everything that was fetched, and what was not."""

    date: str
    """The day by which rows are dated."""
    clock_off_days: float
    """How far the servers' clocks are ahead of this machine's; 0: within a day."""
    listings: tuple[Listing, ...]
    fetched: tuple[FetchedList, ...]
    failed: tuple[FailedList, ...]
    unknown: tuple[UnknownCard, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    source: PriceSource
    of: PriceList
    name: str
    found: Fetched


_FETCHES: dict[str, Callable[..., Fetched]] = {
    "gpuhunt": gpuhunt.fetch_list,
    "lium": live.fetch_lium,
    "skypilot": skypilot.fetch_list,
    "vast": live.fetch_vast,
}
_Outcome = tuple[str, "_Read | None", list[FailedList]]


def fetch_today(
    sources: Iterable[PriceSource],
    *,
    providers: tuple[str, ...] = (),
    timeout_s: float = USUAL_TIMEOUT_S,
    heard: Callable[[str], None] = lambda _stage: None,
) -> Today:
    """Return today's prices of all providers that any of the sources lists.

    Args:
        sources: The most trusted first.
        providers: Only these; empty means all.
        timeout_s: What one list may take.
        heard: Told how far it is.

    Raises:
        UsageError: A provider is in no list.
        ToolError: No list at all could be had.
    """
    queues = _lists(tuple(sources), providers)
    outcomes = _all_at_once(queues, timeout_s, heard)
    read = [one for _, one, _ in outcomes if one]
    failed = tuple(failure for _, _, failures in outcomes for failure in failures)
    if not read:
        raise ToolError(
            f"no price list could be fetched, of {len(queues)} providers",
            why=_commonest(failed),
            remedy="the prices at hand stay; 'tfdyno offers' shows their age",
        )
    date, off_days = _day(read)
    mapped = [
        (one, map_rows(one.found.reading.rows, one.of, date=date,
                       source=f"{_label(one)} {one.found.version}".strip()))
        for one in read
    ]  # fmt: skip
    return Today(
        date=date,
        clock_off_days=off_days,
        listings=tuple(listing for _, found in mapped for listing in found.listings),
        fetched=tuple(
            FetchedList(
                provider=one.of.provider, source=one.source.name, url=one.found.url,
                prices=len(found.listings), unreadable=one.found.reading.unreadable,
                left_out=one.found.reading.left_out, without_price=found.without_price,
                label=_label(one),
            )
            for one, found in mapped
        ),
        failed=failed,
        unknown=tuple(miss for _, found in mapped for miss in found.unknown),
    )  # fmt: skip


def providers_of(sources: Iterable[PriceSource], only: tuple[str, ...]) -> tuple[str, ...]:
    """Return the providers that the sources list, of those asked for; raises ``UsageError``."""
    return tuple(_lists(tuple(sources), only))


def _lists(
    sources: tuple[PriceSource, ...], only: tuple[str, ...]
) -> dict[str, list[tuple[PriceSource, str]]]:
    found: dict[str, list[tuple[PriceSource, str]]] = {}
    for source in sources:
        for name, one in source.lists.items():
            found.setdefault(one.provider, []).append((source, name))
    if unknown := [name for name in only if name not in found]:
        raise UsageError(
            f"no price list has provider '{unknown[0]}'",
            remedy=f"choose from {', '.join(sorted(found))}",
        )
    return {name: lists for name, lists in sorted(found.items()) if not only or name in only}


def _all_at_once(
    queues: dict[str, list[tuple[PriceSource, str]]],
    timeout_s: float,
    heard: Callable[[str], None],
) -> list[_Outcome]:
    """Work on every provider in a thread of its own; none is waited for beyond its time."""
    done: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()
    come = [0]

    def hear(size: int) -> None:
        come[0] += size

    for provider, lists in queues.items():
        work = threading.Thread(
            target=lambda *given: done.put(_first_answer(*given)),
            args=(provider, lists, timeout_s, hear),
            daemon=True,  # a thread that hangs in a look-up does not keep the process
        )
        work.start()
    most_s = timeout_s * max(map(len, queues.values())) + _GRACE_S
    until_s = time.monotonic() + most_s
    found: dict[str, _Outcome] = {}
    told = ""
    while len(found) < len(queues) and time.monotonic() < until_s:
        stage = f"prices: {len(found)} of {len(queues)} providers, {come[0] / 1e6:.1f} MB"
        if stage != told:  # one that stays is told with its seconds
            heard(stage)
            told = stage
        try:
            outcome = done.get(timeout=0.2)
        except queue.Empty:
            continue
        found[outcome[0]] = outcome
    for provider, lists in queues.items():
        if provider not in found:
            source, name = lists[0]
            failure = _failure(source, name, f"it did not end within {most_s:.0f} s")
            found[provider] = (provider, None, [failure])
    return [found[provider] for provider in queues]


def _first_answer(
    provider: str,
    lists: list[tuple[PriceSource, str]],
    timeout_s: float,
    hear: Callable[[int], None],
) -> _Outcome:
    failures: list[FailedList] = []
    for source, name in lists:
        try:
            read = _read(source, name, time.monotonic() + timeout_s, hear)
        except SourceError as error:
            failures.append(_failure(source, name, error.what))
            continue
        except Exception as error:  # of a reader: the other lists count all the same
            what = f"it could not be read ({type(error).__name__}: {error})"
            failures.append(_failure(source, name, what))
            continue
        return provider, read, failures
    return provider, None, failures


def _read(source: PriceSource, name: str, until_s: float, hear: Callable[[int], None]) -> _Read:
    get = partial(fetch, most_bytes=source.most_bytes, until_s=until_s, heard=hear)
    found = _FETCHES[source.kind](source, name, get)
    if not found.reading.rows:
        raise SourceError("the list has no machine with a GPU and a price")
    return _Read(source=source, of=source.lists[name], name=name, found=found)


def _label(read: _Read) -> str:
    return f"{read.source.name} {read.name}"


def _failure(source: PriceSource, name: str, why: str) -> FailedList:
    of = source.lists[name]
    return FailedList(provider=of.provider, source=source.name, url=f"{source.url}/{name}", why=why)


def _day(read: list[_Read]) -> tuple[str, float]:
    """Return the day by this machine's clock, or by the servers' where those agree on another."""
    now = datetime.datetime.now(tz=datetime.UTC)
    day = datetime.timedelta(days=1)
    ahead_days = [(one.found.clock - now) / day for one in read if one.found.clock]
    off_days = statistics.median(ahead_days) if ahead_days else 0.0
    if abs(off_days) <= _CLOCK_TOLERANCE_DAYS:
        off_days = 0.0
    return (now + off_days * day).date().isoformat(), off_days


def _commonest(failed: Iterable[FailedList]) -> str:
    whys = [one.why for one in failed]
    return max(whys, key=whys.count, default="")
