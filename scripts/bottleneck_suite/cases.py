"""The scripts of the suite with what is true of each."""

from __future__ import annotations

import csv
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from tfdyno.core.measure.bottleneck import BottleneckClass

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "bottlenecks"
TRUTH = FOLDER / "truth.csv"
COLUMNS = ("script", "class", "cause", "has_fix", "factor", "arguments", "note")
HEALTHY = "healthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A script and its one true cause."""

    script: str
    """File name in ``FOLDER``."""
    true_class: str
    cause: str
    """Empty: the script is healthy."""
    has_fix: bool
    """Whether a setting of a recipe or a dataset rewrite makes it faster."""
    factor: float | None = None
    """How many times as fast without the cause; None: it takes memory, not time."""
    arguments: tuple[str, ...] = ()
    note: str = ""

    @property
    def path(self) -> Path:
        """Where the script is."""
        return FOLDER / self.script


def all_cases(path: Path = TRUTH) -> tuple[Case, ...]:
    """Every row of the table.

    Raises:
        ValueError: A row is wrong; the message has its line.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path}: the columns are not {', '.join(COLUMNS)}")
        return tuple(_case(row, f"{path}:{reader.line_num}") for row in reader)


def _case(row: dict[str, str], where: str) -> Case:
    known = get_args(BottleneckClass)
    if row["class"] not in known or row["has_fix"] not in ("yes", "no"):
        raise ValueError(f"{where}: class or has_fix is none of those there are")
    if bool(row["cause"]) == (row["class"] == HEALTHY):
        raise ValueError(f"{where}: a cause, unless it is healthy")
    if row["cause"] and row["cause"].partition(".")[0] != row["class"]:
        raise ValueError(f"{where}: the cause is of another class")
    return Case(
        script=row["script"],
        true_class=row["class"],
        cause=row["cause"],
        has_fix=row["has_fix"] == "yes",
        factor=float(row["factor"]) if row["factor"] else None,
        arguments=tuple(shlex.split(row["arguments"])),
        note=row["note"],
    )
