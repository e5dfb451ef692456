"""A tuning as terminal text: the answer first, its proof, the trials, what was not run and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.view.base.text import WIDTH, block, padded, paint, shown_width, wrapped
from tfdyno.words.base.language import say
from tfdyno.words.train.tune import (
    backend_option,
    batch_warning,
    changes_words,
    count_words,
    headline,
    losses_warning,
    status_words,
)
from tfdyno.words.train.tune_notes import device_name_words, note_words, reason_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.train.tuning import Trial, Tuning

MOST_TRIALS = 12
MOST_REASONS = 8


def tune_text(
    told: Tuning,
    *,
    folder: str = "",
    files: tuple[str, ...] = (),
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return the whole answer.

    Args:
        told: What came out.
        folder: Of the study.
        files: That were written.
        width: Columns of the screen.
        colour: Whether to print colours; they only repeat what words say.
    """
    head = wrapped(headline(told), width=width)
    answer = "\n".join(paint(line, "bold", colour=colour) for line in head.split("\n"))
    device = device_name_words(told.device_name)
    on_jax = say("Keras on JAX") if told.backend == "jax" else ""
    about = say(", ||clauses").join(filter(None, (told.title, on_jax, device)))
    blocks = [
        "\n".join(filter(None, (answer, wrapped(about, width=width) if about else ""))),
        _summary(told, folder, files, width, colour),
        _measured(told, width, colour),
        _planned(told, width, colour),
        _unrun(told, width),
        _legend(told, width),
        _notes(told, width),
    ]
    return "\n\n".join(filter(None, blocks))


def _notes(told: Tuning, width: int) -> str:
    said = [note_words(one, told.trials) for one in told.notes]
    return "\n".join(block("" if at else say("notes"), one, width) for at, one in enumerate(said))


def _summary(told: Tuning, folder: str, files: tuple[str, ...], width: int, colour: bool) -> str:
    lines = []
    if told.proof:
        style = "green" if told.proof.kept else "yellow"
        reason = reason_words(told.proof.reason)
        lines.append(block(say("proof"), reason, width, style=style, colour=colour))
    for warning in filter(None, (batch_warning(told), losses_warning(told))):
        lines.append(block(say("warning"), warning, width, style="yellow", colour=colour))
    lines.append(block(say("trials"), count_words(told), width))
    if told.spread_ratio:
        text = say("{spread:.1%} from run to run of the same trial", spread=told.spread_ratio)
        lines.append(block(say("noise"), text, width))
    if files:
        lines.append(block(say("wrote"), ", ".join(files), width))
    if told.recipe != told.start and folder and not told.planned_for:
        command = f"tfdyno train {told.reference}{backend_option(told)} --recipe {folder}"
        lines.append(block(say("next"), command, width))
    return "\n".join(lines)


def _measured(told: Tuning, width: int, colour: bool) -> str:
    """Return the trials that have a throughput, the fastest first."""
    ranked = sorted(
        (one for one in told.trials if one.samples_per_s and one.status != "same"),
        key=lambda one: -one.samples_per_s,
    )
    if not ranked:
        return ""
    rows = [(str(one.number), significant(one.samples_per_s), _interval(one), _what(one))
            for one in ranked[:MOST_TRIALS]]  # fmt: skip
    sure = say("{sure:.0%} interval", sure=told.confidence_ratio)
    heads = (say("trial"), say("samples/s"), sure, say("recipe"))
    lines = _table(heads, rows, width, colour)
    more = len(ranked) - MOST_TRIALS
    return lines + (say("\n… and {count} slower ones", count=more) if more > 0 else "")


def _planned(told: Tuning, width: int, colour: bool) -> str:
    planned = [one for one in told.trials if one.status == "planned"]
    if not planned:
        return ""
    rows = []
    for one in planned[: 2 * MOST_TRIALS]:
        rate = one.estimate.samples_per_s if one.estimate else None
        rows.append(
            (
                significant(rate.best) if rate else say("unknown"),
                f"{significant(rate.low)}–{significant(rate.high)}" if rate else "",
                _what(one),
            )
        )
    lines = _table((say("samples/s"), say("estimated"), say("recipe")), rows, width, colour)
    more = len(planned) - 2 * MOST_TRIALS
    return lines + (say("\n… and {count} more", count=more) if more > 0 else "")


def _unrun(told: Tuning, width: int) -> str:
    """Return those that need no run or failed, with the reason of each."""
    odd = [one for one in told.trials if one.status in ("not_fit", "hopeless", "failed")]
    lines = [
        block(say("trial {number}", number=one.number), _why(one), width)
        for one in odd[:MOST_REASONS]
    ]
    if len(odd) > MOST_REASONS:
        more = say("… and {count} more, in --json", count=len(odd) - MOST_REASONS)
        lines.append(block("", more, width))
    return "\n".join(lines)


def _legend(told: Tuning, width: int) -> str:
    if not any(one.changes_batch for one in told.trials):
        return ""
    text = say("changes the samples of an update, and with them what is learned")
    return block("*", text, width)


def _why(one: Trial) -> str:
    return say(
        "{status}: {what}. {reason}",
        status=status_words(one.status),
        what=_what(one),
        reason=reason_words(one.reason),
    )


def _what(one: Trial) -> str:
    return ("* " if one.changes_batch else "") + changes_words(one)


def _interval(one: Trial) -> str:
    low, high = one.interval_per_s
    if one.status == "pruned":
        return say("ended early")
    return f"{significant(low)}–{significant(high)}" if high else ""


def _table(
    heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], width: int, colour: bool
) -> str:
    """Return columns to the right, the last to the left and filled: no setting is cut off."""
    sizes = [max(shown_width(row[at]) for row in (heads, *rows)) for at in range(len(heads) - 1)]
    lines = []
    for row in (heads, *rows):
        cells = (padded(*one, ">") for one in zip(row[:-1], sizes, strict=True))
        first = "".join(f"{cell}  " for cell in cells)
        rest = " " * min(shown_width(first), width // 2)
        lines.append(wrapped(row[-1], width=width, first=first, rest=rest))
    return "\n".join([paint(lines[0], "dim", colour=colour), *lines[1:]])
