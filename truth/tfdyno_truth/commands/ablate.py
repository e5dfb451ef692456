"""``tfdyno-truth ablate``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tfdyno.catalog.time_model import time_model
from tfdyno.cli.progress import progress_line
from tfdyno.view.base import text
from tfdyno_truth.ablation import NOTHING, Ablated, ablate_all, chosen, store, terms
from tfdyno_truth.make_records import FOLDER

HEADINGS = ("without", "TensorFlow", "all", "p90", "TensorFlow", "all", "p90")


@click.command()
@click.argument("names", nargs=-1, metavar="[TERM]...")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
@click.option("--list", "listed", is_flag=True, help="List the terms and stop.")
@click.option("--dry-run", is_flag=True, help="Do not write truth/ablation.csv.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def ablate(names: tuple[str, ...], folder: Path, listed: bool, dry_run: bool, quiet: bool) -> None:
    """Refit without a term, or without each group of truth/ablation.toml: a minute each."""
    model, processes = time_model(), os.cpu_count() or 1
    known = terms(model)
    if listed:
        pairs = [(name, term.title) for name, term in known.items() if name != NOTHING]
        click.echo(text.pairs(pairs, width=text.terminal_width()))
        return
    wanted, results = chosen(known, names), list[Ablated]()
    with progress_line(quiet=quiet, verbose=False) as tell:
        tell(f"{len(wanted)} fits, {processes} at a time")
        for one in ablate_all(folder, model, wanted, processes):
            results.append(one)
            tell(f"without {one.title} ({len(results)} of {len(wanted)})")
            if not dry_run:
                store(results)
    click.echo(
        "Mean error with the GPU left out (3 columns), with the model left out (3 columns)\n"
    )
    rows = [(one.title, *_cells(one)) for one in results]
    click.echo(text.table(HEADINGS, rows, align="<" + ">" * 6, width=text.terminal_width()))


def _cells(one: Ablated) -> tuple[str, ...]:
    values = (
        one.gpu_tensorflow_mean,
        one.gpu_all_mean,
        one.gpu_all_p90,
        one.model_tensorflow_mean,
        one.model_all_mean,
        one.model_all_p90,
    )
    return tuple(f"{value:.1%}" for value in values)
