"""``tfdyno-truth ablate``."""

from __future__ import annotations

from pathlib import Path

import click

from tfdyno.catalog.time_model import time_model
from tfdyno.cli.progress import progress_line
from tfdyno.view import text
from tfdyno_truth import ablation
from tfdyno_truth.ablation import NOTHING, Ablated, chosen, store, terms
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.run import prefixed

HEADINGS = ("without", "TensorFlow", "all", "p90", "TensorFlow", "all", "p90")


@click.command()
@click.argument("names", nargs=-1, metavar="[TERM]...")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
@click.option("--list", "listed", is_flag=True, help="List the terms and stop.")
@click.option("--dry-run", is_flag=True, help="Do not write truth/ablation.csv.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def ablate(names: tuple[str, ...], folder: Path, listed: bool, dry_run: bool, quiet: bool) -> None:
    """Refit without a term, or without each group of truth/ablation.toml; about 20 s each."""
    model = time_model()
    known = terms(model)
    if listed:
        pairs = [(name, term.title) for name, term in known.items() if name != NOTHING]
        click.echo(text.pairs(pairs, width=text.terminal_width()))
        return
    wanted, results = chosen(known, names), list[Ablated]()
    with progress_line(quiet=quiet, verbose=False) as tell:
        for number, term in enumerate(wanted, 1):
            under = prefixed(tell, f"without {term.title} ({number} of {len(wanted)})")
            results.append(ablation.ablate(folder, model, term, under))
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
