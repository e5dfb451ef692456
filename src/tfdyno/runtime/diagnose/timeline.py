"""The steps of a look in their order: how long each took, and what made some of them long."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.measure.step_facts import StallFacts, TimelineFacts
from tfdyno.profile.timeline import longest, timeline
from tfdyno.runtime.diagnose.clock import even

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.runtime.diagnose.clock import StepTimes


def timeline_of(times: StepTimes, traced_s: Mapping[int, float]) -> TimelineFacts:
    """Return all steps after warm-up; of a training that ended before, all but the first.

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
