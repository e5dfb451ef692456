"""``tfdyno-truth records``."""

from __future__ import annotations

from pathlib import Path

import click

from tfdyno_truth.make_records import FOLDER, make_missing


@click.command()
@click.option("--all", "again", is_flag=True, help="Make existing records anew.")
@click.option("--only", default="", metavar="TEXT", help="Only builders whose name contains TEXT.")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
def records(again: bool, only: str, folder: Path) -> int:
    """Trace the measured models and store their kernels; exit code 1 when one failed."""
    return min(1, make_missing(folder, again=again, only=only, tell=click.echo))
