"""What ``truth/suspicious.csv`` decides about rows that look wrong: keep, do not learn, exclude."""

from __future__ import annotations

import csv
import functools
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno_truth.rows import Row

PATH = Path(__file__).resolve().parents[1] / "suspicious.csv"
SLOWER_RATIO = 1.4
"""A row this much slower than the fastest of the same setting contradicts it."""
COLLAPSE_RATIO = 0.8
"""Throughput below this share of a smaller batch's in one log is a collapse."""

Decision = Literal["judged", "not learned", "excluded"]
Twin = Literal["", "slower", "log", "collapse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """One line of the table: which rows, what becomes of them, and why."""

    name: str
    match: tuple[tuple[str, re.Pattern[str]], ...]
    """Column of the measurement and the expression that its whole value must match."""
    batch_from: int
    batch_to: int
    twin: Twin
    """How the row must compare with others: slower than its twins, in a log most of which is,
    or of less throughput than a smaller batch of its log."""
    decision: Decision
    rows: int
    """Rows on one GPU it decides; 0 where new measurements may change the number."""
    reason: str
    evidence: str
    origin: str

    def fits(self, row: Row) -> bool:
        """Whether the columns of a row match; twins are not looked at."""
        values = _values(row)
        within = self.batch_from <= row.batch_size <= self.batch_to
        return within and all(pattern.fullmatch(values[name]) for name, pattern in self.match)


_MATCHED = ("source", "version", "model", "input", "gpu", "precision", "mode", "execution")


def _values(row: Row) -> dict[str, str]:
    return {
        "source": row.source,
        "version": row.host[1],
        "model": row.model,
        "input": row.host[7],
        "gpu": row.gpu,
        "precision": row.precision,
        "mode": row.mode,
        "execution": row.execution,
    }


@functools.lru_cache
def suspicions(path: Path = PATH) -> tuple[Suspicion, ...]:
    """The lines of the table in its order; the first that fits a row decides it.

    Raises:
        UsageError: A line names a decision or a comparison that does not exist.
    """
    with path.open(newline="") as file:
        return tuple(
            _suspicion(line, number) for number, line in enumerate(csv.DictReader(file), 2)
        )


def _suspicion(line: dict[str, str], number: int) -> Suspicion:
    decision, twin = line["decision"], line["twin"]
    if decision not in get_args(Decision) or twin not in get_args(Twin):
        raise UsageError(
            f"suspicious.csv, line {number}: '{decision}' or '{twin}' is not known",
            remedy=f"decisions are {', '.join(get_args(Decision))}",
        )
    return Suspicion(
        name=line["name"],
        match=tuple((name, re.compile(line[name])) for name in _MATCHED if line[name]),
        batch_from=int(line["batch_from"] or 1),
        batch_to=int(line["batch_to"] or 10**9),
        twin=twin,  # type: ignore[arg-type]
        decision=decision,  # type: ignore[arg-type]
        rows=int(line["rows"]),
        reason=line["reason"],
        evidence=line["evidence"],
        origin=line["origin"],
    )


def decisions(
    rows: Sequence[Row], table: tuple[Suspicion, ...] | None = None
) -> dict[int, Suspicion]:
    """The line that decides each suspicious row, by the row's number; other rows are missing.

    Args:
        rows: Rows that are compared with each other.
        table: Instead of ``suspicious.csv``.
    """
    twins = compared(rows)
    found = {}
    for row in rows:
        for line in suspicions() if table is None else table:
            if (not line.twin or row.number in twins[line.twin]) and line.fits(row):
                found[row.number] = line
                break
    return found


def compared(rows: Sequence[Row]) -> dict[Twin, frozenset[int]]:
    """Numbers of the rows that are slower than a twin, in a slow log, or of a collapse."""
    slower = _slower(rows)
    logs = defaultdict(list)
    for row in rows:
        logs[(row.host[:-2], row.execution)].append(row)
    slow_logs = [
        log for log in logs.values() if 2 * sum(row.number in slower for row in log) > len(log)
    ]
    collapsed = {row.number for log in logs.values() for row in log if _collapses(row, log)}
    return {
        "slower": frozenset(slower),
        "log": frozenset(row.number for log in slow_logs for row in log),
        "collapse": frozenset(collapsed),
    }


def _slower(rows: Sequence[Row]) -> set[int]:
    fastest: defaultdict[tuple[object, ...], float] = defaultdict(lambda: float("inf"))
    for row in rows:
        fastest[_setting(row)] = min(fastest[_setting(row)], row.step_s)
    return {row.number for row in rows if row.step_s > SLOWER_RATIO * fastest[_setting(row)]}


def _setting(row: Row) -> tuple[object, ...]:
    how = (row.precision, row.mode, row.execution, row.framework)
    return (row.function, row.slug, row.batch_size, *how)


def _collapses(row: Row, log: Sequence[Row]) -> bool:
    """Whether a smaller batch of the log has more throughput by far."""
    best = max(
        (other.batch_size / other.step_s for other in log if other.batch_size < row.batch_size),
        default=0.0,
    )
    return row.batch_size / row.step_s < COLLAPSE_RATIO * best
