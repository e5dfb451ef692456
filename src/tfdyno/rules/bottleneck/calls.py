"""What a step takes for having a call of its own, by steps that ran both ways in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.steady import half_width, typical

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import StepFacts


def of_calls(facts: StepFacts) -> float:
    """Share of the step that it takes for having a call of its own; 0 where it is not known.

        share = (1 - step in a call of n / step alone) * n / (n - 1)

    Of n calls one is left, so that what was seen to go is n - 1 of n of it.
    """
    saved = saved_by_calls(facts)
    if not saved or not facts.calls:
        return 0.0
    return max(0.0, saved[1]) * facts.calls.steps / (facts.calls.steps - 1)


def saved_by_calls(facts: StepFacts) -> tuple[float, float, float] | None:
    """Share of the step that goes where several are in one call: low, best, high.

    The median of what was seen in turns, with its 95 % interval. None: nobody looked.
    """
    calls = facts.calls
    if calls is None or calls.steps < 2:
        return None
    pairs = zip(calls.single_s, calls.together_s, strict=False)
    ratios = [together / single for single, together in pairs if single > 0.0]
    if not ratios:
        return None
    best, half = 1.0 - typical(ratios), half_width(ratios)
    return best - half, best, best + half
