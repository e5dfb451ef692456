"""What the hours of a run go to, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import listed, percent, plural, short_hours

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate, HoursKind, Run
    from tfdyno.core.choose.workload import Validation

A_PERCENT = 0.01
"""What is less of the whole is not told, but for validation."""
PARTS: dict[HoursKind, str] = {
    "data": "waiting for data",
    "validation": "validation",
    "checkpoints": "checkpoints",
    "compile": "compiling",
    "start": "start of the machine",
    "interruptions": "interruptions",
}


def parts_line(candidate: Candidate) -> str:
    """Return what else than training the hours go to, the longest first; empty where nothing does.

    Validation is always told, where some is counted: who reads no word of it adds it again.
    """
    parts = sorted(candidate.hours_parts, key=lambda part: -part.hours.best)
    whole = candidate.hours.best
    told = [
        f"{PARTS[part.kind]} {short_hours(part.hours.best)} ({_share(part.hours.best / whole)})"
        for part in parts
        if part.kind in PARTS
        and (part.hours.best >= A_PERCENT * whole or part.kind == "validation")
    ]
    return f"Of that: {listed(told)}." if told else ""


def _share(ratio: float) -> str:
    return percent(ratio) if ratio >= A_PERCENT else "under 1%"


def validation_words(run: Run, found: Validation | None, mode: str) -> str:
    """Return what of the validation is in hours and cost, for the list of assumptions."""
    if mode == "infer":
        return ""
    if found and found.samples == 0:
        return "no validation, as in the script's fit"
    if run.validation_passes:
        often = run.validation_passes == max(1, run.epochs)
        when = "after each epoch" if often else f"{plural(run.validation_passes, 'time')} in all"
        return (
            f"validation on {plural(run.validation_samples, 'sample')} {when}, at the pace of the "
            "step's forward pass"
        )
    if found is None:
        why = "no fit says of what"
    elif run.length == "steps":
        why = "--steps counts training alone"
    elif found.samples is None:
        why = "its length cannot be read"
    else:
        why = "no epoch of the run ends with it"
    return f"validation is not in hours and cost ({why})"
