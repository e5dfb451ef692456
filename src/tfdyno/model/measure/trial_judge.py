"""What becomes of a trial before it runs: the same as another, not fitting, hopeless, or tried."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.recipe.recipe import flat
from tfdyno.core.train.search_space import ACCUMULATION, BATCH
from tfdyno.core.train.tuning import TrialStatus
from tfdyno.model.measure.trial_law import (
    PROBABILITY,
    allowance,
    interval,
    learned,
    moved_ratio,
    noise,
    spread,
    surest,
    suspects,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.tuning import Trial, TrialEstimate
    from tfdyno.model.measure.trial_law import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Why a trial is not run."""

    status: TrialStatus
    reason: str
    same_as: int | None = None


def arm_of(recipe: Recipe) -> str:
    """Return all settings but the batch, as one word; of accumulation only whether there is any."""
    settings = flat(recipe)
    del settings[BATCH]
    settings[ACCUMULATION] = recipe.accumulation > 1
    return json.dumps(settings, sort_keys=True, default=str)


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """Return the fastest that was measured to its end; the first of equals; None: there is none."""
    measured = [one for one in trials if one.is_judged]
    return max(measured, key=lambda one: one.samples_per_s, default=None)


def ranked(trials: Sequence[Trial], start: Recipe) -> tuple[Trial, ...]:
    """Order the trials that may be the answer as they are proven.

    First the one with the fewest changes of those that the noise does not tell from the fastest: a
    setting that does nothing is in no answer by luck. Then the others, the fastest first. Where the
    start was measured they are those faster than it, and there is none where it is the fastest.

    Args:
        trials: All of the study.
        start: The starting recipe.
    """
    measured = [one for one in trials if one.is_judged]
    floor = max((one.samples_per_s for one in measured if one.recipe == start), default=0.0)
    faster = [one for one in measured if one.recipe != start and one.samples_per_s > floor]
    if not faster:
        return ()
    best = max(faster, key=lambda one: one.samples_per_s)
    known = spread_of(trials)
    alike = [
        one for one in faster
        if math.log(best.samples_per_s / one.samples_per_s)
        <= noise(len(one.rates_per_s), len(best.rates_per_s), known)
    ]  # fmt: skip
    first = min(alike, key=lambda one: (len(one.changes), -one.samples_per_s))
    others = sorted(faster, key=lambda one: -one.samples_per_s)
    return (first, *(one for one in others if one != first))


def spread_of(trials: Sequence[Trial]) -> Spread:
    """Return the spread from run to run of the same trial."""
    return spread([one.rates_per_s for one in trials])


def as_before(trial: Trial, trials: Sequence[Trial]) -> Judgement | None:
    """Return the judgement where an earlier trial has the same recipe."""
    for one in trials:
        if trial.recipe in (one.recipe, one.ran_as) and one.status != "same":
            reason = f"It is the recipe of trial {one.number}."
            return Judgement(status="same", reason=reason, same_as=one.number)
    return None


def certain(trial: Trial, trials: Sequence[Trial]) -> str:
    """Return why it is sure not to run, by trials that did not; empty: it is not."""
    arm = arm_of(trial.recipe)
    for one in trials:
        larger = 0 < one.batch_size <= trial.batch_size
        if one.status == "not_fit" and one.ran and larger and arm_of(one.recipe) == arm:
            return (
                f"A batch of {one.batch_size:,} ran out of memory with the same settings "
                f"(trial {one.number})."
            )
    return ""


def refused(trial: Trial, trials: Sequence[Trial]) -> str:
    """Find a setting that alone made the workload refuse another trial; empty: there is none.

    What the place did to a trial, a crash or a full disk, says nothing of its settings.
    """
    worked = [one.changes for one in trials if one.ran and one.status in ("measured", "pruned")]
    for one in trials:
        if not one.is_refused:
            continue
        left = suspects(one.changes, worked)
        if len(left) == 1 and trial.changes.get(left[0][0]) == left[0][1]:
            name, value = left[0]
            return f"{name}={value} made trial {one.number} fail."
    return ""


def unfit(trial: Trial, trials: Sequence[Trial] = ()) -> str:
    """Return why it surely does not fit; empty: it may.

    The low end of what is expected is set against what there is. A trial that ran disproves more:
    with the same settings a batch no larger fits, and where it took less than its own estimate
    says, the low ends of others are taken down by the same ratio.
    """
    estimate = trial.estimate
    if estimate is None or estimate.memory_bytes is None or not estimate.limit_bytes:
        return ""
    is_estimate = estimate.made_by == "estimate"
    low = surest(estimate.memory_bytes)[0] if is_estimate else estimate.memory_bytes.low
    ratio = 1.0
    for one in trials:
        if not one.ran or not one.peak_memory_bytes or not _holds_alike(one, trial, estimate):
            continue
        if one.batch_size >= trial.batch_size:
            return ""
        if is_estimate and one.estimate and one.estimate.memory_bytes:
            ratio = min(ratio, one.peak_memory_bytes / one.estimate.memory_bytes.best)
    low *= ratio
    if low <= estimate.limit_bytes:
        return ""
    needed, there = format_bytes(low), format_bytes(estimate.limit_bytes)
    if is_estimate:  # its bounds of memory are a judgement: no probability belongs to them
        return f"The estimate says {needed} of memory at least, and there is {there}."
    said_by = f"says {needed} of memory at least, and there is {there} ({PROBABILITY:.0%})"
    return f"The line through other trials {said_by}."


def _holds_alike(one: Trial, other: Trial, estimate: TrialEstimate) -> bool:
    """Return whether two trials hold the same in memory, but for their batches."""
    if estimate.made_by != "estimate":  # of a process, with its input
        return arm_of(one.recipe) == arm_of(other.recipe)
    pairs = [(each.recipe.precision, each.recipe.execution, each.recipe.accumulation > 1)
             for each in (one, other)]  # fmt: skip
    return pairs[0] == pairs[1]


def hopeless(trial: Trial, trials: Sequence[Trial]) -> str:
    """Return why it is surely slower than the best; empty: it may be faster.

    The optimistic end of what is expected is set against the low end of what the best was measured
    with. Of lines through trials the difference has to be more than what the machine's own speed
    may have changed.
    """
    best, estimate = best_of(trials), trial.estimate
    if best is None or estimate is None or estimate.samples_per_s is None:
        return ""
    is_estimate = estimate.made_by == "estimate"
    high = _optimistic(trial, trials) if is_estimate else estimate.samples_per_s.high
    low, _ = interval(best.rates_per_s, spread_of(trials))
    floor = low or best.samples_per_s
    if not is_estimate:
        floor /= math.exp(_most_allowed(best, trials))
    if high >= floor:
        return ""
    whose = "The estimate" if is_estimate else "The line through other trials"
    return (
        f"{whose} says {significant(high)} samples/s at most, the best has {significant(floor)} "
        f"at least ({PROBABILITY:.0%} each)."
    )


def _optimistic(trial: Trial, trials: Sequence[Trial]) -> float:
    """Return the high end of an estimate, by its interval and by its errors in this study.

    An estimate does not see the input, several steps in one execution and how well a precision
    does here. So errors take its high end down only between trials that differ in nothing but the
    batch, and not beyond the batches that were measured; all errors can raise it.
    """
    estimate = trial.estimate
    assert estimate
    assert estimate.samples_per_s
    raw = surest(estimate.samples_per_s)[1]
    measured = [
        one for one in trials
        if one.is_judged and one.estimate and one.estimate.made_by == "estimate"
        and one.estimate.samples_per_s
    ]  # fmt: skip
    arm = arm_of(trial.recipe)
    alike = [one for one in measured if arm_of(one.recipe) == arm]
    sizes = [one.batch_size for one in alike]
    if sizes and min(sizes) <= trial.batch_size <= max(sizes):
        found = learned(estimate.samples_per_s.best, _errors(alike))
        if found:
            return found[1]
    found = learned(estimate.samples_per_s.best, _errors(measured))
    return max(raw, found[1]) if found else raw


def _errors(trials: Sequence[Trial]) -> list[tuple[float, float]]:
    """Return rates that were measured, with what had been estimated of them."""
    return [
        (one.samples_per_s, one.estimate.samples_per_s.best)
        for one in trials if one.estimate and one.estimate.samples_per_s
    ]  # fmt: skip


def _most_allowed(best: Trial, trials: Sequence[Trial]) -> float:
    """Return the largest allowance between the best and any trial that a line goes through."""
    judged = [one for one in trials if one.is_judged]
    return max(allowance(moved_ratio(one.beside_s, best.beside_s)) for one in judged)
