"""What the names in a profile mean, read from the tables of ``data/profile_*.csv``.

In each table the first row whose pattern is found in a name counts.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "data"
_HALF = re.compile(r"f16|h884|h1688|h16816|_half|__half|hgemm|DT_HALF|Eigen::half")
_BFLOAT = re.compile(r"bf16|bfloat16|DT_BFLOAT16")
_DOUBLE = re.compile(
    r"dgemm|d884|_f64|f64f64|DT_DOUBLE|<double|\bdouble\b|ddgemm|dgemv|_double_|Sum_f64"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One row: what a name means in which the pattern is found."""

    pattern: re.Pattern[str]
    meaning: str
    example: str


@cache
def signs(table: str, column: str) -> tuple[Sign, ...]:
    """Return rows of ``profile_TABLE.csv`` in their order; ``column`` holds the meaning."""
    with (DATA / f"profile_{table}.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(
            Sign(pattern=re.compile(row["pattern"]), meaning=row[column], example=row["example"])
            for row in csv.DictReader(lines)
        )


@cache
def limit(name: str) -> float:
    """Return a number of ``profile_limits.csv``."""
    with (DATA / "profile_limits.csv").open(encoding="utf-8", newline="") as lines:
        return next(float(row["value"]) for row in csv.DictReader(lines) if row["name"] == name)


@cache
def host_kind(name: str) -> str:
    """Return what the host does in an event, as in ``profile_host.csv``; empty: not known."""
    return next((sign.meaning for sign in signs("host", "kind") if sign.pattern.search(name)), "")


@cache
def called(name: str) -> str:
    """Return the function whose call an event is; empty: it is no call of one."""
    for sign in signs("calls", "source"):
        if match := sign.pattern.match(name):
            return match["name"]
    return ""


def precision_of(name: str) -> str:
    """Type of the numbers that a kernel's name tells; empty: it tells none."""
    if _DOUBLE.search(name):
        return "float64"
    if _BFLOAT.search(name):
        return "bfloat16"
    return "float16" if _HALF.search(name) else ""
