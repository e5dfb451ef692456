"""Residuals of measured kernels carried to kernels of other sizes: kriging in log(size).

The residual of a kernel is log(measured / law). Those of one group, as a function of the logarithm
of the sizes, are taken for a Gaussian process with a squared exponential covariance (Rasmussen and
Williams, Gaussian Processes for Machine Learning, 2006, eq. 2.25 and 2.26) on top of a level that
the whole group shares: between two measured sizes the residual is theirs, far from all it is the
group's own, and how far it may be off grows with the distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LENGTH = 2.0
"""Over how many doublings of a size residuals stay alike. It is a judgement: tiles, caches and
vectors fill up within a factor of four."""
LOCAL = 0.35
"""Standard deviation of a residual about the level of its group, in log(time). Judgement: on one
CPU, sizes of one operation reach rates within a factor of two."""
LEVEL = 2.0
"""Standard deviation of a group's level about the law: wide, so that what was measured counts."""
LEAST_NOISE = 0.03
"""No kernel is known better than that."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Residuals:
    """Measured residuals of one group: arrays of one length."""

    sizes: Floats
    """Base-2 logarithms, shape (kernels, sizes)."""
    log_ratio: Floats
    noise: Floats
    """Standard deviation of each."""


def carried(found: Residuals, sizes: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Return residuals at other sizes, and the standard deviation of each.

    Args:
        found: What was measured; none: 0 with the deviation of a group.
        sizes: Base-2 logarithms, shape (kernels, sizes).
        level: Standard deviation of the group's level about the law.
    """
    variance = level**2 + LOCAL**2
    if not len(found.log_ratio):
        return np.zeros(len(sizes)), np.full(len(sizes), np.sqrt(variance))
    noise = np.maximum(found.noise, LEAST_NOISE) ** 2
    own = _covariance(found.sizes, found.sizes, level) + np.diag(noise)
    across = _covariance(sizes, found.sizes, level)
    weights = np.linalg.solve(own, across.T)
    mean = weights.T @ found.log_ratio
    left = variance - np.einsum("ij,ji->i", across, weights)
    return np.asarray(mean), np.sqrt(np.maximum(left, 0.0))


def _covariance(first: Floats, second: Floats, level: float) -> Floats:
    apart = ((first[:, None, :] - second[None, :, :]) / LENGTH) ** 2
    return np.asarray(level**2 + LOCAL**2 * np.exp(-0.5 * apart.sum(axis=-1)))
