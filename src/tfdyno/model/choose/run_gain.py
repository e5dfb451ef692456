"""What changed between two runs of a project, and what the same figure of both says."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.core.project.report import DONE, Change, Gained, GainVerdict
from tfdyno.model.measure.comparison import compare, verdict_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tfdyno.core.measure.measurement import Measurement
    from tfdyno.core.project.project import ProjectRun, StepRun
    from tfdyno.core.project.report import KeyFigure

_VERDICTS: dict[str, GainVerdict] = {
    "faster": "better", "slower": "worse", "no_difference": "no_difference",
    "not_comparable": "not_compared",
}  # fmt: skip
_SIDES = {"A": "the earlier", "B": "the later"}
"""What ``compare`` calls its sides."""


def bases(earlier: Sequence[ProjectRun]) -> dict[str, tuple[str, StepRun]]:
    """Find by step the newest run in which it came to its end: the id, and the step as it was.

    Args:
        earlier: Runs of the project, newest first.
    """
    found: dict[str, tuple[str, StepRun]] = {}
    for run in earlier:
        for step in run.steps:
            if step.status in DONE:
                found.setdefault(step.step, (run.id, step))
    return found


def changes(
    before: Mapping[str, tuple[str, StepRun]], after: ProjectRun, known: Collection[str]
) -> tuple[Change, ...]:
    """Return everything that a step of a run rests on and that is no longer as it was.

    A step that a run was not asked for says nothing: it may well be part of the project.

    Args:
        before: By step, what it is compared with, as ``bases`` has it.
        after: The later run.
        known: Names of the steps that any earlier run came to.
    """
    found = []
    for step in after.steps:
        if step.step in before:
            since, old = before[step.step]
            found += [replace(one, since=since) for one in step_changes(old, step)]
        elif step.key and step.step not in known and step.status != "reused":
            found.append(Change(step=step.step, what="step", after=step.command))
    return tuple(found)


def step_changes(before: StepRun, after: StepRun) -> tuple[Change, ...]:
    """Return what one step rests on that differs between both runs, in the earlier one's order.

    Where that is nothing, and yet both ended with makings of their own, that is one change. A step
    that one of them did not come to says nothing: what it would have rested on is not known.
    """
    if not before.key or not after.key:
        return ()
    old, new = before.rests_on, after.rests_on
    found = tuple(
        Change(step=after.step, what=what, before=old.get(what, ""), after=new.get(what, ""))
        for what in dict.fromkeys((*old, *new))
        if (what in old, old.get(what)) != (what in new, new.get(what))
    )
    if not found and is_remade(before, after):
        return (Change(step=after.step, what="making", before=before.stamp, after=after.stamp),)
    return found


def is_remade(before: StepRun, after: StepRun) -> bool:
    """Return whether both came to their end, each with a making of its own."""
    return bool(before.stamp and after.stamp) and before.stamp != after.stamp


def gained(step: str, before: KeyFigure, after: KeyFigure) -> Gained:
    """Return the ratio of one figure in two runs, above 1 where the later is better.

    Of two measured figures, each with an interval of its own at confidences ``a`` and ``b``, the
    interval of the ratio goes from the lowest that both allow to the highest,

        (after.low / before.high, after.high / before.low)

    and holds in at least ``a + b - 1`` of all cases, however the two depend on each other
    (Bonferroni's inequality). Where less is better both are turned over. What was estimated, or
    was measured on another machine, under other terms or without an interval, is not compared.
    """
    told = partial(Gained, step=step, figure=after.title, of=after.of, before=before, after=after)
    obstacle = _obstacle(before, after) or _no_interval(before, after)
    if obstacle:
        return told(verdict="not_compared", reason=obstacle)
    is_more = after.better == "more"
    ratio = after.value / before.value if is_more else before.value / after.value
    if after.basis == "exact":
        verdict: GainVerdict = "no_difference" if ratio == 1 else "better" if ratio > 1 else "worse"
        return told(verdict=verdict, reason="counted, not measured", ratio=ratio, way="counts")
    lows = (before.low or 0.0, after.low or 0.0)
    highs = (before.high or 0.0, after.high or 0.0)
    low, high = lows[1] / highs[0], highs[1] / lows[0]
    interval = (low, high) if is_more else (1 / high, 1 / low)
    sure = max(0.0, before.confidence_ratio + after.confidence_ratio - 1.0)
    return told(
        verdict=_VERDICTS[verdict_of(ratio, interval)], ratio=ratio, interval=interval,
        confidence_ratio=sure, way="intervals", reason="from the intervals of both",
        caveat="what the machine did between the two is not taken out",
    )  # fmt: skip


def gained_bench(
    step: str, figures: tuple[KeyFigure, KeyFigure], sides: tuple[Measurement, Measurement]
) -> Gained:
    """Return the same of two measurements with their samples, as ``tfdyno compare`` judges them."""
    before, after = figures
    told = partial(Gained, step=step, figure=after.title, of=after.of, before=before, after=after)
    if obstacle := _obstacle(before, after):
        return told(verdict="not_compared", reason=obstacle)
    found = compare(*sides)
    reason = found.reason.rstrip(".")
    if found.verdict == "not_comparable":
        side, _, rest = reason.partition(" ")
        return told(verdict="not_compared", reason=f"{_SIDES.get(side, side)} {rest}")
    reason, _, caveat = reason.partition("; ")
    return told(
        verdict=_VERDICTS[found.verdict], ratio=found.ratio, interval=found.interval,
        confidence_ratio=found.confidence_ratio, way="samples", reason=reason, caveat=caveat,
    )  # fmt: skip


def _obstacle(before: KeyFigure, after: KeyFigure) -> str:
    """Return why the two do not compare, whatever is known of their spread; empty: they do."""
    if before.basis == "estimated" or after.basis == "estimated":
        return "an estimate, not a measurement"
    if not after.better or before.unit != after.unit:
        return "neither more nor less of it is better"
    if before.value <= 0 or after.value <= 0:
        return "one of them is not above 0"
    if after.basis == "exact":
        return ""
    for name, word in (("place", "on"), ("terms", "with")):
        sides = [str(getattr(one, name)) for one in (before, after)]
        if sides[0] != sides[1]:
            unknown = "an unknown machine" if name == "place" else "what is not known"
            return f"measured {word} {' and '.join(one or unknown for one in sides)}"
    return ""


def _no_interval(before: KeyFigure, after: KeyFigure) -> str:
    bounds = (before.low, before.high, after.low, after.high)
    is_bare = any(one is None or one <= 0 for one in bounds)
    return "no interval is known" if is_bare and after.basis != "exact" else ""
