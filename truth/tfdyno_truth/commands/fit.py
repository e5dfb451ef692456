"""``tfdyno-truth fit``."""

from __future__ import annotations

from pathlib import Path

import click

from tfdyno.cli.progress import progress_line
from tfdyno_truth import report
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.publish import publish, refit


@click.command()
@click.option("--without", multiple=True, metavar="TERM", help="Take a constant out (repeatable).")
@click.option("--dry-run", is_flag=True, help="Write nothing, and do not leave pairs out.")
@click.option(
    "--accept-worse",
    default="",
    metavar="REASON",
    help="Write although scores got worse; the reason is stored with them.",
)
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def fit(
    without: tuple[str, ...], dry_run: bool, accept_worse: str, folder: Path, quiet: bool
) -> int:
    """Refit the time model; write its constants, the accuracy pages and truth/scores.toml.

    Nothing is written with --without or --dry-run, nor when a score with something left out got
    worse (exit code 1) and no reason is given.
    """
    write = not (without or dry_run)
    with progress_line(quiet=quiet, verbose=False) as tell:
        found = refit(folder, frozenset(without), tell, every_way=write)
    click.echo(report.summary(found.accuracy))
    if found.worse:
        click.echo("\nWorse than stored in truth/scores.toml:")
        for words in found.worse:
            click.echo(f"  {words}")
        rows = len(found.accuracy.fitted.design.rows)
        if rows != found.rows_before:
            click.echo(f"Those scores are of {found.rows_before:,} rows, these of {rows:,}.")
    if not write:
        return 0
    if found.worse and not accept_worse:
        click.echo('\nNothing was written. To write all the same: --accept-worse "REASON"')
        return 1
    publish(found, accept_worse)
    return 0
