"""Words for the answer of a tuning that its text and its recipe file share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import say, say_later
from tfdyno.words.train.tune_notes import uncompared_words

if TYPE_CHECKING:
    from tfdyno.core.train.tuning import Trial, TrialStatus, Tuning

_STATUS: dict[TrialStatus, str] = {
    "measured": say_later("measured||trial"),
    "pruned": say_later("ended early, surely slower"),
    "not_fit": say_later("does not fit||trial"),
    "hopeless": say_later("not run, surely slower"),
    "same": say_later("same as another"),
    "failed": say_later("failed"),
    "running": say_later("running"),
    "planned": say_later("would be measured"),
}


def status_words(status: TrialStatus) -> str:
    """Return what became of a trial."""
    return say(_STATUS[status])


def changes_words(one: Trial) -> str:
    """Write ``batch_size=64, execution=xla``; a setting that is the script's own reads ``own``."""
    told = [f"{name}={value or say('own||value')}" for name, value in one.changes.items()]
    return ", ".join(told) or say("the start")


def backend_option(told: Tuning) -> str:
    """Return what a command needs so that it runs on the backend of a tuning; empty: nothing."""
    return f" --backend {told.backend}" if told.backend != "tensorflow" else ""


def headline(told: Tuning) -> str:
    """Return the answer in one sentence."""
    if told.planned_for:
        count, of = told.counts().get("planned", 0), plural(len(told.trials), "trial")
        return say(
            "Planned for {card}, not measured: {count} of {trials} would be run.",
            card=told.planned_for,
            count=count,
            trials=of,
        )
    if told.best is None:
        return say("No trial could be measured to its end.")
    best = told.trial(told.best)
    if told.proof and told.proof.kept:
        low, high = told.proof.interval
        return say(
            "{ratio:.2f}x as fast with {changes} ({low:.2f}–{high:.2f} at {sure:.0%}, measured in "
            "turns).",
            ratio=told.proof.ratio,
            changes=changes_words(best),
            low=low,
            high=high,
            sure=told.proof.confidence_ratio,
        )
    if told.proof:
        return say(
            "The starting recipe stays: {changes} is not proven to be better.",
            changes=changes_words(best),
        )
    if best.recipe == told.recipe and best.recipe != told.start:
        return say(
            "The fastest that fits is {changes} with {rate} samples/s; the start does not fit.",
            changes=changes_words(best),
            rate=significant(best.samples_per_s),
        )
    if best.recipe == told.start:
        ran = plural(sum(one.ran for one in told.trials), "trial")
        return say("The starting recipe is the fastest of {trials}.", trials=ran)
    return say(
        "The fastest so far is {changes} with {rate} samples/s; it is not proven yet.",
        changes=changes_words(best),
        rate=significant(best.samples_per_s),
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
    return say(
        "It changes the batch of an update from {before:,} to {now:,} samples: what is learned was "
        "not compared, and the learning rate may have to change. --keep-batch tunes without that.",
        before=told.update_samples,
        now=now,
    )


def losses_warning(told: Tuning) -> str:
    """Say that an answer was measured for its speed alone, and why; empty: its losses agree."""
    if told.best is None or not told.uncompared or told.recipe == told.start:
        return ""
    if told.trial(told.best).changes_batch:
        return ""  # which ``batch_warning`` says
    return say(
        "Only the speed was compared, not the losses: {why}.",
        why=uncompared_words(told.uncompared),
    )


def count_words(told: Tuning) -> str:
    """Write ``12 measured, 5 ended early, …; 20 of 128 combinations were not tried``."""
    counts = say(", ").join(
        say("{count} {status}", count=count, status=status_words(name))
        for name, count in told.counts().items()
    )
    if not told.left:
        return counts
    return say(
        "{counts}; {left:,} of {all:,} combinations were not tried",
        counts=counts,
        left=told.left,
        all=told.space.size,
    )
