"""``tfdyno-truth today``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from tfdyno.catalog.tables import DATA
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.codec import write_atomic
from tfdyno_truth import today_report
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.run import ROOT
from tfdyno_truth.today import cases, judge, rewritten

KERNEL_MODEL = DATA / "kernel_model.toml"
PAGE = ROOT / "docs" / "accuracy.md"


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
@click.option(
    "--write", is_flag=True, help="Write the constants, widths and the page's first part."
)
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def today(folder: Path, write: bool, quiet: bool) -> None:
    """Refit the constants of today's software and judge them on rows left out.

    Own rows come first, then published ones, worst first; half a minute to two minutes.
    """
    with progress_line(quiet=quiet, verbose=False) as tell:
        found = judge(cases(folder), folder, tell)
    click.echo(today_report.block(found))
    if write:
        text = rewritten(KERNEL_MODEL.read_text(), found, f"{datetime.now(UTC):%Y-%m-%d}")
        write_atomic(KERNEL_MODEL, text.encode())
        write_atomic(PAGE, today_report.put(PAGE, today_report.block(found)).encode())
