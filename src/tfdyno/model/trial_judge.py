"""What becomes of a trial before it runs: the same as another, not fitting, hopeless, or tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.tuning import TrialStatus
from tfdyno.core.units import format_bytes, significant
from tfdyno.model.trial_law import PROBABILITY, interval, spread, surest, suspects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.tuning import Trial, TrialEstimate
    from tfdyno.model.trial_law import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Why a trial is not run."""

    status: TrialStatus
    reason: str
    same_as: int | None = None


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The fastest that was measured to its end; the first of equals; None: there is none."""
    measured = [one for one in trials if one.is_judged]
    return max(measured, key=lambda one: one.samples_per_s, default=None)


def spread_of(trials: Sequence[Trial]) -> Spread:
    """From run to run of the same trial."""
    return spread([one.rates_per_s for one in trials])


def as_before(trial: Trial, trials: Sequence[Trial]) -> Judgement | None:
    """Whether an earlier trial has the same effective recipe."""
    for one in trials:
        if one.recipe == trial.recipe and one.status != "same":
            reason = f"It is the recipe of trial {one.number}."
            return Judgement(status="same", reason=reason, same_as=one.number)
    return None


def certain(trial: Trial, trials: Sequence[Trial], arms: Sequence[str], arm: str) -> str:
    """Why it is sure not to run, by trials that did not; empty: it is not.

    Args:
        trial: That is not run yet.
        trials: All before.
        arms: Of each of them: all its settings but the batch.
        arm: Of the trial.
    """
    for one, its in zip(trials, arms, strict=True):
        larger = 0 < one.batch_size <= trial.batch_size
        if one.status == "not_fit" and one.ran and its == arm and larger:
            return (
                f"A batch of {one.batch_size:,} ran out of memory with the same settings "
                f"(trial {one.number})."
            )
    return ""


def refused(trial: Trial, trials: Sequence[Trial]) -> str:
    """A setting of it that alone made another trial fail; empty: there is none."""
    worked = [one.changes for one in trials if one.ran and one.status in ("measured", "pruned")]
    for one in trials:
        if one.status != "failed" or not one.ran:
            continue
        left = suspects(one.changes, worked)
        if len(left) == 1 and trial.changes.get(left[0][0]) == left[0][1]:
            name, value = left[0]
            return f"{name}={value} made trial {one.number} fail."
    return ""


def unfit(estimate: TrialEstimate | None) -> str:
    """Why it surely does not fit; empty: it may."""
    if estimate is None or estimate.memory_bytes is None or not estimate.limit_bytes:
        return ""
    low = estimate.memory_bytes.low
    if estimate.made_by == "estimate":
        low, _ = surest(estimate.memory_bytes)
    if low <= estimate.limit_bytes:
        return ""
    whose = "The estimate" if estimate.made_by == "estimate" else "The line through other trials"
    needed, there = format_bytes(low), format_bytes(estimate.limit_bytes)
    return f"{whose} says {needed} of memory at least, and there is {there} ({PROBABILITY:.0%})."


def hopeless(estimate: TrialEstimate | None, trials: Sequence[Trial]) -> str:
    """Why it is surely slower than the best; empty: it may be faster.

    The optimistic end of what is expected is set against the low end of what the best was measured
    with. An estimate's errors on the trials of this study count where there are enough.
    """
    best = best_of(trials)
    if best is None or estimate is None or estimate.samples_per_s is None:
        return ""
    high = estimate.samples_per_s.high
    if estimate.made_by == "estimate":
        known = [
            (one.samples_per_s, one.estimate.samples_per_s.best)
            for one in trials
            if one.is_judged and one.estimate and one.estimate.made_by == "estimate"
            and one.estimate.samples_per_s
        ]  # fmt: skip
        _, high = surest(estimate.samples_per_s, known)
    low, _ = interval(best.rates_per_s, spread_of(trials))
    floor = low or best.samples_per_s
    if high >= floor:
        return ""
    whose = "The estimate" if estimate.made_by == "estimate" else "The line through other trials"
    return (
        f"{whose} says {significant(high)} samples/s at most, the best has {significant(floor)} "
        f"at least ({PROBABILITY:.0%} each)."
    )
