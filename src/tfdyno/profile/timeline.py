"""The steps of a training as few points, and those of them that took longest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.measure.step_facts import LONG_RATIO, StallFacts, TimelineFacts
from tfdyno.model.measure.statistics import median

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_POINTS = 600
"""The most points: of more steps several that follow each other are told by their mean."""
MOST_STALLS = 40


def timeline(
    whole_s: Sequence[float], counts: Sequence[int], stalls: Sequence[StallFacts] = ()
) -> TimelineFacts:
    """Thin to points few enough to be drawn and read.

    Args:
        whole_s: Seconds per step.
        counts: Steps of each.
        stalls: What is told by itself.
    """
    size = math.ceil(len(whole_s) / MOST_POINTS)
    parts = [range(at, min(at + size, len(whole_s))) for at in range(0, len(whole_s), size or 1)]
    joined = [sum(counts[at] for at in part) for part in parts]
    means = [
        math.fsum(whole_s[at] * counts[at] for at in part) / count
        for part, count in zip(parts, joined, strict=True)
    ]
    return TimelineFacts(
        whole_s=tuple(means),
        steps_each=() if set(joined) <= {1} else tuple(joined),
        stalls=tuple(stalls),
    )


def longest(steps: Sequence[StallFacts]) -> tuple[StallFacts, ...]:
    """Return the longest of all steps, in their order."""
    if not steps:
        return ()
    least_s = LONG_RATIO * median([one.whole_s for one in steps])
    long = sorted((one for one in steps if one.whole_s > least_s), key=lambda one: -one.whole_s)
    return tuple(sorted(long[:MOST_STALLS], key=lambda one: one.step))
