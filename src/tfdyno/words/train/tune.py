"""Words for the answer of a tuning that its text and its recipe file share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from tfdyno.core.train.tuning import Trial, TrialStatus, Tuning

STATUS_WORDS: dict[TrialStatus, str] = {
    "measured": "measured",
    "pruned": "ended early, surely slower",
    "not_fit": "does not fit",
    "hopeless": "not run, surely slower",
    "same": "same as another",
    "failed": "failed",
    "running": "running",
    "planned": "would be measured",
}


def changes_words(one: Trial) -> str:
    """Write ``batch_size=64, execution=xla``; a setting that is the script's own reads ``own``."""
    told = [f"{name}={value or 'own'}" for name, value in one.changes.items()]
    return ", ".join(told) or "the start"


def headline(told: Tuning) -> str:
    """Return the answer in one sentence."""
    if told.planned_for:
        count, of = told.counts().get("planned", 0), plural(len(told.trials), "trial")
        return f"Planned for {told.planned_for}, not measured: {count} of {of} would be run."
    if told.best is None:
        return "No trial could be measured to its end."
    best = told.trial(told.best)
    if told.proof and told.proof.kept:
        low, high = told.proof.interval
        return (
            f"{told.proof.ratio:.2f}x as fast with {changes_words(best)} "
            f"({low:.2f}–{high:.2f} at {told.proof.confidence_ratio:.0%}, measured in turns)."
        )
    if told.proof:
        return f"The starting recipe stays: {changes_words(best)} is not proven to be better."
    if best.recipe == told.recipe and best.recipe != told.start:
        return (
            f"The fastest that fits is {changes_words(best)} with "
            f"{significant(best.samples_per_s)} samples/s; the start does not fit."
        )
    if best.recipe == told.start:
        ran = plural(sum(one.ran for one in told.trials), "trial")
        return f"The starting recipe is the fastest of {ran}."
    return (
        f"The fastest so far is {changes_words(best)} with {significant(best.samples_per_s)} "
        "samples/s; it is not proven yet."
    )


def batch_warning(told: Tuning) -> str:
    """Return what changes with the batch of an update; empty: nothing."""
    if told.best is None:
        return ""
    best = told.trial(told.best)
    if not best.changes_batch or best.recipe != told.recipe or not told.update_samples:
        return ""
    replicas = 1
    first = told.trials[0]
    if first.batch_size:
        replicas = told.update_samples // (first.batch_size * first.recipe.accumulation) or 1
    now = best.batch_size * best.recipe.accumulation * replicas
    return (
        f"It changes the batch of an update from {told.update_samples:,} to {now:,} samples: what "
        "is learned was not compared, and the learning rate may have to change. --keep-batch tunes "
        "without that."
    )


def losses_warning(told: Tuning) -> str:
    """Say that an answer was measured for its speed alone, and why; empty: its losses agree."""
    if told.best is None or not told.uncompared or told.recipe == told.start:
        return ""
    if told.trial(told.best).changes_batch:
        return ""  # which ``batch_warning`` says
    return f"Only the speed was compared, not the losses: {told.uncompared}."


def count_words(told: Tuning) -> str:
    """Write ``12 measured, 5 ended early, …; 20 of 128 combinations were not tried``."""
    counts = ", ".join(f"{count} {STATUS_WORDS[name]}" for name, count in told.counts().items())
    if not told.left:
        return counts
    return f"{counts}; {told.left:,} of {told.space.size:,} combinations were not tried"
