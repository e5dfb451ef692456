"""``tfdyno data refresh``: newer prices, from public lists or from a file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.catalog.offers import KEY
from tfdyno.catalog.price_sources import price_sources
from tfdyno.cli.answer import Answer
from tfdyno.cli.command import PATH, command, flag, given, option
from tfdyno.cli.options import JSON, OneOf, Positive, Read, Several
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.cluster.launch_plan import seconds_of
from tfdyno.view.base.text import colour_wanted, terminal_width, wrapped
from tfdyno.view.lookup.offers_text import rejected_list
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from tfdyno.catalog.offers import Rejected
    from tfdyno.catalog.tables import Faulty
    from tfdyno.jobs.lookup.refresh import Incoming, Refresh
    from tfdyno.jobs.prices.today import Today

_MOST_REJECTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    offers: Path | None = option(
        type=PATH, metavar="FILE",
        help="CSV with the columns of offers.csv, instead of the public lists.",
    )  # fmt: skip
    every_s: float | None = option(
        "--every", type=Read("TIME", lambda value: seconds_of(str(value), "--every")),
        metavar="TIME", help="Fetch only what was not fetched within this time: 24h, 7d.",
    )  # fmt: skip
    provider: tuple[str, ...] | None = option(
        type=Several("A,B,…", str.lower), metavar="A,B,…", help="Fetch only these providers."
    )
    source: str | None = option(
        type=OneOf("source", tuple(one.name for one in price_sources())),
        help="Fetch from this source alone, not from the first that answers.",
    )
    timeout_s: float = option(
        "--timeout", type=Positive("timeout"), metavar="S", default=60.0, show_default=True,
        help="Seconds that one list may take.",
    )  # fmt: skip
    yes: bool = flag(help="Write without asking.")
    as_json: bool = JSON


@command(_Options)
def refresh(options: _Options) -> Answer:
    """Bring newer prices into your own data folder; what breaks a rule is quarantined.

    Without a file the prices of today are fetched from public lists, all providers at once: no
    account is needed, and nothing is sent but the requests. Of each provider the first source that
    answers counts. One that fails is told and the others count; if all fail, the prices at hand
    stay and the exit code is 3. TFDYNO_PRICES_GPUHUNT, _LIUM, _SKYPILOT and _VAST name mirrors.
    """
    if options.as_json and not options.yes:
        raise UsageError("nothing was written", remedy="add --yes to write the merged list")
    if options.offers:
        if extra := given(options, "every_s", "provider", "source"):
            raise UsageError(f"{extra[0]} is for prices that are fetched", remedy="leave out "
                             f"{extra[0]} or --offers")  # fmt: skip
        from tfdyno.jobs.lookup.refresh import from_file

        done = _merge(from_file(options.offers), options)
        return Answer(document=lambda: done, text=lambda **_: _written(done))
    return _from_lists(options)


def _from_lists(options: _Options) -> Answer:
    from tfdyno.catalog.price_sources import sources_in_use
    from tfdyno.jobs.lookup.refresh import Incoming
    from tfdyno.jobs.prices.fetch_times import fresh, record
    from tfdyno.jobs.prices.today import fetch_today, providers_of

    sources = sources_in_use((options.source,) if options.source else ())
    wanted = providers_of(sources, options.provider or ())
    young = fresh(wanted, options.every_s) if options.every_s else ()
    if len(young) == len(wanted):
        return _nothing_to_do(young)
    asked = tuple(name for name in wanted if name not in young)
    try:
        with progress_line(quiet=options.as_json, verbose=False) as heard:
            today = fetch_today(sources, providers=asked, timeout_s=options.timeout_s, heard=heard)
    except ToolError as error:
        if not young:
            raise
        # What failed an hour ago fails again: the others are still of today.
        _warn(str(error))
        return _nothing_to_do(young)
    if not options.as_json:
        click.echo(_told(today))
    notes = _notes(today)
    for note in notes:
        _warn(note)
    whole = frozenset(one.provider for one in today.fetched)
    done = _merge(Incoming(file="", listings=today.listings, whole=whole), options)
    record(whole)
    return Answer(
        document=lambda: {"fresh": False, "today": today, "warnings": notes, "merged": done},
        text=lambda **_: _written(done),
    )


def _nothing_to_do(young: tuple[str, ...]) -> Answer:
    from tfdyno.jobs.prices.fetch_times import fetched_at

    at = {name: time for name, time in fetched_at().items() if name in young}
    return Answer(
        document=lambda: {"fresh": True, "fetched_at": at},
        text=lambda **_: (
            f"Nothing was fetched: prices of {plural(len(at), 'provider')} are young "
            f"enough, the oldest of {min(at.values()):%Y-%m-%d %H:%M} UTC."
        ),
    )


def _merge(incoming: Incoming, options: _Options) -> Refresh:
    """Say what a merge would do, ask, and do it."""
    from tfdyno.jobs.lookup.refresh import plan, write_plan

    made = plan(incoming)
    found = made.outcome(written=False)
    if not options.as_json:
        gone = f"{found.gone:,} offered no more, " if found.gone else ""
        click.echo(
            f"{plural(found.rows, 'row')}: {found.added:,} new, {found.changed:,} changed, "
            f"{found.unchanged:,} unchanged, {found.older:,} older than what is known, {gone}"
            f"{len(found.quarantined) + len(found.malformed):,} quarantined."
        )
        if found.quarantined or found.malformed:
            click.echo(rejected(found.quarantined, found.malformed, most=_MOST_REJECTED))
    if not options.yes:
        if not sys.stdin.isatty():
            raise UsageError("nothing was written", remedy="add --yes to write the merged list")
        click.confirm(f"Write {found.offers_file}?", abort=True)
    if damage := write_plan(made):
        _warn(f"the price history was damaged: {damage}")
    return made.outcome(written=True)


def _warn(note: str) -> None:
    click.echo(f"tfdyno: {note.rstrip('.')}.", err=True)


def _told(today: Today) -> str:
    from tfdyno.view.lookup.prices_text import fetched_list
    from tfdyno.words.choose.fetched import unknown_note

    rows = []
    for one in today.fetched:
        others = [f"{failure.source}: {failure.why}" for failure in today.failed
                  if failure.provider == one.provider]  # fmt: skip
        counts = [(one.without_price, "without a price"), (one.unreadable, "not readable"),
                  (one.left_out, "known to be wrong")]  # fmt: skip
        others += [f"{count} {what}" for count, what in counts if count]
        rows.append((one.provider, one.prices, one.source, "; ".join(others)))
    unknown = unknown_note(
        (one.provider, one.card, one.memory_gb, one.rows) for one in today.unknown
    )
    told = [
        f"Prices of {today.date}:",
        fetched_list(rows, width=terminal_width(), colour=colour_wanted()),
        wrapped(unknown, width=terminal_width()) if unknown else "",
    ]
    return "\n".join(filter(None, told))


def _notes(today: Today) -> list[str]:
    from tfdyno.words.choose.fetched import clock_note, missing_note

    had = {one.provider for one in today.fetched}
    last = {one.provider: f"{one.source}: {one.why}" for one in today.failed}
    missing = [(provider, why) for provider, why in last.items() if provider not in had]
    notes = (missing_note(missing), clock_note(today.clock_off_days, today.date))
    return [note for note in notes if note]


def _written(done: Refresh) -> str:
    """Say where the rows went; nothing is claimed of a file that did not change."""
    new, out = done.added + done.changed, len(done.quarantined) + len(done.malformed)
    told = [f"Wrote {plural(new, 'price')} to {done.offers_file}." if new
            else "No price was new: nothing was added."]  # fmt: skip
    if out:
        told.append(f"{plural(out, 'row')} with reasons in {done.quarantine_file}.")
    return "\n".join(told)


def rejected(
    rows: tuple[Rejected, ...], malformed: tuple[Faulty, ...] = (), *, most: int = 0
) -> str:
    """Return price rows that stay out with their reasons; past ``most`` the rest is counted."""
    named = [
        (f"{one.listing.provider} {one.listing.instance} {one.listing.region}", one.reasons)
        for one in rows
    ]
    named += [
        (" ".join(one.values.get(name, "") for name in KEY).strip(), (one.reason,))
        for one in malformed
    ]
    shown = named[: most or None]
    more = f"\n  and {len(named) - len(shown):,} more" if len(shown) < len(named) else ""
    return f"{rejected_list(shown, width=terminal_width())}{more}"
