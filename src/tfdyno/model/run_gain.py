"""What changed between two runs of a project, and what the same figure of both says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tfdyno.core.project_report import Change, Gained, GainVerdict
from tfdyno.model.comparison import compare, verdict_of

if TYPE_CHECKING:
    from tfdyno.core.measurement import Measurement
    from tfdyno.core.project import ProjectRun, StepRun
    from tfdyno.core.project_report import KeyFigure

_VERDICTS: dict[str, GainVerdict] = {
    "faster": "better", "slower": "worse", "no_difference": "no_difference",
    "not_comparable": "not_compared",
}  # fmt: skip


def changes(before: ProjectRun, after: ProjectRun) -> tuple[Change, ...]:
    """Everything that a step of either run rests on and the other's does not, or otherwise.

    A step that only one of them has is one change, unless the other ended before it could come to
    it. A step that one of them did not come to says nothing: what it would have rested on is not
    known.
    """
    first = {step.step: step for step in before.steps}
    last = {step.step: step for step in after.steps}
    found = []
    for name in dict.fromkeys((*first, *last)):
        one, other = first.get(name), last.get(name)
        if one is None or other is None:
            if (before if one is None else after).status != "finished":
                continue
            found.append(Change(step=name, what="step", before=one.command if one else "",
                                after=other.command if other else ""))  # fmt: skip
        elif one.rests_on and other.rests_on:
            found += step_changes(one, other)
    return tuple(found)


def step_changes(before: StepRun, after: StepRun) -> tuple[Change, ...]:
    """What one step rests on and what is not the same in both runs, in the order of the earlier."""
    old, new = before.rests_on, after.rests_on
    return tuple(
        Change(step=after.step, what=what, before=old.get(what, ""), after=new.get(what, ""))
        for what in dict.fromkeys((*old, *new))
        if (what in old, old.get(what)) != (what in new, new.get(what))
    )


def gained(step: str, before: KeyFigure, after: KeyFigure) -> Gained:
    """The ratio of one figure in two runs, above 1 where the later is better.

    Of two measured figures, each with an interval of its own at confidences ``a`` and ``b``, the
    interval of the ratio goes from the lowest that both allow to the highest,

        (after.low / before.high, after.high / before.low)

    and holds in at least ``a + b - 1`` of all cases, however the two depend on each other
    (Bonferroni's inequality). Where less is better both are turned over. What was estimated, or
    was measured on another machine or without an interval, is not compared.
    """
    told = partial(Gained, step=step, figure=after.title, of=after.of, before=before, after=after)
    obstacle = _obstacle(before, after)
    if obstacle:
        return told(verdict="not_compared", reason=obstacle)
    is_more = after.better == "more"
    ratio = after.value / before.value if is_more else before.value / after.value
    if after.basis == "exact":
        verdict: GainVerdict = "no_difference" if ratio == 1 else "better" if ratio > 1 else "worse"
        return told(verdict=verdict, reason="counted, not measured", ratio=ratio)
    lows = (before.low or 0.0, after.low or 0.0)
    highs = (before.high or 0.0, after.high or 0.0)
    low, high = lows[1] / highs[0], highs[1] / lows[0]
    interval = (low, high) if is_more else (1 / high, 1 / low)
    sure = max(0.0, before.confidence_ratio + after.confidence_ratio - 1.0)
    verdict = _VERDICTS[verdict_of(ratio, interval)]
    reason = (
        "from the intervals of both, measured at different times: what the machine did meanwhile "
        "is not taken out"
    )
    return told(
        verdict=verdict, ratio=ratio, interval=interval, confidence_ratio=sure, reason=reason
    )


def gained_bench(
    step: str, figures: tuple[KeyFigure, KeyFigure], sides: tuple[Measurement, Measurement]
) -> Gained:
    """The same of two measurements with their samples, as ``tfdyno compare`` judges them."""
    before, after = figures
    found = compare(*sides)
    is_compared = found.verdict != "not_comparable"
    return Gained(
        step=step,
        figure=after.title,
        of=after.of,
        before=before,
        after=after,
        verdict=_VERDICTS[found.verdict],
        ratio=found.ratio if is_compared else 0.0,
        interval=found.interval if is_compared else (0.0, 0.0),
        confidence_ratio=found.confidence_ratio if is_compared else 0.0,
        reason=found.reason.rstrip("."),
    )


def _obstacle(before: KeyFigure, after: KeyFigure) -> str:
    """Why the two do not compare; empty: they do."""
    if before.basis == "estimated" or after.basis == "estimated":
        return "an estimate, not a measurement"
    if not after.better or before.unit != after.unit:
        return "neither more nor less of it is better"
    if before.value <= 0 or after.value <= 0:
        return "one of them is not above 0"
    if after.basis == "exact":
        return ""
    if before.place != after.place:
        names = " and ".join(one.place or "an unknown machine" for one in (before, after))
        return f"measured on {names}"
    bounds = (before.low, before.high, after.low, after.high)
    if any(one is None or one <= 0 for one in bounds):
        return "no interval is known"
    return ""
