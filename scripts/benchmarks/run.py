"""Measure, write ``docs/performance.md`` and ``.json``, and say which targets are missed."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.advising import advice
from benchmarks.page import document, page, write
from benchmarks.rows import GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.figure import Figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the groups that are asked for; returns 1 when a target is missed or a row is empty."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs and rows; not written")
    parser.add_argument("--only", choices=[*GROUPS], action="append", help="these rows only")
    parser.add_argument("--output", type=Path, help="folder to write to (docs)")
    parser.add_argument("--former", default="", help="commit that advise is compared with")
    given = parser.parse_args(arguments)
    asked = {name: GROUPS[name] for name in given.only or GROUPS}
    if given.former and "advise" not in asked:
        parser.error("--former is of advise: add --only advise")
    if "advise" in asked:
        asked["advise"] = partial(advice, former=given.former)
    figures = list(_measured(asked, given.quick))
    folder = given.output or Path("docs")
    if given.quick and not given.output:
        print(page(document(figures, {})))
    else:
        write(folder, document(figures, _earlier(folder / "performance.json")))
        print(f"wrote {folder / 'performance.md'}", file=sys.stderr)
    bad = [figure for figure in figures if _missed(figure)]
    for figure in bad:
        print(f"not met: {figure.name}: {figure.note or figure.value}", file=sys.stderr)
    return 1 if bad else 0


def _measured(
    groups: Mapping[str, Callable[[bool], Iterator[Figure]]], quick: bool
) -> Iterator[Figure]:
    for name, measure in groups.items():
        for figure in measure(quick):
            shown = "–" if figure.value is None else f"{figure.value:.1f} {figure.unit}"
            print(f"{name}: {figure.name}: {shown} {figure.note}", file=sys.stderr, flush=True)
            yield figure


def _missed(figure: Figure) -> bool:
    if figure.value is None:
        return figure.target is not None
    return figure.is_met is False


def _earlier(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    sys.exit(main())
