"""The worst predictions by workload and card, with their reasons from ``truth/reasons.csv``."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.base.errors import UsageError
from tfdyno_truth.rows import TRUTH, Row
from tfdyno_truth.suspicious import decisions

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from pathlib import Path

    from tfdyno_truth.sheet import Judged
    from tfdyno_truth.suspicious import Suspicion

REASONS = TRUTH / "reasons.csv"
UNEXPLAINED = "unexplained"
"""In place of a reason where none is known."""
MATCHED = ("framework", "source", "model", "gpu", "precision", "mode", "execution")
"""Columns of ``reasons.csv`` that say which rows it is about; ``*`` or nothing means any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why predictions of some rows are off."""

    patterns: tuple[tuple[str, str], ...]
    reason: str
    source: str
    """What shows it."""

    def fits(self, row: Row) -> bool:
        """Whether the reason is about this row; ``model`` is the builder in ``zoo.py``."""
        return all(fnmatchcase(_told(row, column), pattern) for column, pattern in self.patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All batch sizes of one workload from one source on one card."""

    row: Row
    """One of them."""
    batches: tuple[int, ...]
    ratio: float
    """Predicted over measured, geometric mean."""
    error: float
    """Mean of the relative errors."""
    reason: Reason | None


def worst(judged: Judged, reasons: Iterable[Reason], count: int) -> tuple[Case, ...]:
    """The cases with the largest logarithm of predicted over measured, largest first.

    The logarithm, because a prediction of half the time is as wrong as one of twice the time. A row
    that ``suspicious.csv`` keeps from the fit has its reason there.
    """
    known, decided = tuple(reasons), decisions(judged.design.rows)
    members: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index in np.flatnonzero(judged.main):
        row = judged.design.rows[index]
        members[tuple(_told(row, column) for column in MATCHED)].append(int(index))
    log_error = np.log(judged.predicted) - judged.design.log_step
    ordered = sorted(members.values(), key=lambda m: -abs(float(log_error[m].mean())))
    cases = []
    for mine in ordered[:count]:
        row = judged.design.rows[mine[0]]
        cases.append(
            Case(
                row=row,
                batches=tuple(sorted({judged.design.rows[i].batch_size for i in mine})),
                ratio=float(np.exp(log_error[mine].mean())),
                error=float(np.abs(np.expm1(log_error[mine])).mean()),
                reason=_suspicion(decided.get(row.number))
                or next((reason for reason in known if reason.fits(row)), None),
            )
        )
    return tuple(cases)


def _suspicion(found: Suspicion | None) -> Reason | None:
    if found is None or found.decision == "judged":
        return None
    source = f"truth/suspicious.csv: {found.name}, not learned from"
    return Reason(patterns=(), reason=found.reason, source=source)


def read_reasons(path: Path = REASONS) -> tuple[Reason, ...]:
    """The table of reasons in its order: the first that fits a row is its reason.

    Raises:
        UsageError: A column is missing or unknown, or a row has no reason or no source.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != (*MATCHED, "reason", "source_of_reason"):
            raise UsageError(f"{path} has the wrong columns", why=f"{reader.fieldnames}")
        return tuple(_reason(path, raw) for raw in reader)


def _reason(path: Path, raw: dict[str, str]) -> Reason:
    patterns = tuple((column, raw[column]) for column in MATCHED if raw[column] not in ("", "*"))
    if not patterns or not raw["reason"] or not raw["source_of_reason"]:
        raise UsageError(f"{path}: a row needs what it is about, a reason and its source: {raw}")
    return Reason(patterns=patterns, reason=raw["reason"], source=raw["source_of_reason"])


def _told(row: Row, column: str) -> str:
    return row.function if column == "model" else str(getattr(row, column))
