"""How good predictions are: errors by group, coverage of the intervals, order of the cards."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from numpy.typing import NDArray

    from tfdyno_truth.design import Design
    from tfdyno_truth.rows import Row

    Floats = NDArray[np.float64]

CLOSE_RATIO = 1.15
"""Cards nearer to each other than this have no order worth predicting."""
CLEAR_RATIO = 1.5
"""Up to here a pair is close: the data sheets alone do not settle its order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Errors of a stratum; every group (model, card, precision, mode) counts once."""

    rows: int
    groups: int
    mean: float
    median: float
    p90: float
    bias: float
    coverage: float
    half_width: float
    """Half of the interval's width over the estimate, mean of the groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Pairs of cards with one workload, and the shares that are predicted in the right order."""

    pairs: int
    """More than 15 % apart."""
    in_order: float
    close_pairs: int
    """15 to 50 % apart."""
    close_in_order: float
    own_pairs: int
    """More than 15 % apart by time per sample, each card at the largest batch measured on it."""
    own_in_order: float


def score(
    design: Design, chosen: NDArray[np.bool_], predicted: Floats, width: Floats
) -> Score | None:
    """Judge the chosen rows; ``width`` is the log half-width of each row's interval."""
    index = np.flatnonzero(chosen)
    if not len(index):
        return None
    log_error = np.log(predicted) - design.log_step
    relative = by_group(design, index, np.abs(np.expm1(log_error)))
    inside = by_group(design, index, (np.abs(log_error) <= width).astype(float))
    return Score(
        rows=len(index),
        groups=len(relative),
        mean=float(relative.mean()),
        median=float(np.median(relative)),
        p90=float(np.quantile(relative, 0.9)),
        bias=float(np.exp(np.median(by_group(design, index, log_error)))),
        coverage=float(inside.mean()),
        half_width=float(by_group(design, index, np.sinh(width)).mean()),
    )


def by_group(design: Design, index: NDArray[np.intp], values: Floats) -> Floats:
    """Mean of the values in every group."""
    groups: defaultdict[Hashable, list[float]] = defaultdict(list)
    for i in index:
        groups[design.rows[i].group].append(float(values[i]))
    return np.array([np.mean(group) for group in groups.values()])


def order(design: Design, chosen: NDArray[np.bool_], predicted: Floats) -> Order:
    """Judge the order of all pairs of different chips on one workload; no pair gives NaN."""
    samples = np.array([row.batch_size for row in design.rows])
    good: dict[bool, list[bool]] = {True: [], False: []}
    for measured, in_order in _pairs(design, _of_one_batch(design, chosen), design.log_step,
                                     np.log(predicted)):  # fmt: skip
        good[abs(measured) < np.log(CLEAR_RATIO)].append(in_order)
    own = [in_order for _, in_order in _pairs(design, _of_largest_batches(design, chosen),
           design.log_step - np.log(samples), np.log(predicted / samples))]  # fmt: skip
    every = good[True] + good[False]
    return Order(
        pairs=len(every),
        in_order=_share(every),
        close_pairs=len(good[True]),
        close_in_order=_share(good[True]),
        own_pairs=len(own),
        own_in_order=_share(own),
    )


def _share(good: list[bool]) -> float:
    return float(np.mean(good)) if good else float("nan")


def _of_one_batch(design: Design, chosen: NDArray[np.bool_]) -> Iterable[list[int]]:
    """Rows of one workload with one batch, set by set."""
    sets: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in np.flatnonzero(chosen):
        row = design.rows[i]
        sets[(*_workload(row), row.batch_size)].append(int(i))
    return sets.values()


def _of_largest_batches(design: Design, chosen: NDArray[np.bool_]) -> Iterable[list[int]]:
    """Rows of one workload, for every card the one with the largest batch, set by set."""
    sets: defaultdict[Hashable, dict[str, int]] = defaultdict(dict)
    for i in np.flatnonzero(chosen):
        row = design.rows[i]
        cards = sets[_workload(row)]
        if row.slug not in cards or row.batch_size > design.rows[cards[row.slug]].batch_size:
            cards[row.slug] = int(i)
    return [list(cards.values()) for cards in sets.values()]


def _workload(row: Row) -> tuple[Hashable, ...]:
    return (row.function, row.precision, row.mode, row.execution, row.framework)


def _pairs(
    design: Design, sets: Iterable[list[int]], measured: Floats, predicted: Floats
) -> Iterator[tuple[float, bool]]:
    """The log of the ratio of two measured times, and whether they are predicted in order.

    Pairs are of different chips and more than 15 % apart.
    """
    for members in sets:
        for a, b in combinations(members, 2):
            ratio = float(measured[a] - measured[b])
            if abs(ratio) >= np.log(CLOSE_RATIO) and design.rows[a].chip != design.rows[b].chip:
                yield ratio, bool(ratio * (predicted[a] - predicted[b]) > 0)
