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
_SCOPED = frozenset({"elementwise", "reduction", "data_movement"})
"""Classes that say little by themselves: what a name's scope says of them is worth more."""
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
def signs(table: str, column: str = "class") -> tuple[Sign, ...]:
    """Rows of ``profile_TABLE.csv`` in their order; ``column`` holds the meaning."""
    with (DATA / f"profile_{table}.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(
            Sign(pattern=re.compile(row["pattern"]), meaning=row[column], example=row["example"])
            for row in csv.DictReader(lines)
        )


@cache
def limit(name: str) -> float:
    """A number of ``profile_limits.csv``."""
    with (DATA / "profile_limits.csv").open(encoding="utf-8", newline="") as lines:
        return next(float(row["value"]) for row in csv.DictReader(lines) if row["name"] == name)


@cache
def kernel_class(name: str, scope: str = "") -> str:
    """Class of what a GPU did: one of ``OPERATION_CLASSES``, or ``copy`` to or from the host.

    Args:
        name: Of the kernel.
        scope: Name of the TensorFlow operation that started it, where the profile says it.
    """
    return _scoped(_first("kernels", name), scope)


@cache
def operation_class(name: str) -> str:
    """Class of an operation on the host: ``scope/name:Type``, ``Type`` or an XLA operation.

    Beside ``OPERATION_CLASSES``: ``input``, ``python``, ``checkpoint``, ``copy`` and ``wrapper``
    (it only calls others).
    """
    scope, _, kind = name.rpartition(":")
    return _scoped(_first("operations", kind), scope + "/" if scope else "")


@cache
def host_kind(name: str) -> str:
    """What the host does in an event, as in ``profile_host.csv``; empty: not known."""
    return next((sign.meaning for sign in signs("host", "kind") if sign.pattern.search(name)), "")


@cache
def called(name: str) -> str:
    """The function whose call an event is; empty: it is no call of one."""
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


def _first(table: str, name: str) -> str:
    return next((sign.meaning for sign in signs(table) if sign.pattern.search(name)), "other")


def _scoped(found: str, scope: str) -> str:
    if not scope or found not in _SCOPED:
        return found
    return next((s.meaning for s in signs("scopes") if s.pattern.search(scope)), found)
