"""``tfdyno-truth routes``."""

from __future__ import annotations

from pathlib import Path

import click

from tfdyno.catalog.time_model import time_model
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.view.base import text
from tfdyno_truth.compared import FOLDER, compared
from tfdyno_truth.make_records import FOLDER as QUICK
from tfdyno_truth.make_routes import make_missing
from tfdyno_truth.plan import PLAN, SECONDS, plan
from tfdyno_truth.routes import answer, sections_of


@click.command()
@click.option("--only", default="", metavar="TEXT", help="Only builders whose name contains TEXT.")
@click.option("--all", "again", is_flag=True, help="Compile what is stored already anew.")
@click.option("--stored", is_flag=True, help="Compile nothing; compare what is stored.")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Compiled kernels.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def routes(only: str, again: bool, stored: bool, folder: Path, as_json: bool, quiet: bool) -> int:
    """Compare the quick route with the compiled one, in error and in seconds.

    Steps of truth/routes.toml that are not stored are compiled first, 10 to 60 s each; exit code 1
    when one failed.
    """
    steps = [step for step in plan() if only in step.key[0]]
    if not steps:
        raise UsageError(f"no builder with '{only}' in {PLAN.name}", remedy="see truth/routes.toml")
    # Seconds belong to the programs beside them.
    timed = SECONDS if folder == FOLDER else folder / SECONDS.name
    failures = 0
    if not stored:

        def tell(line: str) -> None:
            if not quiet or line.partition(" ")[2].startswith("FAILED"):
                click.echo(line, err=True)

        failures = make_missing(steps, folder, QUICK, again=again, timed=timed, tell=tell)
    with progress_line(quiet=quiet, verbose=False) as tell_stage:
        tell_stage("constants for each route")
        found = compared(steps, folder, QUICK, timed)
    if as_json:
        told = {
            "constants": time_model().version,
            "work_ratio": found.work_ratio,
            "wait_ratio": found.wait_ratio,
        }
        click.echo(to_json({**told, "routes": found}, indent=2).decode())
        return min(1, failures)
    width = text.terminal_width()
    parts = [text.wrapped(answer(found), width=width)]
    for section in sections_of(found):
        if table := section.table:
            align = "<" * table.words + ">" * (len(table.headings) - table.words)
            shown = text.table(table.headings, table.rows, align=align, width=width)
            parts.append(f"{section.title}\n{shown}")
    if found.missing:
        keys = ", ".join(" ".join(key) for key in found.missing)
        parts.append(text.wrapped(f"Not compiled yet: {keys}.", width=width))
    click.echo("\n\n".join(parts))
    return min(1, failures)
