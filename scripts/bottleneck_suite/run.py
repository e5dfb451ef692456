"""Diagnose the scripts of the suite that have no row yet, and write the page."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bottleneck_suite.cases import HEALTHY, Case, all_cases
from bottleneck_suite.diagnosed import Row, diagnosed
from bottleneck_suite.page import JSON, PAGE, is_right, page
from published import about, json_text, kept_rows
from tfdyno.core.base.codec import write_atomic

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "bottlenecks.jsonl"
"""Rows of a run that has not ended; git ignores the folder."""
LEAST_RIGHT_RATIO = 0.95


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 where fewer than 95 % are right or a healthy one is accused."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["--factor"]:
        from bottleneck_suite.factor import main as measure_factors

        return measure_factors(words[1:])
    given = _parser().parse_args(words)
    try:
        cases = chosen(given)
    except ValueError as error:
        print(f"bottlenecks: {error}", file=sys.stderr)
        return 2
    if given.fresh:
        given.rows.unlink(missing_ok=True)
    proves = {case.script for case in cases if given.fix and case.has_fix}
    rows = kept(given.rows, proves)
    given.rows.parent.mkdir(parents=True, exist_ok=True)
    try:
        _run(cases, rows, proves, given)
    except KeyboardInterrupt:
        print(f"stopped; the rows are in {given.rows}: the same command goes on", file=sys.stderr)
        return 130
    found = [rows[case.script] for case in cases]
    if len(cases) == len(all_cases()):
        _write(found)
    return _told(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bottlenecks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SCRIPT", help="only these; default all")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="so many scripts by chance"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the chance")
    parser.add_argument("--class", dest="true_class", metavar="X", help="scripts of this class")
    parser.add_argument(
        "--fix", action="store_true", help="prove the fixes of those that have one as well"
    )
    parser.add_argument("--rows", type=Path, default=KEPT, metavar="FILE",
                        help="JSON lines to which each row is added, to go on later")  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="forget the rows of an earlier run")
    parser.add_argument("--again", action="store_true", help="run those once more that are wrong")
    return parser


def chosen(given: argparse.Namespace) -> tuple[Case, ...]:
    """The cases that the command asks for.

    Raises:
        ValueError: A name is none of the scripts, or nothing is left.
    """
    cases = all_cases()
    wanted = {Path(name).stem for name in given.names}
    unknown = wanted - {case.path.stem for case in cases}
    if unknown:
        raise ValueError(f"no script {sorted(unknown)[0]}.py in the suite")
    cases = tuple(case for case in cases if not wanted or case.path.stem in wanted)
    cases = tuple(case for case in cases if given.true_class in (None, case.true_class))
    if given.sample:
        cases = tuple(random.Random(given.seed).sample(cases, min(given.sample, len(cases))))
    if not cases:
        raise ValueError("no script is chosen")
    return cases


def kept(path: Path, proves: Collection[str]) -> dict[str, Row]:
    """Rows by script, the last of each; a line that a kill cut short is none.

    Args:
        path: JSON lines.
        proves: Scripts whose fix is to be proven: only a row of a run that did so counts.
    """
    rows = kept_rows(path)
    return {row["script"]: row for row in rows if row["fix"] or row["script"] not in proves}


def _run(
    cases: Sequence[Case], rows: dict[str, Row], proves: Collection[str], given: argparse.Namespace
) -> None:
    _end_line(given.rows)
    with given.rows.open("a") as file:
        for case in cases:
            row = rows.get(case.script)
            if row and (is_right(row) or not given.again):
                continue
            row = diagnosed(case, fix=case.script in proves)
            rows[case.script] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            said = row.get("cause") or row.get("reason", "")
            mark = "right" if is_right(row) else f"WRONG, it is {case.cause or HEALTHY}"
            proof = f", proven {row['proven_gain']:.2f}x" if row.get("proven_gain") else ""
            line = f"{time.strftime('%H:%M:%S')} {case.script}: {said} {mark}{proof}"
            print(line, file=sys.stderr, flush=True)


def _end_line(path: Path) -> None:
    """Of a line that a kill cut short, so that the next row does not go on with it."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as file:
            file.write("\n")


def _told(found: Sequence[Row]) -> int:
    right = sum(map(is_right, found))
    accused = [row for row in found if row["true_class"] == HEALTHY and not is_right(row)]
    for row in found:
        if not is_right(row):
            said = row.get("class") or row.get("reason", "")
            print(f"{row['script']}: {row['true_class']}, said: {said}")
    print(f"{right} of {len(found)} right, {len(accused)} of the healthy accused")
    return 0 if right >= LEAST_RIGHT_RATIO * len(found) and not accused else 1


def _write(found: Sequence[Row]) -> None:
    document = {"about": about(), "rows": list(found)}
    write_atomic(ROOT / JSON, json_text(document).encode())
    write_atomic(ROOT / PAGE, page(document, all_cases()).encode())
    print(f"wrote {JSON} and {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
