"""How much faster one way to run a step is than others, where that can be told from estimates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.backends import BackendVerdict


def fastest(steps: Sequence[Interval]) -> int:
    """Return the place of the shortest step by the best estimates."""
    return min(range(len(steps)), key=lambda place: steps[place].best)


def speed_of(step_s: Interval, others_s: Sequence[Interval]) -> tuple[BackendVerdict, Interval]:
    """Compare a step with the fastest of others.

        times as fast = seconds of the fastest other / seconds of this one

    Its range takes the errors of both as independent: half widths in the logarithm are added as
    squares. That is wide, since what an estimate gets wrong of a card it gets wrong of both.

    It is faster where its range lies below the range of every other, slower where it lies above
    that of the fastest. Anything else is no difference that can be told.

    Args:
        step_s: Of the way that is judged.
        others_s: Of the others, one at least.
    """
    other = others_s[fastest(others_s)]
    best = other.best / step_s.best
    ratio = Interval(
        low=best / _factor(other.best / other.low, step_s.high / step_s.best),
        best=best,
        high=best * _factor(other.high / other.best, step_s.best / step_s.low),
    )
    if all(step_s.high < one.low for one in others_s):
        return "faster", ratio
    return ("slower" if step_s.low > other.high else "no_difference"), ratio


def _factor(one: float, other: float) -> float:
    """Combine two factors of at least 1 that err independently."""
    return math.exp(math.hypot(math.log(one), math.log(other)))
