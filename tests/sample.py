"""Which of the long tests one run takes: a sample that another commit draws anew.

``tests/long.csv`` has the tests that take longest. A run takes all others, and of these by lot
until their seconds are spent. ``--all`` takes all.
"""

from __future__ import annotations

import csv
import hashlib
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("long.csv")
BUDGET_S = 700.0
"""Of the long tests together, on one core."""


@dataclass(frozen=True, slots=True)
class Lot:
    """What was drawn."""

    taken: frozenset[str]
    left: frozenset[str]


def long_tests(path: Path = LIST) -> dict[str, float]:
    """Seconds of each long test, ``tests/jobs/test_trace.py::test_name``, all its parameters."""
    with path.open(newline="") as file:
        return {row["test"]: float(row["seconds"]) for row in csv.DictReader(file)}


def drawn(names: Sequence[str], long: Mapping[str, float], seed: str, budget_s: float) -> Lot:
    """Draw among the tests that are long.

    Args:
        names: Of all tests, ``file::function[parameters]``.
        long: Seconds by ``file::function``.
        seed: Another one is another sample.
        budget_s: That may be taken.
    """
    lots = [name for name in names if _function(name) in long]
    counts = Counter(map(_function, lots))
    taken: set[str] = set()
    spent_s = 0.0
    order = sorted(lots, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    for name in order:
        seconds = long[_function(name)] / counts[_function(name)]
        if spent_s + seconds <= budget_s:
            taken.add(name)
            spent_s += seconds
    return Lot(frozenset(taken), frozenset(lots) - taken)


def seed_of(root: Path = ROOT) -> str:
    """The commit at hand; ``0`` outside of a repository."""
    words = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return "0"
    return done.stdout.strip() or "0"


def _function(name: str) -> str:
    return name.partition("[")[0]
