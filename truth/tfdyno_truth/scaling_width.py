"""Widths of the intervals around predicted efficiencies, and what they hold.

The width for a run is the quantile of what the runs of all other folds would have needed, each
predicted without its own fold: runs on one node, or on several. Coverage is counted on the run that
was not asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.model.time.scaling import efficiency_ends
from tfdyno_truth.weighted import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfdyno_truth.scaling import Runs

    Labels = NDArray[np.str_]
    Floats = NDArray[np.float64]
    Chosen = NDArray[np.bool_]

COVERAGE = 0.9
"""That the intervals aim at."""
ONE_NODE, SEVERAL_NODES = "allreduce_width", "allreduce_width_nodes"
MOST_WIDTH = 8.0
_HALVINGS = 30
_BANDS = ((0.85, 1.01, "85 % and more"), (0.5, 0.85, "50 to 85 %"), (0.0, 0.5, "below 50 %"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """All runs as folds that have not seen them predict them."""

    labels: Labels
    predicted: Floats
    needed: Floats
    """Least width whose interval holds the run."""
    widths: Floats
    """Of the interval of each run, from the runs of the other folds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What intervals hold."""

    coverage: float
    width: float
    """High end less low end, as a share of what one card does; the mean."""
    score: float
    """Width, and ``2 / (1 - COVERAGE)`` times what a run lies outside."""
    runs: int


def needed_width(predicted: float, measured: float) -> float:
    """The least width whose interval holds a measured efficiency, by halving."""
    low, high = 0.0, MOST_WIDTH
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        ends = efficiency_ends(predicted, middle)
        low, high = (low, middle) if ends[0] <= measured <= ends[1] else (middle, high)
    return high


def judge(runs: Runs, labels: Labels, predicted: Floats) -> Judged:
    """Give every run the width that the runs of all other folds needed."""
    pairs = zip(predicted.tolist(), runs.measured.tolist(), strict=True)
    needed = np.array([needed_width(*each) for each in pairs])
    widths = np.empty(len(needed))
    for label in np.unique(labels):
        for kind in (runs.several_nodes, ~runs.several_nodes):
            others = runs.learned & (labels != label) & kind
            mine = (labels == label) & kind
            if mine.any():
                widths[mine] = quantile(needed[others], runs.weights[others], COVERAGE)
    return Judged(labels=labels, predicted=predicted, needed=needed, widths=widths)


def shipped_widths(runs: Runs, judged: Sequence[Judged]) -> dict[str, float]:
    """Constant -> what holds the runs that the folds had not seen, all ways together."""
    kinds = {ONE_NODE: ~runs.several_nodes, SEVERAL_NODES: runs.several_nodes}
    found = {}
    for name, kind in kinds.items():
        mine = runs.learned & kind
        if mine.any():
            needed = np.concatenate([one.needed[mine] for one in judged])
            weights = np.tile(runs.weights[mine], len(judged))
            found[name] = round(quantile(needed, weights, COVERAGE), 3)
    return found


def holding(runs: Runs, predicted: Floats, widths: Floats, chosen: Chosen) -> Holding:
    """Coverage, width and score of the intervals of some runs, each group counting once."""
    pairs = zip(predicted[chosen].tolist(), widths[chosen].tolist(), strict=True)
    low, high = np.array([efficiency_ends(*each) for each in pairs]).T
    measured, weights = runs.measured[chosen], runs.weights[chosen]
    outside = np.maximum(0.0, low - measured) + np.maximum(0.0, measured - high)
    width = high - low

    def mean(values: Floats) -> float:
        return float(np.average(values, weights=weights))

    return Holding(
        coverage=mean((outside == 0.0).astype(float)),
        width=mean(width),
        score=mean(width + 2.0 / (1.0 - COVERAGE) * outside),
        runs=len(measured),
    )


def bands(runs: Runs, judged: Judged) -> dict[str, Holding]:
    """What the intervals hold, by the efficiency that was predicted."""
    found = {}
    for low, high, name in _BANDS:
        mine = runs.learned & (judged.predicted >= low) & (judged.predicted < high)
        if mine.any():
            found[name] = holding(runs, judged.predicted, judged.widths, mine)
    return found


def kept_share(runs: Runs, judged: Judged, chosen: Chosen) -> float:
    """Share of the predicted efficiency that all but one of 20 of these runs keep."""
    share = runs.measured[chosen] / judged.predicted[chosen]
    return round(min(1.0, quantile(share, runs.weights[chosen], (1.0 - COVERAGE) / 2.0)), 3)
