"""``tfdyno data``: training data, what the catalogue rests on, and newer prices for it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.catalog.offers import KEY
from tfdyno.cli.answer import Answer
from tfdyno.cli.command import PATH, command, flag, option
from tfdyno.cli.data.data_bench import bench
from tfdyno.cli.data.data_convert import convert
from tfdyno.cli.options import JSON
from tfdyno.core.base.errors import UsageError
from tfdyno.view.base.text import terminal_width
from tfdyno.view.lookup.offers_text import data_list, rejected_list
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from tfdyno.catalog.offers import Rejected
    from tfdyno.catalog.tables import Faulty
    from tfdyno.jobs.lookup.refresh import Refresh


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    as_json: bool = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refreshed:
    offers: Path = option(
        type=PATH, required=True, metavar="FILE",
        help="CSV with the columns of offers.csv.",
    )  # fmt: skip
    yes: bool = flag(help="Write without asking.")
    as_json: bool = JSON


@click.group()
def data() -> None:
    """Convert and measure training data; check and refresh prices."""


data.add_command(convert)
data.add_command(bench)


@command(_Shown, under=data)
def show(_options: _Shown) -> Answer:
    """Say which tables are in use, with dates and number of sources."""
    from tfdyno.jobs.lookup.check_data import show_data

    tables = show_data()

    def text(*, width: int, colour: bool) -> str:
        folders: dict[Path, list[tuple[str, int, str, str, int]]] = {}
        for one in tables:
            row = (Path(one.path).name, one.rows, one.oldest, one.newest, one.sources)
            folders.setdefault(Path(one.path).parent, []).append(row)
        return "\n".join(
            f"{folder}\n{data_list(rows, width=width, colour=colour)}\n"
            for folder, rows in folders.items()
        )

    return Answer(document=lambda: {"tables": tables}, text=text)


@command(_Shown, under=data)
def check(_options: _Shown) -> Answer:
    """Read every table strictly; list the prices that break a rule and stay out."""
    from tfdyno.jobs.lookup.check_data import check_data

    report = check_data()

    def text(**_: object) -> str:
        rows = sum(one.rows for one in report.tables)
        told = [f"{len(report.tables)} tables with {rows:,} rows are sound."]
        told += [report.aged] if report.aged else []
        if report.rejected:
            told += [f"\n{len(report.rejected)} price rows stay out of the offers:",
                     _rejected(report.rejected)]  # fmt: skip
        return "\n".join(told)

    return Answer(document=lambda: report, text=text)


@command(_Refreshed, under=data)
def refresh(options: _Refreshed) -> Answer:
    """Merge newer prices into your own data folder; what breaks a rule is quarantined."""
    from tfdyno.jobs.lookup.refresh import refresh as merge

    plan = merge(options.offers, write=False)
    if not options.as_json:
        click.echo(
            f"{plural(plan.rows, 'row')}: {plan.added} new, {plan.changed} changed, "
            f"{plan.unchanged} unchanged, {plan.older} older than what is known, "
            f"{len(plan.quarantined) + len(plan.malformed)} quarantined."
        )
        if plan.quarantined or plan.malformed:
            click.echo(_rejected(plan.quarantined, plan.malformed))
    if not options.yes:
        if options.as_json or not sys.stdin.isatty():
            raise UsageError("nothing was written", remedy="add --yes to write the merged list")
        click.confirm(f"Write {plan.offers_file}?", abort=True)
    done = merge(options.offers, write=True)
    return Answer(document=lambda: done, text=lambda **_: _written(done))


def _written(done: Refresh) -> str:
    """Say where the rows went; nothing is claimed of a file that did not change."""
    new, out = done.added + done.changed, len(done.quarantined) + len(done.malformed)
    told = [f"Wrote {plural(new, 'price')} to {done.offers_file}." if new
            else "No price was new: nothing was added."]  # fmt: skip
    if out:
        told.append(f"{plural(out, 'row')} with reasons in {done.quarantine_file}.")
    return "\n".join(told)


def _rejected(rows: tuple[Rejected, ...], malformed: tuple[Faulty, ...] = ()) -> str:
    named = [
        (f"{one.listing.provider} {one.listing.instance} {one.listing.region}", one.reasons)
        for one in rows
    ]
    named += [
        (" ".join(one.values.get(name, "") for name in KEY).strip(), (one.reason,))
        for one in malformed
    ]
    return rejected_list(named, width=terminal_width())
