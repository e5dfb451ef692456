"""How good predictions are: errors by group, coverage of the intervals, order of the cards."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.model.intervals import LAUNCH_BOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tfdyno_truth.design import Design
    from tfdyno_truth.rows import Row

    Floats = NDArray[np.float64]

COVERAGE = 0.92
"""Aim of the widths; above 90 % because new models are further off than those seen here."""
FEWEST_GROUPS = 10
"""A bucket of the intervals needs so many groups; smaller ones join their family."""
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


def bucket(design: Design, index: int) -> str:
    """Bucket of a row's interval, as ``model/intervals.py`` forms it."""
    row = design.rows[index]
    if row.launch_bound:
        return LAUNCH_BOUND
    return f"{design.families[index]}/{row.mode}/{row.execution}"


def interval_widths(
    design: Design, chosen: NDArray[np.bool_], residuals: Sequence[Floats]
) -> dict[str, float]:
    """Log half-widths that hold ``COVERAGE`` of the rows that the fits had not seen, by bucket.

    Args:
        design: All rows.
        chosen: Rows to learn from.
        residuals: Log errors of every row, once for each way of leaving out.

    Returns:
        Bucket -> half-width; ``default`` is the quantile over all rows.
    """
    values: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    groups: defaultdict[str, set[Hashable]] = defaultdict(set)
    index = np.flatnonzero(chosen)
    sizes: defaultdict[Hashable, int] = defaultdict(int)
    for i in index:
        sizes[design.rows[i].group] += 1
    for i in index:
        name, group = bucket(design, int(i)), design.rows[i].group
        pooled = f"{design.families[i]}/{design.rows[i].mode}/any"
        for key in (name,) if name == LAUNCH_BOUND else (name, pooled, "default"):
            groups[key].add(group)
            values[key] += [(abs(float(r[i])), 1.0 / sizes[group]) for r in residuals]
    widths = {key: _weighted_quantile(v) for key, v in values.items()}
    for key in [k for k in widths if "/" in k and len(groups[k]) < FEWEST_GROUPS]:
        pooled = key.rsplit("/", 1)[0] + "/any"
        wide = widths[pooled] if len(groups[pooled]) >= FEWEST_GROUPS else widths["default"]
        widths[key] = max(wide, widths["default"])
    return {key: round(width, 3) for key, width in sorted(widths.items()) if "/any" not in key}


def _weighted_quantile(pairs: list[tuple[float, float]]) -> float:
    ordered = sorted(pairs)
    weights = np.cumsum([weight for _, weight in ordered])
    place = int(np.searchsorted(weights, COVERAGE * weights[-1]))
    return ordered[min(place, len(ordered) - 1)][0]


def row_widths(design: Design, widths: Mapping[str, float]) -> Floats:
    """The log half-width of every row."""
    return np.array(
        [widths.get(bucket(design, i), widths["default"]) for i in range(len(design.rows))]
    )


def unseen_row_widths(
    design: Design,
    chosen: NDArray[np.bool_],
    residuals: Sequence[Floats],
    by: Callable[[Row], str],
) -> Floats:
    """Widths of every row learned without the rows that share its ``by`` value."""
    labels = np.array([by(row) for row in design.rows])
    result = np.empty(len(labels))
    for label in np.unique(labels):
        widths = interval_widths(design, chosen & (labels != label), residuals)
        mine = labels == label
        result[mine] = row_widths(design, widths)[mine]
    return result


def pairs_in_order(
    design: Design, chosen: NDArray[np.bool_], predicted: Floats
) -> tuple[int, float]:
    """Pairs of cards more than 15 % apart on one workload, and the share predicted in order."""
    found = order(design, chosen, predicted)
    return found.pairs, found.in_order


def order(design: Design, chosen: NDArray[np.bool_], predicted: Floats) -> Order:
    """Judge the order of all pairs of different chips on one workload; no pair gives NaN."""
    good: dict[bool, list[bool]] = {True: [], False: []}
    for a, b, measured in _pairs(design, chosen):
        in_order = bool(measured * (np.log(predicted[a]) - np.log(predicted[b])) > 0)
        good[abs(measured) < np.log(CLEAR_RATIO)].append(in_order)
    every = good[True] + good[False]
    return Order(
        pairs=len(every),
        in_order=float(np.mean(every)) if every else float("nan"),
        close_pairs=len(good[True]),
        close_in_order=float(np.mean(good[True])) if good[True] else float("nan"),
    )


def _pairs(design: Design, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, int, float]]:
    """Two rows of one workload on different chips, and the log of the ratio of their times."""
    sets: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in np.flatnonzero(chosen):
        row = design.rows[i]
        key = (row.function, row.batch_size, row.precision, row.mode, row.execution, row.framework)
        sets[key].append(int(i))
    for members in sets.values():
        for a, b in combinations(members, 2):
            measured = float(design.log_step[a] - design.log_step[b])
            apart = abs(measured) >= np.log(CLOSE_RATIO)
            if apart and design.rows[a].chip != design.rows[b].chip:
                yield a, b, measured
