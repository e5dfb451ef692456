"""How wide the intervals must be, learned from rows that the fits had not seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.gpus import find
from tfdyno.core.choose.time_model import BucketWidth
from tfdyno.model.time import intervals
from tfdyno_truth.weighted import quantile

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tfdyno_truth.design import Design
    from tfdyno_truth.ways import Fold

    Floats = NDArray[np.float64]

COVERAGE = 0.91
"""Aim of the widths, of rows that fits had not seen: judged in groups, with what is like them kept
back from the widths too, 0.91 holds 90.4 % of them (±51 % wide), 0.89 89.0 % (±47 %)."""
PARENT_GROUPS = 50
"""A bucket has as much say in its width as all of its mode and execution with so many groups.

Quantiles of a bucket's own few rows are noise: intervals made of them that held as many of the rows
left out were a tenth wider. From 20 to 150 groups nothing changes by more than a point.
"""
DEFAULT = "default"


def bucket(design: Design, index: int) -> str:
    """Bucket of a row's interval, as ``model/time/intervals.py`` forms it."""
    row = design.rows[index]
    return f"{design.families[index]}/{row.mode}/{row.execution}"


def interval_widths(
    design: Design, chosen: NDArray[np.bool_], residuals: Sequence[Floats], launch_share: Floats
) -> dict[str, BucketWidth]:
    """Half-widths that hold ``COVERAGE`` of the rows that the fits had not seen, by bucket.

    ::

        residual = |log error| / what the share of launches widens it by
        scale    = (groups * mean of the bucket + PARENT_GROUPS * mean of its mode and execution)
                   / (groups + PARENT_GROUPS)
        width    = scale * the quantile of residual / scale over all buckets

    Args:
        design: All rows.
        chosen: Rows to learn from.
        residuals: Log errors of every row, once for each way of leaving out that counts.
        launch_share: Of launches and host in the step of every row.

    Returns:
        Bucket -> width; ``default`` is that of all rows together.
    """
    index = np.flatnonzero(chosen)
    groups = [design.rows[i].group for i in index]
    sizes = Counter(groups)
    weight = np.array([1.0 / sizes[group] for group in groups])
    residual = np.abs(np.stack([each[index] for each in residuals]))
    residual /= intervals.widening(launch_share[index])
    names = [bucket(design, int(i)) for i in index]
    own = np.array(names)
    parent = np.array([_parent(name) for name in names])

    def mean(mine: NDArray[np.bool_]) -> float:
        return float(np.average(residual[:, mine].mean(axis=0), weights=weight[mine]))

    counts = _groups_by(names, groups)
    scales = {DEFAULT: mean(np.ones(len(index), dtype=bool))}
    for name, count in counts.items():
        above = mean(parent == _parent(name))
        share = count / (count + PARENT_GROUPS)
        scales[name] = share * mean(own == name) + (1.0 - share) * above
    relative = residual / np.array([scales[name] for name in names])
    factor = quantile(relative.ravel(), np.tile(weight, len(residuals)), COVERAGE)
    counts[DEFAULT] = len(sizes)
    return {
        name: BucketWidth(log_half_width_ratio=round(factor * scales[name], 3), groups=counts[name])
        for name in sorted(scales)
    }


def _parent(name: str) -> str:
    """Mode and execution of a bucket."""
    return name.partition("/")[2]


def _groups_by(names: Iterable[str], groups: Iterable[Hashable]) -> dict[str, int]:
    """How many groups have each name."""
    found: defaultdict[str, set[Hashable]] = defaultdict(set)
    for name, group in zip(names, groups, strict=True):
        found[name].add(group)
    return {name: len(mine) for name, mine in found.items()}


def row_widths(design: Design, widths: Mapping[str, BucketWidth], launch_share: Floats) -> Floats:
    """The log half-width of every row: what an estimate of it would say."""
    cards = {row.slug: find(row.slug) for row in design.rows}
    return np.array(
        [
            intervals.width(
                widths,
                family=family,
                mode=row.mode,
                execution=row.execution,
                gpu=cards[row.slug],
                launch_share=share,
            ).log_half_width_ratio
            for row, family, share in zip(
                design.rows, design.families, launch_share.tolist(), strict=True
            )
        ]
    )


def unseen_row_widths(
    design: Design,
    chosen: NDArray[np.bool_],
    residuals: Sequence[Floats],
    launch_share: Floats,
    folds: Sequence[Fold],
) -> Floats:
    """Widths of every row learned without the rows that its fold keeps back."""
    result = np.empty(len(design.rows))
    for fold in folds:
        widths = interval_widths(design, chosen & ~fold.kept_back, residuals, launch_share)
        mine = design.take(np.flatnonzero(fold.mine))
        result[fold.mine] = row_widths(mine, widths, launch_share[fold.mine])
    return result
