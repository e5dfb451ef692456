"""What one own measurement is worth: published pairs of cards, each playing the user's own once.

The rule is the product's (``tfdyno.model.recalibration``); here it is applied to every card of a
workload as the only measured one, and the estimates of all other chips are judged before and after.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import exp, expm1, log
from statistics import mean, median
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.recalibration import Anchor, Subject
from tfdyno.model.recalibration import recalibration
from tfdyno_truth.rows import contradicted
from tfdyno_truth.sheet import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfdyno_truth.rows import Row
    from tfdyno_truth.sheet import Judged

HELD = 0.9
"""Share of the pairs that an interval has to hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A workload from one framework on one card."""

    framework: str
    subject: Subject
    card: str
    chip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Errors on other chips without and with one measured card."""

    label: str
    cells: int
    """Workloads on a card; each counts once, averaged over the cards that may be measured."""
    pairs: int
    mean_before: float
    mean_after: float
    median_before: float
    median_after: float
    half_width_before: float
    """Half of the interval that would hold ``HELD`` of the pairs, over the estimate."""
    half_width_after: float


def gains(judged: Judged) -> tuple[Gain, ...]:
    """Judge by framework and execution, TensorFlow first; sets without any pair are left out."""
    errors = log_errors(judged)
    found = []
    for framework, title in FRAMEWORKS.items():
        for execution in ("xla", "graph"):
            mine = {
                cell: error
                for cell, error in errors.items()
                if cell.framework == framework and cell.subject.execution == execution
            }
            gain = _gain(f"{title}, {execution}", mine)
            if gain:
                found.append(gain)
    return tuple(found)


def log_errors(judged: Judged) -> dict[Cell, float]:
    """Log of measured over predicted of every cell: the median of its rows.

    Rows that are not learned from are left out: nobody recalibrates by a run that went wrong.
    """
    wrong = contradicted(list(judged.design.rows))
    found: defaultdict[Cell, list[float]] = defaultdict(list)
    for index in np.flatnonzero(judged.main):
        row = judged.design.rows[index]
        if row.execution in ("xla", "graph") and row.number not in wrong:
            error = judged.design.log_step[index] - np.log(judged.predicted[index])
            found[_cell(row)].append(float(error))
    return {cell: median(values) for cell, values in found.items()}


def _cell(row: Row) -> Cell:
    subject = Subject(
        title=row.function,
        parameter_count=0,
        mode="infer" if row.mode == "infer" else "train",
        policy=row.precision,
        strict=False,
        execution="xla" if row.execution == "xla" else "graph",
    )
    return Cell(framework=row.framework, subject=subject, card=row.slug, chip=row.chip)


def _gain(label: str, errors: Mapping[Cell, float]) -> Gain | None:
    before: list[float] = []
    after: list[float] = []
    residuals: list[tuple[float, float, float]] = []
    for cell, error in errors.items():
        moved = [move - error for move in _moves(cell, errors)]
        if not moved:
            continue
        before.append(abs(expm1(-error)))
        after.append(mean(abs(expm1(one)) for one in moved))
        residuals += [(abs(error), abs(one), 1.0 / len(moved)) for one in moved]
    if not before:
        return None
    return Gain(
        label=label,
        cells=len(before),
        pairs=len(residuals),
        mean_before=mean(before),
        mean_after=mean(after),
        median_before=median(before),
        median_after=median(after),
        half_width_before=float(np.sinh(_quantile([(a, w) for a, _, w in residuals]))),
        half_width_after=float(np.sinh(_quantile([(b, w) for _, b, w in residuals]))),
    )


def _moves(cell: Cell, errors: Mapping[Cell, float]) -> Iterator[float]:
    """Log of the factor for ``cell`` from every other chip, as if that one alone was measured."""
    for other, error in errors.items():
        if other.subject == cell.subject and other.chip != cell.chip:
            found = recalibration([_anchor(other, error)], cell.subject, cell.card)
            yield log(found.factor_ratio)


def _anchor(cell: Cell, error: float) -> Anchor:
    return Anchor(
        subject=cell.subject,
        card=cell.card,
        batch_size=1,
        replica_count=1,
        measured_s=exp(error),
        estimated_s=1.0,
        protocol_version=0,
        measurement_id="published",
        measured_on="",
    )


def _quantile(pairs: list[tuple[float, float]]) -> float:
    ordered = sorted(pairs)
    weights = np.cumsum([weight for _, weight in ordered])
    return ordered[int(np.searchsorted(weights, HELD * weights[-1]))][0]
