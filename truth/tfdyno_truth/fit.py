"""Robust least squares on log(step time), and what it predicts for rows it has not seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tfdyno.core.choose.time_model import Parameter
    from tfdyno_truth.design import Design
    from tfdyno_truth.ways import Fold

    Floats = NDArray[np.float64]

PRIOR_WEIGHT = 8.0
"""As many groups as would have to agree before a constant leaves its prior far behind.

Mean errors in % with the card and with the kind of model left out: on one state of the terms 13.9
and 14.6 by a weight of 1, 13.6 and 13.3 by 8; on an earlier one 15.6 and 17.3 by 0.3, 14.0 and 14.3
by 2, 13.8 and 13.5 by 6. What the rows move under small weights is noise of a few sources.
"""
ROBUST_SCALE = 0.1
SLOPE_STEP = 1e-3
FIRST_FIT, LATER_FITS = 25, 6
"""Most steps of the solver, from the priors and from a fit on nearly the same rows."""
BLIND_WEIGHT = 3.0
"""Weight of priors that know nothing of the rows.

Mean error and what the intervals of 2026-11-22 hold, source, model and card left out: 22.3 and 68 %
by a weight of 1, 20.6 and 71 % by 3. Weight 8 with the shipped priors says 12.4 and 88 %, because
those priors were made from all rows; by that weight's own measure 4 gives 12.8 %, 16 12.6 %, 32
12.9 %.
"""
BLIND_ROUNDS = (20, 10)
"""Steps of the solver between two looks at the slopes: within 0.4 % of the cost of 15 full steps,
for a fifth of their time."""
LEAST_SHARE = 0.02
"""The lowest allowed value counts as at least this share of the highest in ``blinded``."""


def fit(
    design: Design,
    parameters: Mapping[str, Parameter],
    *,
    without: frozenset[str] = frozenset(),
    start: Mapping[str, float] | None = None,
    evaluations: int = FIRST_FIT,
    prior_weight: float = PRIOR_WEIGHT,
    rounds: Sequence[int] = (),
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
        rounds: Instead of ``evaluations``: steps with the same slopes, time after time, which
            takes a fraction of the time and ends nearly there.

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
    how = {"bounds": (low, high), "loss": "soft_l1", "f_scale": ROBUST_SCALE, "x_scale": 0.1}
    if not rounds:
        begin = least_squares(residuals, begin, max_nfev=evaluations, **how).x
    for steps in rounds:
        slopes = _slopes(residuals, begin, high)
        begin = least_squares(
            residuals, begin, jac=lambda _x, same=slopes: same, max_nfev=steps, **how
        ).x
    return values | dict(zip(free, np.exp(begin).tolist(), strict=True))


def _slopes(residuals: Callable[[Floats], Floats], at: Floats, high: Floats) -> Floats:
    """Forward differences, backward where the upper bound is near."""
    here = residuals(at)
    steps = np.where(at + SLOPE_STEP < high, SLOPE_STEP, -SLOPE_STEP)
    moved = [residuals(at + step * unit) for step, unit in zip(steps, np.eye(len(at)), strict=True)]
    return np.stack([(there - here) / step for there, step in zip(moved, steps, strict=True)], 1)


def neutral(parameter: Parameter) -> float:
    """The value that takes a term out of the model: 1 for factors, else the lowest allowed."""
    return 1.0 if parameter.low <= 1.0 <= parameter.high else parameter.low


def blinded(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The constants with priors that no measured row has had a say in.

    Most priors are round figures near earlier fits on these very rows: a fit that is drawn to them
    has heard of the rows that it is kept from. What may be 1 becomes 1 (no effect, or all of what
    the data sheet says), everything else the geometric middle of what is allowed.
    """
    return {
        name: replace(one, prior=_middle(one)) if one.fitted else one
        for name, one in parameters.items()
    }


def _middle(parameter: Parameter) -> float:
    low, high = parameter.low, parameter.high
    if low <= 1.0 <= high:
        return 1.0
    return float(np.sqrt(max(low, LEAST_SHARE * high) * high))


def leave_out(
    design: Design,
    parameters: Mapping[str, Parameter],
    learnable: NDArray[np.bool_],
    folds: Sequence[Fold],
    *,
    without: frozenset[str] = frozenset(),
    start: Mapping[str, float] | None,
    tell: Callable[[str], None] = lambda _fold: None,
) -> Floats:
    """Predict every row by constants fitted without the rows that its fold keeps back.

    Args:
        design: All rows.
        parameters: As in ``fit``.
        learnable: Which rows a fit may see at all.
        folds: What is predicted and kept back together.
        without: As in ``fit``.
        start: The fit on everything, from which each fit begins. None: each begins from blind
            priors (``blinded``), so that neither start nor priors know the rows kept back.
        tell: Is given the name and number of each fold.

    Returns:
        Step time of every row in seconds.
    """
    blind = start is None
    if blind:
        parameters = blinded(parameters)
    predicted = np.empty(len(design.rows))
    for number, fold in enumerate(folds, 1):
        tell(f"{fold.name} ({number} of {len(folds)})")
        constants = fit(
            design.take(np.flatnonzero(learnable & ~fold.kept_back)),
            parameters,
            without=without,
            start=start,
            evaluations=LATER_FITS,
            prior_weight=BLIND_WEIGHT if blind else PRIOR_WEIGHT,
            rounds=BLIND_ROUNDS if blind else (),
        )
        predicted[fold.mine] = design.take(np.flatnonzero(fold.mine)).predict(constants)
    return predicted
