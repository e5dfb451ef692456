"""``tfdyno data``: training data, what the catalogue rests on, and newer prices for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.catalog.offers import KEY
from tfdyno.cli.data.data_bench import bench
from tfdyno.cli.data.data_convert import convert
from tfdyno.core.base.errors import UsageError
from tfdyno.view.base.amounts import plural
from tfdyno.view.base.text import colour_wanted, terminal_width
from tfdyno.view.lookup.offers_text import data_list, rejected_list

if TYPE_CHECKING:
    from tfdyno.catalog.offers import Rejected
    from tfdyno.catalog.tables import Faulty
    from tfdyno.jobs.lookup.refresh import Refresh


@click.group()
def data() -> None:
    """Convert and measure training data; check and refresh prices."""


data.add_command(convert)
data.add_command(bench)


@data.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(as_json: bool) -> None:
    """Say which tables are in use, with dates and number of sources."""
    from tfdyno.jobs.lookup.check_data import show_data

    tables = show_data()
    if as_json:
        _print_json({"tables": tables})
        return
    rows = [(one.path, one.rows, one.oldest, one.newest, one.sources) for one in tables]
    folders = dict.fromkeys(str(Path(path).parent) for path, *_ in rows)
    for folder in folders:
        here = [(Path(row[0]).name, *row[1:]) for row in rows if str(Path(row[0]).parent) == folder]
        colour = colour_wanted()
        text = data_list(here, width=terminal_width(), colour=colour)
        click.echo(f"{folder}\n{text}\n", color=colour)


@data.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(as_json: bool) -> None:
    """Read every table strictly; list the prices that break a rule and stay out."""
    from tfdyno.jobs.lookup.check_data import check_data

    report = check_data()
    if as_json:
        _print_json(report)
        return
    rows = sum(one.rows for one in report.tables)
    click.echo(f"{len(report.tables)} tables with {rows:,} rows are sound.")
    if report.aged:
        click.echo(report.aged)
    if report.rejected:
        click.echo(f"\n{len(report.rejected)} price rows stay out of the offers:")
        click.echo(_rejected(report.rejected))


@data.command()
@click.option(
    "--offers",
    "file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="CSV with the columns of offers.csv.",
)
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def refresh(file: Path, yes: bool, as_json: bool) -> None:
    """Merge newer prices into your own data folder; what breaks a rule is quarantined."""
    from tfdyno.jobs.lookup.refresh import refresh as merge

    plan = merge(file, write=False)
    if not as_json:
        click.echo(
            f"{plural(plan.rows, 'row')}: {plan.added} new, {plan.changed} changed, "
            f"{plan.unchanged} unchanged, {plan.older} older than what is known, "
            f"{len(plan.quarantined) + len(plan.malformed)} quarantined."
        )
        if plan.quarantined or plan.malformed:
            click.echo(_rejected(plan.quarantined, plan.malformed))
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise UsageError("nothing was written", remedy="add --yes to write the merged list")
        click.confirm(f"Write {plan.offers_file}?", abort=True)
    done = merge(file, write=True)
    if as_json:
        _print_json(done)
    else:
        click.echo(_written(done))


def _written(done: Refresh) -> str:
    """Where the rows went; nothing is claimed of a file that did not change."""
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


def _print_json(value: object) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json(value, indent=2).decode())
