"""Robust least squares on log(step time), and what it predicts for rows it has not seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from tfdyno.core.time_model import Parameter
    from tfdyno_truth.design import Design
    from tfdyno_truth.rows import Row

    Floats = NDArray[np.float64]

PRIOR_WEIGHT = 8.0
"""As many groups as would have to agree before a constant leaves its prior far behind.

Mean errors in % with the card and with the kind of model left out: on one state of the terms 13.9
and 14.6 by a weight of 1, 13.6 and 13.3 by 8; on an earlier one 15.6 and 17.3 by 0.3, 14.0 and 14.3
by 2, 13.8 and 13.5 by 6. What the rows move under small weights is noise of a few sources.
"""
ROBUST_SCALE = 0.1
FIRST_FIT, LATER_FITS = 25, 6
"""Most steps of the solver, from the priors and from a fit on nearly the same rows."""


def fit(
    design: Design,
    parameters: Mapping[str, Parameter],
    *,
    without: frozenset[str] = frozenset(),
    start: Mapping[str, float] | None = None,
    evaluations: int = FIRST_FIT,
    prior_weight: float = PRIOR_WEIGHT,
) -> dict[str, float]:
    """Fit the constants that are marked as fitted.

    Every group (model, card, precision, mode) weighs the same; a weak prior on the logarithm pulls
    a constant that the rows do not identify to where it was.

    Args:
        design: Rows to learn from.
        parameters: All constants; those with ``fitted`` are free within their range.
        without: Names to hold at a neutral value instead (ablation).
        start: Where to begin; the priors by default.
        evaluations: Most steps of the solver.
        prior_weight: How strongly priors hold; see ``PRIOR_WEIGHT``.

    Returns:
        All constants by name.
    """
    values = {name: p.prior if p.fitted else p.value for name, p in parameters.items()}
    values |= dict(start or {})
    values |= {name: neutral(parameters[name]) for name in without}
    free = [n for n, p in parameters.items() if p.fitted and n not in without]
    low = np.log([max(parameters[n].low, 1e-9) for n in free])
    high = np.log([parameters[n].high for n in free])
    prior = np.clip(np.log([max(parameters[n].prior, 1e-9) for n in free]), low, high)
    sizes = Counter(row.group for row in design.rows)
    weight = np.array([sizes[row.group] ** -0.5 for row in design.rows])

    def residuals(x: Floats) -> Floats:
        constants = values | dict(zip(free, np.exp(x).tolist(), strict=True))
        error = (np.log(design.predict(constants)) - design.log_step) * weight
        return np.concatenate([error, (x - prior) * prior_weight])

    begin = np.clip(np.log([max(values[n], 1e-9) for n in free]), low + 1e-6, high - 1e-6)
    found = least_squares(
        residuals,
        begin,
        bounds=(low, high),
        loss="soft_l1",
        f_scale=ROBUST_SCALE,
        max_nfev=evaluations,
        x_scale=0.1,
    )
    return values | dict(zip(free, np.exp(found.x).tolist(), strict=True))


def neutral(parameter: Parameter) -> float:
    """The value that takes a term out of the model: 1 for factors, else the lowest allowed."""
    return 1.0 if parameter.low <= 1.0 <= parameter.high else parameter.low


def leave_out(
    design: Design,
    parameters: Mapping[str, Parameter],
    learnable: NDArray[np.bool_],
    by: Callable[[Row], str],
    *,
    without: frozenset[str] = frozenset(),
    start: Mapping[str, float],
    tell: Callable[[str], None] = lambda _fold: None,
) -> Floats:
    """Predict every row by constants fitted without any row that shares its ``by`` value.

    Args:
        design: All rows.
        parameters: As in ``fit``.
        learnable: Which rows a fit may see at all.
        by: What is left out together (chip or architecture).
        without: As in ``fit``.
        start: The fit on everything, from which each fit begins.
        tell: Is given the name and number of each fold.

    Returns:
        Step time of every row in seconds.
    """
    folds: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(design.rows):
        folds[by(row)].append(index)
    predicted = np.empty(len(design.rows))
    for number, (label, chosen) in enumerate(folds.items(), 1):
        tell(f"{label} ({number} of {len(folds)})")
        seen = learnable.copy()
        seen[chosen] = False
        constants = fit(
            design.take(np.flatnonzero(seen)),
            parameters,
            without=without,
            start=start,
            evaluations=LATER_FITS,
        )
        predicted[chosen] = design.take(np.array(chosen)).predict(constants)
    return predicted
