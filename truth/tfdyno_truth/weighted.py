"""Quantiles of values that do not all count the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def quantile(values: ArrayLike, weights: ArrayLike, share: float) -> float:
    """The smallest value that, with those below it, has this share of all weight.

    Raises:
        ValueError: There is no value.
    """
    found, weight = np.asarray(values, dtype=float), np.asarray(weights, dtype=float)
    if not found.size:
        raise ValueError("no value to take a quantile of")
    order = np.argsort(found, kind="stable")
    summed = np.cumsum(weight[order])
    place = int(np.searchsorted(summed, share * summed[-1]))
    return float(found[order[min(place, found.size - 1)]])
