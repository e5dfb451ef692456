"""``tfdyno-truth score``."""

from __future__ import annotations

from pathlib import Path

import click

from tfdyno.catalog.time_model import time_model
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.codec import to_json
from tfdyno_truth import score_text
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.score import left_out, shipped
from tfdyno_truth.sheet import sheet
from tfdyno_truth.subset import KEYS, choose
from tfdyno_truth.today import shipped_own
from tfdyno_truth.today_report import own_text
from tfdyno_truth.ways import WAYS


@click.command()
@click.option(
    "--leave-out",
    "way",
    type=click.Choice(tuple(WAYS)),
    help="Refit without each GPU chip, each kind of model or each pair of both, and judge the "
    "rows that were left out; otherwise the shipped constants are judged as they are.",
)
@click.option(
    "--subset",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"Only these rows (repeatable); keys: {', '.join(KEYS)}.",
)
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def score(
    way: str | None, subset: tuple[str, ...], folder: Path, as_json: bool, quiet: bool
) -> None:
    """Score predictions against measurements: own rows, then TensorFlow's, then the others."""
    with progress_line(quiet=quiet, verbose=False) as tell:
        # The cheap part comes first: a misspelt subset must not cost the time of a fit.
        judged = shipped(folder)
        chosen = choose(judged.design, subset)
        if way:
            judged = left_out(folder, way, tell)
        found = sheet(judged.within(chosen))
    if as_json:
        told = {"way": way or "shipped", "subset": subset, "constants": time_model().version}
        click.echo(to_json({**told, "scores": found}, indent=2).decode())
        return
    if not subset:
        click.echo(f"{own_text(shipped_own(folder))}\n")
    how = f"{WAYS[way].title.capitalize()}" if way else "Shipped constants, all rows seen"
    click.echo(score_text.page(found, how))
