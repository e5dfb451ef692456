"""How far the ratio of two estimates is off, where one setting of a run differs.

What two estimates of one model on one card have in common cancels in their ratio; what is left was
measured where the published rows hold both. The constants have seen these rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np

from tfdyno_truth.rows import contradicted

if TYPE_CHECKING:
    from tfdyno_truth.rows import Row
    from tfdyno_truth.sheet import Judged

HELD = 0.9
"""Share of the pairs that a width has to hold."""
MOST_BATCHES = 4.0
"""Batches further apart than this are no pair."""
Setting = Literal["precision", "batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Errors of ratios in the logarithm."""

    pairs: int
    log_width: float
    """Half of the interval that holds ``HELD`` of them."""


def ratio_spread(judged: Judged, setting: Setting, framework: str = "tensorflow") -> Spread:
    """Log of the measured ratio over the predicted one, of runs that differ in one setting.

    Runs of a pair share model, card, mode and execution. Those that differ in precision may differ
    in the batch too, up to ``MOST_BATCHES`` times: most rows of mixed precision have a larger one.
    """
    errors = _errors(judged, framework)
    groups: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in errors:
        same = (row.function, row.slug, row.mode, row.execution)
        groups[(*same, row.precision) if setting == "batch" else same].append(row)
    found = [
        abs(errors[a] - errors[b])
        for rows in groups.values()
        for a, b in combinations(rows, 2)
        if _is_pair(a, b, setting)
    ]
    return Spread(pairs=len(found), log_width=float(np.quantile(found, HELD)))


def _is_pair(a: Row, b: Row, setting: Setting) -> bool:
    if max(a.batch_size, b.batch_size) > MOST_BATCHES * min(a.batch_size, b.batch_size):
        return False
    if setting == "batch":
        return a.batch_size != b.batch_size
    return a.precision != b.precision


def _errors(judged: Judged, framework: str) -> dict[Row, float]:
    """Log of measured over predicted of every workload on a card: the median of its rows."""
    wrong = contradicted(list(judged.design.rows))
    found: defaultdict[tuple[object, ...], list[tuple[float, Row]]] = defaultdict(list)
    for index in np.flatnonzero(judged.main):
        row = judged.design.rows[index]
        if row.framework == framework and row.number not in wrong:
            error = float(judged.design.log_step[index] - np.log(judged.predicted[index]))
            key = (row.function, row.slug, row.mode, row.execution, row.precision, row.batch_size)
            found[key].append((error, row))
    return {rows[0][1]: median(error for error, _ in rows) for rows in found.values()}
