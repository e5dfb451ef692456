"""Two rates that were measured in turns: how many times as fast the second is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.measure.measurement import Comparison
from tfdyno.model.measure.comparison import CONFIDENCE_RATIO, verdict_of
from tfdyno.model.measure.statistics import paired

if TYPE_CHECKING:
    from collections.abc import Sequence


def compare_rates(before_per_s: Sequence[float], after_per_s: Sequence[float]) -> Comparison:
    """Return the ratio of two rates whose i-th values were measured one after the other.

    Student's t at 99 % on the logarithms of the ratios of pairs, so that whatever else the machine
    did in a pair meets both sides.

    Raises:
        ValueError: There are fewer than two pairs, or a side has more turns.
    """
    contrast = paired(before_per_s, after_per_s)
    half = contrast.half_width(CONFIDENCE_RATIO)
    ratio, low, high = (math.exp(contrast.log_ratio + way * half) for way in (0, -1, 1))
    return Comparison(
        verdict=verdict_of(ratio, (low, high)),
        ratio=ratio,
        interval=(low, high),
        confidence_ratio=CONFIDENCE_RATIO,
        paired=True,
        reason=f"{len(before_per_s)} turns of each side, one after the other.",
    )
