"""The page of a look at memory alone: growth, its course, when it is full, and what keeps it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import HOUR_S, format_bytes, significant
from tfdyno.view.choose.sections import Section, section
from tfdyno.view.choose.sentences import Finding
from tfdyno.view.diagnose import findings as diagnose_findings
from tfdyno.view.diagnose.figure_growth import moved_figure, outlook_figure
from tfdyno.view.diagnose.growth_text import (
    TENSORS,
    bytes_range,
    end_words,
    fits_words,
    full_words,
    growth_words,
    hours_words,
    leak_document,
    no_account_words,
)
from tfdyno.view.diagnose.page import page_of, told_finding
from tfdyno.words.base.amounts import capital, listed, plural, short_hours

if TYPE_CHECKING:
    from tfdyno.core.measure.memory_outlook import MemoryOutlook
    from tfdyno.core.measure.step_facts import MemoryCourse
    from tfdyno.view.diagnose.document import DiagnoseReport


def growth_page(told: DiagnoseReport) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript.

    Args:
        told: What came out, with its ``growth``.
    """
    others = told.proven.diagnosis.findings[1:]
    return page_of(
        told,
        leak_document(told),
        answer=answer(told),
        box=box(told),
        others=[told_finding(one, told) for one in others],
        sections=tuple(_section(one, told) for one in told.growth),
        findings=_more(len(others)) if others else None,
        measured=measured(told),
    )


def answer(told: DiagnoseReport) -> str:
    """Say, under the headline, what grows and when it is full, or that nothing does."""
    if not told.growth:
        return "Too few steps were seen to tell how memory moves."
    said = [_growing_sentence(one) for one in told.growth if one.grows]
    flat = [f"{_most(one)} a step in {_whose(one.where)}" for one in told.growth if not one.grows]
    if flat:
        said.append(f"No growth above {listed(flat)}.")
    if fits := fits_words(told):
        said.append(f"The host’s memory: {fits}.")
    return " ".join(said)


def box(told: DiagnoseReport) -> list[tuple[str, str, str]]:
    """Write the fullest memory's numbers first: name, number, and what stands small below."""
    steps = ("Steps", f"{told.facts.steps_seen:,}", "that were looked at")
    if not told.growth:
        return [steps]
    one = min(told.growth, key=_urgency)
    if not one.grows:
        return [("Growth of a step", f"under {_most(one)}", f"in {_whose(one.where)}"), steps]
    rate = one.bytes_per_step
    found = [("Growth of a step", format_bytes(rate.best), bytes_range(rate))]
    if one.full_in_s and one.full_in_steps:
        hours = one.full_in_s.times(1 / HOUR_S)
        until = f"{hours_words(hours)}; {significant(one.full_in_steps.best, 2)} steps"
        found.append(("Full in", short_hours(hours.best), until))
    if one.until_end_bytes is not None and one.where != TENSORS:
        found.append(("The whole training takes", format_bytes(one.until_end_bytes),
                      plural(one.training_steps, "step")))  # fmt: skip
    if one.used_bytes:
        free = f"{format_bytes(one.free_bytes)} free" if one.free_bytes else ""
        found.append(("In use at the end", format_bytes(one.used_bytes), free))
    return found


def measured(told: DiagnoseReport) -> list[tuple[str, str]]:
    """Return how each number came about."""
    rows = diagnose_findings.measured(told)
    slope = (
        "of the steady half of the steps: the median between stretches of them; the interval holds "
        "it 19 times in 20"
    )
    rows += [("Slope", slope)] if told.facts.memory else []
    device = no_account_words(told)
    return [*rows, *([("Device", device)] if device else [])]


def _whose(where: str) -> str:
    names = {"host": "the host’s memory", TENSORS: "the memory of TensorFlow’s tensors on the host"}
    return names.get(where, f"the memory of {where}")


def _most(one: MemoryOutlook) -> str:
    return format_bytes(max(0.0, one.bytes_per_step.high))


def _urgency(one: MemoryOutlook) -> tuple[bool, float]:
    """Return what grows first, and of that what is full first."""
    return not one.grows, one.full_in_s.best if one.full_in_s else math.inf


def _growing_sentence(one: MemoryOutlook) -> str:
    said = f"{capital(_whose(one.where))} grows by {format_bytes(one.bytes_per_step.best)} a step"
    if one.full_in_s:
        said += f" and is full in about {short_hours(one.full_in_s.best / HOUR_S)} at this rate"
    until_end = "" if one.where == TENSORS else end_words(one)
    return f"{said}; {until_end}." if until_end else f"{said}."


def _section(one: MemoryOutlook, told: DiagnoseReport) -> Section:
    name = {"host": "Host", TENSORS: "Tensors"}.get(one.where, one.where)
    whose = _whose(one.where)
    course = _course(one, told)
    moved = moved_figure(course, whose) if course else None
    identifier = f"memory-{one.where.lower().replace(':', '-')}"
    drawn = (moved, outlook_figure(one, whose))
    return section(identifier, name, _finding(one), *drawn, topic=f"Memory: {name}")


def _finding(one: MemoryOutlook) -> Finding:
    whose = _whose(one.where)
    if not one.grows:
        heading = f"Nothing above {_most(one)} a step is seen in {whose}"
    elif one.full_in_s:
        heading = f"{capital(whose)} is full in about {short_hours(one.full_in_s.best / HOUR_S)}"
    else:
        heading = f"{capital(whose)} grows with the steps"
    full, until_end = ("", "") if one.where == TENSORS else (full_words(one), end_words(one))
    said = [growth_words(one), f"full {full}" if one.full_in_s and full else full, until_end]
    if one.suspects:
        said.append(f"what becomes more: {'; '.join(one.suspects)}")
    return Finding(heading=heading, lead=" ".join(f"{capital(each)}." for each in said if each))


def _course(one: MemoryOutlook, told: DiagnoseReport) -> MemoryCourse | None:
    """Return the closest account of the same memory."""
    found = [each for each in told.facts.memory if each.where == one.where]
    return min(found, key=lambda each: each.counted_by != "allocator", default=None)


def _more(count: int) -> Finding:
    reasons = "one more reason" if count == 1 else f"{count} more reasons"
    return Finding(heading=f"Memory grows for {reasons}", lead="What adds most stands first.")
