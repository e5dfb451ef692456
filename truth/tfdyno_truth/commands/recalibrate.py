"""``tfdyno-truth recalibrate``."""

from __future__ import annotations

from pathlib import Path

import click

from tfdyno.cli.progress import progress_line
from tfdyno.core.base.codec import to_json
from tfdyno.view.base import text
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.recalibrate import gains
from tfdyno_truth.score import left_out, shipped
from tfdyno_truth.ways import WAYS

HEADINGS = ("", "cells", "mean", "with", "median", "with", "± half", "with",
            "holds", "with")  # fmt: skip


@click.command()
@click.option(
    "--leave-out",
    "way",
    type=click.Choice(tuple(WAYS)),
    help="Judge fits that have not seen the rows; otherwise the shipped constants.",
)
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def recalibrate(way: str | None, folder: Path, as_json: bool, quiet: bool) -> None:
    """Say how much one measured card improves the estimates of the others."""
    with progress_line(quiet=quiet, verbose=False) as tell:
        found = gains(left_out(folder, way, tell) if way else shipped(folder))
    if as_json:
        click.echo(to_json({"way": way or "shipped", "gains": found}, indent=2).decode())
        return
    first = found[0]
    click.echo(
        f"{first.label}: one measured card takes the mean error on other cards from "
        f"{first.mean_before:.1%} to {first.mean_after:.1%}.\n"
    )
    rows = [
        (
            gain.label,
            f"{gain.cells:,}",
            *(f"{value:.1%}" for value in (gain.mean_before, gain.mean_after)),
            *(f"{value:.1%}" for value in (gain.median_before, gain.median_after)),
            *(f"{value:.0%}" for value in (gain.given_before, gain.given_after)),
            *(f"{value:.0%}" for value in (gain.held_before, gain.held_after)),
        )
        for gain in found
    ]
    click.echo(text.table(HEADINGS, rows, align="<" + ">" * 9, width=text.terminal_width()))
