"""``tfdyno data``: training data, what the catalogue rests on, and newer prices for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import command
from tfdyno.cli.data.data_bench import bench
from tfdyno.cli.data.data_convert import convert
from tfdyno.cli.data.data_refresh import refresh, rejected
from tfdyno.cli.options import JSON
from tfdyno.view.lookup.offers_text import data_list


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    as_json: bool = JSON


@click.group()
def data() -> None:
    """Convert and measure training data; check and refresh prices."""


data.add_command(convert)
data.add_command(bench)
data.add_command(refresh)


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
        told = [
            f"{folder}\n{data_list(rows, width=width, colour=colour)}\n"
            for folder, rows in folders.items()
        ]
        told += [f"Not readable, and left aside: {one.fault}" for one in tables if one.fault]
        return "\n".join(told)

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
                     rejected(report.rejected)]  # fmt: skip
        return "\n".join(told)

    return Answer(document=lambda: report, text=text)
