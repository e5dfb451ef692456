"""What the hours of a run go to, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import listed, percent, plural, short_hours
from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate, HoursKind, Run
    from tfdyno.core.choose.workload import Validation

A_PERCENT = 0.01
"""What is less of the whole is not told, but for validation."""
PARTS: dict[HoursKind, str] = {
    "data": say_later("waiting for data"),
    "validation": say_later("validation"),
    "checkpoints": say_later("checkpoints"),
    "compile": say_later("compiling"),
    "start": say_later("start of the machine"),
    "interruptions": say_later("interruptions"),
}


def parts_line(candidate: Candidate) -> str:
    """Return what else than training the hours go to, the longest first; empty where nothing does.

    Validation is always told, where some is counted: who reads no word of it adds it again.
    """
    parts = sorted(candidate.hours_parts, key=lambda part: -part.hours.best)
    whole = candidate.hours.best
    told = [
        say(
            "{part} {hours} ({share})",
            part=say(PARTS[part.kind]),
            hours=short_hours(part.hours.best),
            share=_share(part.hours.best / whole),
        )
        for part in parts
        if part.kind in PARTS
        and (part.hours.best >= A_PERCENT * whole or part.kind == "validation")
    ]
    return say("Of that: {told}.", told=listed(told)) if told else ""


def _share(ratio: float) -> str:
    return percent(ratio) if ratio >= A_PERCENT else say("under 1%")


def validation_words(run: Run, found: Validation | None, mode: str) -> str:
    """Return what of the validation is in hours and cost, for the list of assumptions."""
    if mode == "infer":
        return ""
    if run.fits > 1:
        return say("validation as each call of fit has it, at the pace of its forward pass")
    if found and found.samples == 0:
        return say("no validation, as in the script's fit")
    if run.validation_passes:
        often = run.validation_passes == max(1, run.epochs)
        when = (
            say("after each epoch")
            if often
            else say("{times} in all", times=plural(run.validation_passes, "time"))
        )
        return say(
            "validation on {samples} {when}, at the pace of the step's forward pass",
            samples=plural(run.validation_samples, "sample"),
            when=when,
        )
    if found is None:
        why = say("no fit says of what")
    elif run.length == "steps":
        why = say("--steps counts training alone")
    elif found.samples is None:
        why = say("its length cannot be read")
    else:
        why = say("no epoch of the run ends with it")
    return say("validation is not in hours and cost ({why})", why=why)


def unread_validation(found: Validation | None) -> tuple[str, ...]:
    """Return a note where validation data are given whose length cannot be read; else nothing."""
    if found is None or found.samples is not None:
        return ()
    note = say(
        "Validation is not in hours and cost: how long its data are cannot be read; "
        "give fit its validation_steps."
    )
    return (note,)
