"""The steps of a look in their order: how long each took, and what made some of them long."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.step_facts import LONG_RATIO, StallFacts, TimelineFacts
from tfdyno.model.statistics import median
from tfdyno.runtime.diagnose_clock import even

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.runtime.diagnose_clock import StepTimes

MOST_POINTS = 600
"""Of more steps several that follow each other are told by their mean."""
MOST_STALLS = 40


def timeline_of(times: StepTimes, traced_s: Mapping[int, float]) -> TimelineFacts:
    """All steps after warm-up; of a training that ended before, all but the first.

    Args:
        times: The clock.
        traced_s: Seconds of tracing by the number of the step, counted from 0 at the end of
            warm-up.
    """
    is_warm = 0 <= times.own_from < len(times.steps)
    start = times.own_from if is_warm else min(1, len(times.steps) - 1)
    steps = times.steps[start:]
    told, number = list[StallFacts](), 1
    for place, (step, mean_s) in enumerate(zip(steps, even(steps), strict=True)):
        retrace_s = traced_s.get(place, 0.0) if is_warm else 0.0
        # Of a loop what Keras validates is time of callbacks as well; of ``fit`` it is not.
        named_s = step.checkpoint_s + (step.validation_s if step.beside_s else 0.0)
        callback_s = max(0.0, step.callback_s - named_s)
        beside_s = step.wait_s + callback_s + step.checkpoint_s + step.validation_s + retrace_s
        told.append(
            StallFacts(
                step=number,
                # What has a known reason was not the device working on behind the host's back.
                whole_s=(step.whole_s if beside_s > mean_s else mean_s) / step.count,
                input_s=step.wait_s / step.count,
                callback_s=callback_s / step.count,
                validation_s=step.validation_s / step.count,
                checkpoint_s=step.checkpoint_s / step.count,
                retrace_s=retrace_s / step.count,
                is_first_of_epoch=step.is_first_of_epoch,
            )
        )
        number += step.count
    whole_s, counts = [one.whole_s for one in told], [step.count for step in steps]
    found = timeline(whole_s, counts, longest(told))
    return replace(found, what="after warm-up") if is_warm else found


def timeline(
    whole_s: Sequence[float], counts: Sequence[int], stalls: Sequence[StallFacts] = ()
) -> TimelineFacts:
    """Few enough points to be drawn and read.

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
    """The longest of all steps, in their order."""
    if not steps:
        return ()
    least_s = LONG_RATIO * median([one.whole_s for one in steps])
    long = sorted((one for one in steps if one.whole_s > least_s), key=lambda one: -one.whole_s)
    return tuple(sorted(long[:MOST_STALLS], key=lambda one: one.step))
