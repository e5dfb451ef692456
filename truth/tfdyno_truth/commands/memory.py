"""``tfdyno-truth memory``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.core.base.codec import to_json
from tfdyno.view.base import text
from tfdyno_truth import cells
from tfdyno_truth.make_plans import make_missing
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.memory import MemoryScores, memory_scores
from tfdyno_truth.memory_calls import FLOOR
from tfdyno_truth.memory_report import sections

if TYPE_CHECKING:
    from tfdyno_truth.sections import Section


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Kernel records.")
@click.option("--plans", is_flag=True, help="First plan measured steps that have no plan yet.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def memory(folder: Path, plans: bool, as_json: bool) -> int:
    """Score predicted memory: which steps fit, and published figures; exit code 1 below the floor.

    The section of docs/accuracy.md; `tfdyno-truth fit` writes it there.
    """
    if plans and make_missing(lambda line: click.echo(line, err=True)):
        return 1
    found = memory_scores(folder)
    whole = found.tallies[0]
    if as_json:
        told = {"floor": FLOOR, "tallies": found.tallies, "kinds": found.kinds}
        wrong = [{"rows": rows, "call": call} for call, rows in found.wrong_rows.items()]
        click.echo(to_json({**told, "wrong": wrong}, indent=2).decode())
    else:
        click.echo(_page(found))
    return 0 if whole.share >= FLOOR else 1


def _page(found: MemoryScores) -> str:
    whole = found.tallies[0]
    answer = (
        f"{cells.share(whole.share)} of {whole.calls:,} calls whether a step fits are right "
        f"({cells.share(whole.group_share)} averaged by group; floor {FLOOR:.0%})."
    )
    return "\n\n".join([answer, *filter(None, map(_table, sections(found)))])


def _table(section: Section) -> str:
    if section.table is None:
        return ""
    table, width = section.table, text.terminal_width()
    align = "<" * table.words + ">" * (len(table.headings) - table.words)
    return f"{section.title}\n{text.table(table.headings, table.rows, align=align, width=width)}"
