"""What one own measurement is worth: published pairs of cards, each playing the user's own once.

The rule is the product's (``tfdyno.model.time.recalibration``); here it is applied to every card of
a workload as the only measured one; the estimates of all other chips are judged before and after.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import exp, expm1, log, sinh
from operator import mul
from statistics import mean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfdyno.core.choose.recalibration import Anchor, Subject
from tfdyno.model.time.recalibration import recalibration
from tfdyno_truth.rows import contradicted
from tfdyno_truth.sheet import FRAMEWORKS
from tfdyno_truth.weighted import quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tfdyno.core.choose.recalibration import Recalibration
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
class Missed:
    """How far a cell's estimate was off, and how wide its interval is; both in log(time)."""

    error: float
    """Log of measured over predicted: the median of the cell's rows."""
    width: float


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
    given_before: float
    """Half of the interval that the product gives, over the estimate."""
    given_after: float
    held_before: float
    """Share of the pairs inside it."""
    held_after: float


def gains(judged: Judged) -> tuple[Gain, ...]:
    """Judge by framework and execution, TensorFlow first; sets without any pair are left out."""
    errors = misses(judged)
    found = []
    for framework, title in FRAMEWORKS.items():
        for execution in ("xla", "graph"):
            mine = {
                cell: missed
                for cell, missed in errors.items()
                if cell.framework == framework and cell.subject.execution == execution
            }
            gain = _gain(f"{title}, {execution}", mine)
            if gain:
                found.append(gain)
    return tuple(found)


def misses(judged: Judged) -> dict[Cell, Missed]:
    """Error and width of every cell: the medians of its rows.

    Rows that are not learned from are left out: nobody recalibrates by a run that went wrong.
    """
    wrong = contradicted(list(judged.design.rows))
    found: defaultdict[Cell, list[tuple[float, float]]] = defaultdict(list)
    for index in np.flatnonzero(judged.main):
        row = judged.design.rows[index]
        if row.execution in ("xla", "graph") and row.number not in wrong:
            error = judged.design.log_step[index] - np.log(judged.predicted[index])
            found[_cell(row)].append((float(error), float(judged.width[index])))
    return {
        cell: Missed(error=median(e for e, _ in values), width=median(w for _, w in values))
        for cell, values in found.items()
    }


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


def _gain(label: str, errors: Mapping[Cell, Missed]) -> Gain | None:
    before: list[float] = []
    after: list[float] = []
    pairs: list[_Pair] = []
    for cell, missed in errors.items():
        left = [(log(one.factor_ratio) - missed.error, one.width_ratio)
                for one in _recalibrations(cell, errors)]  # fmt: skip
        if not left:
            continue
        before.append(abs(expm1(-missed.error)))
        after.append(mean(abs(expm1(error)) for error, _ in left))
        pairs += [
            _Pair(without=abs(missed.error), moved=abs(error), width=missed.width,
                  narrowed=missed.width * ratio, weight=1.0 / len(left))
            for error, ratio in left
        ]  # fmt: skip
    if not before:
        return None
    weights = [pair.weight for pair in pairs]

    def weighted(values: Iterable[float]) -> float:
        return float(sum(map(mul, values, weights)) / sum(weights))

    return Gain(
        label=label,
        cells=len(before),
        pairs=len(pairs),
        mean_before=mean(before),
        mean_after=mean(after),
        median_before=median(before),
        median_after=median(after),
        half_width_before=sinh(quantile([pair.without for pair in pairs], weights, HELD)),
        half_width_after=sinh(quantile([pair.moved for pair in pairs], weights, HELD)),
        given_before=weighted(sinh(pair.width) for pair in pairs),
        given_after=weighted(sinh(pair.narrowed) for pair in pairs),
        held_before=weighted(float(pair.without <= pair.width) for pair in pairs),
        held_after=weighted(float(pair.moved <= pair.narrowed) for pair in pairs),
    )


class _Pair(NamedTuple):
    """An estimate without and with another chip measured; all in log(time)."""

    without: float
    moved: float
    width: float
    narrowed: float
    weight: float


def _recalibrations(cell: Cell, errors: Mapping[Cell, Missed]) -> Iterator[Recalibration]:
    """What every other chip would make of ``cell``, as if that one alone was measured."""
    for other, missed in errors.items():
        if other.subject == cell.subject and other.chip != cell.chip:
            yield recalibration([_anchor(other, missed.error)], cell.subject, cell.card)


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
