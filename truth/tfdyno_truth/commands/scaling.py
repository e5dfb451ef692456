"""``tfdyno-truth scaling``."""

from __future__ import annotations

from pathlib import Path

import click

from tfdyno.catalog.time_model import time_model
from tfdyno.cli.progress import progress_line
from tfdyno_truth import scaling_report
from tfdyno_truth.accuracy import WORST
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.publish import publish_scaling, worse_scaling
from tfdyno_truth.rows import read_rows
from tfdyno_truth.scaling import runs_of, scaling_scores
from tfdyno_truth.sections import markdown


@click.command()
@click.option("--write", is_flag=True, help="Write constants, scores and sections.")
@click.option(
    "--accept-worse", default="", metavar="REASON", help="Write worse scores and keep the reason."
)
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def scaling(write: bool, accept_worse: str, folder: Path, quiet: bool) -> int:
    """Refit and score the exchange between several GPUs alone.

    The step on one GPU stays as it ships. Nothing is written where a score got worse (exit code 1),
    but for a reason.
    """
    model = time_model()
    with progress_line(quiet=quiet, verbose=False) as tell:
        tell("runs on several GPUs")
        runs = runs_of(read_rows(), folder, model, model.values)
        found = scaling_scores(runs, model, tell, WORST)
    click.echo("\n\n".join(markdown(section) for section in scaling_report.sections(found)))
    worse = worse_scaling(found)
    for words in worse:
        click.echo(f"Worse than stored: {words}")
    if write and (accept_worse or not worse):
        publish_scaling(found, worse, accept_worse)
    return 1 if worse and not accept_worse else 0
