"""Run the cells of the matrix that have no row yet, and write the table."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composition_matrix.cells import STRATEGIES, Cell, all_cells, pairwise_cells, refusal
from composition_matrix.page import JSON, PAGE, page
from composition_matrix.processes import Row, run_cells
from published import about, json_text, kept_rows
from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import TfdynoError

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "composition.jsonl"
"""Rows of a run that has not ended; git ignores the folder."""
SIDES = ("tfdyno", "keras")
PASSED = ("ok", "refused")


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 where a cell neither passes nor is refused, 3 where a run fails."""
    given = _parser().parse_args(words)
    cells = _chosen(given)
    kept = {} if given.fresh else _kept(given.rows)
    if given.fresh:
        given.rows.unlink(missing_ok=True)
    given.rows.parent.mkdir(parents=True, exist_ok=True)
    try:
        for side in given.side:
            _run(side, cells, kept, given)
    except TfdynoError as error:
        print(f"composition: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print(f"stopped; the rows are in {given.rows}: the same command goes on", file=sys.stderr)
        return 130
    of_tfdyno = [kept[f"tfdyno {cell.name}"] for cell in cells if f"tfdyno {cell.name}" in kept]
    bad = [row for row in of_tfdyno if row["status"] not in PASSED]
    for row in bad:
        print(f"{row['name']}: {row['status']}: {row.get('reason', '')}")
    print(f"{len(of_tfdyno) - len(bad)} of {len(of_tfdyno)} cells are as they should be")
    if len(cells) == len(all_cells()) and set(given.side) == set(SIDES):
        _write(kept)
    return 1 if bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/composition", description=__doc__)
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="so many cells by chance"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the chance")
    parser.add_argument("--strategy", choices=STRATEGIES, help="cells of this one only")
    parser.add_argument("--pairs", action="store_true", help="the cells that the tests run")
    parser.add_argument(
        "--side", action="append", choices=SIDES, help="only this one; default both"
    )
    parser.add_argument("--rows", type=Path, default=KEPT, metavar="FILE",
                        help="JSON lines to which each row is added, to go on later")  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="forget the rows of an earlier run")
    parser.add_argument("--again", action="store_true",
                        help="run cells of tfdyno once more that did not pass")  # fmt: skip
    parser.set_defaults(side=None)
    return parser


def _chosen(given: argparse.Namespace) -> tuple[Cell, ...]:
    given.side = given.side or list(SIDES)
    cells = pairwise_cells() if given.pairs else all_cells()
    cells = tuple(cell for cell in cells if given.strategy in (None, cell.strategy))
    if given.sample:
        cells = tuple(random.Random(given.seed).sample(cells, min(given.sample, len(cells))))
    return cells


def _kept(path: Path) -> dict[str, Row]:
    """Rows by side and name, the last of each; a line that a kill cut short is none."""
    return {f"{row['side']} {row['name']}": row for row in kept_rows(path)}


def _run(side: str, cells: Sequence[Cell], kept: dict[str, Row], given: argparse.Namespace) -> None:
    with given.rows.open("a") as file:

        def keep(row: Row) -> None:
            row = {"side": side, **row}
            kept[f"{side} {row['name']}"] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            told = row.get("reason", "")
            line = f"{time.strftime('%H:%M:%S')} {side} {row['name']}: {row['status']} {told}"
            print(line.rstrip(), file=sys.stderr, flush=True)

        left = []
        for cell in cells:
            row = kept.get(f"{side} {cell.name}")
            is_done = row and (row["status"] in PASSED or side != "tfdyno" or not given.again)
            if is_done:
                continue
            why = refusal(cell) if side == "tfdyno" else ""
            if why:
                keep({"name": cell.name, "status": "refused", "reason": why})
            else:
                left.append(cell)
        run_cells(side, left, keep, given.rows.parent / "composition-logs")


def _write(kept: dict[str, Row]) -> None:
    rows = [
        {"name": cell.name, **{side: _published(kept[f"{side} {cell.name}"]) for side in SIDES}}
        for cell in all_cells()
    ]
    document = {"about": about(), "rows": rows}
    write_atomic(ROOT / JSON, json_text(document).encode())
    write_atomic(ROOT / PAGE, page(document).encode())
    print(f"wrote {JSON} and {PAGE}", file=sys.stderr)


def _published(row: Row) -> dict[str, Any]:
    left_out = ("side", "name", "seconds_s")
    return {key: value for key, value in row.items() if key not in left_out}


if __name__ == "__main__":
    sys.exit(main())
