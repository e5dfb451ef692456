"""A training as terminal text: what was learned in the first line, then where it is and on what."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.core.train.training import NAN_LOSS, NAN_WEIGHTS
from tfdyno.view.base.text import WIDTH, paint, pairs, wrapped
from tfdyno.view.train.layout_text import headline as layout_headline
from tfdyno.view.train.layout_text import warnings
from tfdyno.view.train.progress import named_metrics
from tfdyno.words.base.amounts import plural
from tfdyno.words.bench.measurement import (
    device_words,
    environment_words,
    peak_words,
    recipe_words,
    seconds_words,
)

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.train.training import TrainOutcome
    from tfdyno.view.train.document import TrainReport

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
        blocks.append(f"Go on with:\n  {command}")
    return "\n\n".join(block for block in blocks if block)


def headline(told: TrainReport) -> str:
    """Say what was learned, in how many epochs and steps, how long it took and how fast it was."""
    outcome = told.outcome
    name = PurePath(told.reference.partition(":")[0]).name or told.reference
    name = told.reference if told.reference.startswith(("task:", "keras:")) else name
    learned = metrics_words(outcome)
    length = f"after {plural(outcome.epochs, 'epoch')} ({plural(outcome.steps, 'step')})"
    if not outcome.epochs:
        length = f"after {plural(outcome.steps, 'step')}"
    has_run = outcome.samples_per_s > 0  # else it was finished before
    spent = f"in {seconds_words(outcome.seconds_s)}" if has_run else ""
    rate = f", {significant(outcome.samples_per_s)} samples/s" if has_run else ""
    head = f"{name}{_stopped(outcome)}{':' if learned else ''}"
    return f"{' '.join(filter(None, (head, learned, length, spent)))}{rate}."


def metrics_words(outcome: TrainOutcome) -> str:
    """Return the metrics of the last epoch: the loss first, those of the validation last."""
    last = {name: values[-1] for name, values in outcome.history.items() if values}
    return ", ".join(named_metrics(last))


def facts(told: TrainReport) -> list[tuple[str, str]]:
    """List where everything is, and what the numbers rest on; empty words: nothing is known."""
    outcome = told.outcome
    kept = plural(len(outcome.checkpoints), "checkpoint")
    newest = PurePath(outcome.checkpoints[-1]).name if outcome.checkpoints else ""
    resumed = PurePath(outcome.resumed_from).stem if outcome.resumed_from else ""
    return [
        ("output", told.output),
        ("model", outcome.model_path),
        ("checkpoints", f"{kept}, the newest {newest}" if newest else ""),
        ("went on", f"from {resumed}" if resumed else ""),
        ("updates", _updates(outcome)),
        ("batch", _batch(outcome)),
        ("layout", _layout(outcome)),
        ("memory", _memory(outcome)),
        ("settings", recipe_words(told.recipe)),
        ("took", "; ".join(f"{a.name}: {a.reported}" for a in outcome.applied)),
        ("notes", " ".join(f"{note.rstrip('.')}." for note in outcome.notes)),
        ("where", f"{device_words(told.environment)}; {environment_words(told.environment)}"),
    ]


def _stopped(outcome: TrainOutcome) -> str:
    if not outcome.stopped:
        return ""
    by = {
        "SIGTERM": "when asked to (SIGTERM or Ctrl-C)",
        NAN_LOSS: "at a NaN loss",
        NAN_WEIGHTS: "at weights that are NaN",
    }
    return f" stopped {by.get(outcome.stopped, f'by {outcome.stopped}')}"


def _updates(outcome: TrainOutcome) -> str:
    if outcome.updates == outcome.steps and not outcome.skipped_updates:
        return ""
    skipped = f", {outcome.skipped_updates:,} skipped at an overflow in float16"
    of = f"{outcome.updates:,} of the weights in {plural(outcome.steps, 'step')}"
    return of + (skipped if outcome.skipped_updates else "")


def _batch(outcome: TrainOutcome) -> str:
    if not outcome.global_batch_size:
        return ""
    share = outcome.global_batch_size // max(1, outcome.replica_count)
    over = f" ({share:,} on each of {outcome.replica_count} replicas)"
    parameters = f", {significant(outcome.parameter_count)} parameters"
    return (
        f"{outcome.global_batch_size:,}"
        + (over if outcome.replica_count > 1 else "")
        + (parameters if outcome.parameter_count else "")
    )


def _layout(outcome: TrainOutcome) -> str:
    if outcome.layout is None:
        return ""
    return " ".join([layout_headline(outcome.layout), *warnings(outcome.layout)])


def _memory(outcome: TrainOutcome) -> str:
    if not outcome.peak_memory_bytes:
        return ""
    return peak_words(outcome.peak_memory_bytes, outcome.memory_kind)


def _finding(one: Finding, width: int, colour: bool) -> str:
    sign, style = _MARKS[one.severity]
    mark = f"{paint(sign, style, colour=colour)} "
    lines = [wrapped(one.summary, width=width, first=mark, rest="  ")]
    lines += [
        wrapped(f"{seen.source}: {seen.text}", width=width, first="  because  ", rest=" " * 11)
        for seen in one.evidence
    ]
    for step in one.fix:
        if step.text:
            lines.append(wrapped(step.text, width=width, first="  fix      ", rest=" " * 11))
        if step.command:
            lines.append(" " * 11 + paint(step.command, "cyan", colour=colour))
    return "\n".join(lines)
