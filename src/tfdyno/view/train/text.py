"""A training as terminal text: what was learned in the first line, then where it is and on what."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.core.train.training import NAN_LOSS, NAN_WEIGHTS, SPOT_NOTICE
from tfdyno.view.base.text import WIDTH, padded, paint, pairs, wrapped
from tfdyno.view.train.layout_text import headline as layout_headline
from tfdyno.view.train.layout_text import warnings
from tfdyno.view.train.progress import named_metrics
from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import joined, say, say_later
from tfdyno.words.bench.measurement import (
    device_words,
    environment_words,
    peak_words,
    recipe_words,
    seconds_words,
)
from tfdyno.words.train.nan import fix_words, summary_words
from tfdyno.words.train.notes import notes_words

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.train.training import TrainOutcome
    from tfdyno.view.train.document import TrainReport

_COLUMN = 11
"""Where the text of a finding begins, beside its labels."""
_STOPPED = {
    "SIGTERM": say_later(" stopped when asked to (SIGTERM or Ctrl-C)"),
    NAN_LOSS: say_later(" stopped at a NaN loss"),
    NAN_WEIGHTS: say_later(" stopped at weights that are NaN"),
    SPOT_NOTICE: say_later(" stopped by spot notice"),
}
_MARKS = {"error": ("✗", "red"), "warning": ("!", "yellow"), "note": ("·", "dim")}


def train_text(told: TrainReport, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole answer.

    Args:
        told: What came out.
        width: Columns of the screen.
        colour: Whether to print colours.
    """
    outcome = told.outcome
    blocks = [
        paint(wrapped(headline(told), width=width), "bold", colour=colour),
        "\n".join(_finding(one, width, colour) for one in outcome.findings),
        pairs(facts(told), width=width),
    ]
    if told.resume_command:
        command = paint(told.resume_command, "cyan", colour=colour)
        blocks.append(say("Go on with:\n  {command}", command=command))
    return "\n\n".join(block for block in blocks if block)


def headline(told: TrainReport) -> str:
    """Say what was learned, in how many epochs and steps, how long it took and how fast it was."""
    outcome = told.outcome
    name = PurePath(told.reference.partition(":")[0]).name or told.reference
    name = told.reference if told.reference.startswith(("task:", "keras:", "keras_hub:")) else name
    learned = metrics_words(outcome)
    steps = plural(outcome.steps, "step")
    length = say("{epochs} ({steps})", epochs=plural(outcome.epochs, "epoch"), steps=steps)
    spent = ""
    if outcome.samples_per_s > 0:  # else it was finished before
        spent = say(
            " in {time}, {rate} samples/s",
            time=seconds_words(outcome.seconds_s),
            rate=significant(outcome.samples_per_s),
        )
    return say(
        "{name}{stopped}: {learned} after {length}{spent}."
        if learned
        else "{name}{stopped} after {length}{spent}.",
        name=name,
        stopped=_stopped(outcome),
        learned=learned,
        length=length if outcome.epochs else steps,
        spent=spent,
    )


def metrics_words(outcome: TrainOutcome) -> str:
    """Return the metrics of the last epoch: the loss first, those of the validation last."""
    last = {name: values[-1] for name, values in outcome.history.items() if values}
    return say(", ").join(named_metrics(last))


def facts(told: TrainReport) -> list[tuple[str, str]]:
    """List where everything is, and what the numbers rest on; empty words: nothing is known."""
    outcome = told.outcome
    kept = ""
    newest = PurePath(outcome.checkpoints[-1]).name if outcome.checkpoints else ""
    resumed = PurePath(outcome.resumed_from).stem if outcome.resumed_from else ""
    if newest:
        count = plural(len(outcome.checkpoints), "checkpoint")
        kept = say("{checkpoints}, the newest {newest}", checkpoints=count, newest=newest)
    device, environment = device_words(told.environment), environment_words(told.environment)
    return [
        (say("output"), told.output),
        (say("model"), outcome.model_path),
        (say("checkpoints||kept"), kept),
        (say("went on"), say("from {checkpoint}", checkpoint=resumed) if resumed else ""),
        (say("updates"), _updates(outcome)),
        (say("batch"), _batch(outcome)),
        (say("layout"), _layout(outcome)),
        (
            say("memory||process") if outcome.memory_kind == "process" else say("memory"),
            _memory(outcome),
        ),
        (say("settings"), recipe_words(told.recipe)),
        (say("took"), "; ".join(f"{a.name}: {a.reported}" for a in outcome.applied)),
        (say("notes"), notes_words(outcome.notes, outcome.retreats)),
        (say("where"), say("; ").join((device, environment))),
    ]


def _stopped(outcome: TrainOutcome) -> str:
    if not outcome.stopped:
        return ""
    if outcome.stopped in _STOPPED:
        return say(_STOPPED[outcome.stopped])
    return say(" stopped by {what}", what=outcome.stopped)


def _updates(outcome: TrainOutcome) -> str:
    if outcome.updates == outcome.steps and not outcome.skipped_updates:
        return ""
    skipped = say(", {count:,} skipped at an overflow in float16", count=outcome.skipped_updates)
    of = say(
        "{count:,} of the weights in {steps}",
        count=outcome.updates,
        steps=plural(outcome.steps, "step"),
    )
    return of + (skipped if outcome.skipped_updates else "")


def _batch(outcome: TrainOutcome) -> str:
    if not outcome.global_batch_size:
        return ""
    share = outcome.global_batch_size // max(1, outcome.replica_count)
    over = say(" ({share:,} on each of {count} replicas)", share=share, count=outcome.replica_count)
    parameters = say(", {count} parameters", count=significant(outcome.parameter_count))
    return (
        f"{outcome.global_batch_size:,}"
        + (over if outcome.replica_count > 1 else "")
        + (parameters if outcome.parameter_count else "")
    )


def _layout(outcome: TrainOutcome) -> str:
    if outcome.layout is None:
        return ""
    return joined([layout_headline(outcome.layout), *warnings(outcome.layout)])


def _memory(outcome: TrainOutcome) -> str:
    if not outcome.peak_memory_bytes:
        return ""
    return peak_words(outcome.peak_memory_bytes, outcome.memory_kind)


def _finding(one: Finding, width: int, colour: bool) -> str:
    sign, style = _MARKS[one.severity]
    mark = f"{paint(sign, style, colour=colour)} "
    lines = [wrapped(summary_words(one.summary), width=width, first=mark, rest="  ")]
    because, fix = (padded(f"  {name}", _COLUMN) for name in (say("because"), say("fix")))
    rest = " " * _COLUMN
    lines += [
        wrapped(say(": ").join((seen.source, seen.text)), width=width, first=because, rest=rest)
        for seen in one.evidence
    ]
    for step in one.fix:
        if step.text:
            lines.append(wrapped(fix_words(step.text), width=width, first=fix, rest=rest))
        if step.command:
            lines.append(rest + paint(step.command, "cyan", colour=colour))
    return "\n".join(lines)
