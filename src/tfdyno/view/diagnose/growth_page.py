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
from tfdyno.words.base.language import joined, say
from tfdyno.words.diagnose.told import fact_words

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
        return say("Too few steps were seen to tell how memory moves.")
    said = [_growing_sentence(one) for one in told.growth if one.grows]
    flat = [
        say("{most} a step in {where}", most=_most(one), where=_whose(one.where))
        for one in told.growth
        if not one.grows
    ]
    if flat:
        said.append(say("No growth above {flat}.", flat=listed(flat)))
    if fits := fits_words(told):
        said.append(say("The host’s memory: {fits}.", fits=fits))
    return joined(said)


def box(told: DiagnoseReport) -> list[tuple[str, str, str]]:
    """Write the fullest memory's numbers first: name, number, and what stands small below."""
    steps = (say("Steps"), f"{told.facts.steps_seen:,}", say("that were looked at"))
    if not told.growth:
        return [steps]
    one = min(told.growth, key=_urgency)
    if not one.grows:
        return [
            (
                say("Growth of a step"),
                say("under {most}", most=_most(one)),
                say("in {where}", where=_whose(one.where)),
            ),
            steps,
        ]
    rate = one.bytes_per_step
    found = [(say("Growth of a step"), format_bytes(rate.best), bytes_range(rate))]
    if one.full_in_s and one.full_in_steps:
        hours = one.full_in_s.times(1 / HOUR_S)
        until = say(
            "{hours}; {steps} steps",
            hours=hours_words(hours),
            steps=significant(one.full_in_steps.best, 2),
        )
        found.append((say("Full in"), short_hours(hours.best), until))
    if one.until_end_bytes is not None and one.where != TENSORS:
        found.append(
            (
                say("The whole training takes"),
                format_bytes(one.until_end_bytes),
                plural(one.training_steps, "step"),
            )
        )
    if one.used_bytes:
        free = say("{free} free", free=format_bytes(one.free_bytes)) if one.free_bytes else ""
        found.append((say("In use at the end"), format_bytes(one.used_bytes), free))
    return found


def measured(told: DiagnoseReport) -> list[tuple[str, str]]:
    """Return how each number came about."""
    rows = diagnose_findings.measured(told)
    slope = say(
        "of the steady half of the steps: the median between stretches of them; the "
        "interval holds it 19 times in 20"
    )
    rows += [(say("Slope"), slope)] if told.facts.memory else []
    device = no_account_words(told)
    return [*rows, *([(say("Device"), device)] if device else [])]


def _whose(where: str) -> str:
    names = {
        "host": say("the host’s memory"),
        TENSORS: say("the memory of TensorFlow’s tensors on the host"),
    }
    return names.get(where, say("the memory of {where}", where=where))


def _most(one: MemoryOutlook) -> str:
    return format_bytes(max(0.0, one.bytes_per_step.high))


def _urgency(one: MemoryOutlook) -> tuple[bool, float]:
    """Return what grows first, and of that what is full first."""
    return not one.grows, one.full_in_s.best if one.full_in_s else math.inf


def _growing_sentence(one: MemoryOutlook) -> str:
    said = say(
        "{memory} grows by {best} a step",
        memory=capital(_whose(one.where)),
        best=format_bytes(one.bytes_per_step.best),
    )
    if one.full_in_s:
        said += say(
            " and is full in about {time} at this rate",
            time=short_hours(one.full_in_s.best / HOUR_S),
        )
    until_end = "" if one.where == TENSORS else end_words(one)
    return say("{text}.", text=say("; ").join((said, until_end)) if until_end else said)


def _section(one: MemoryOutlook, told: DiagnoseReport) -> Section:
    name = {"host": say("Host"), TENSORS: say("Tensors||of TensorFlow")}.get(one.where, one.where)
    whose = _whose(one.where)
    course = _course(one, told)
    moved = moved_figure(course, whose) if course else None
    identifier = f"memory-{one.where.lower().replace(':', '-')}"
    drawn = (moved, outlook_figure(one, whose))
    return section(identifier, name, _finding(one), *drawn, topic=say("Memory: {name}", name=name))


def _finding(one: MemoryOutlook) -> Finding:
    whose = _whose(one.where)
    if not one.grows:
        heading = say(
            "Nothing above {most} a step is seen in {memory}", most=_most(one), memory=whose
        )
    elif one.full_in_s:
        heading = say(
            "{memory} is full in about {time}",
            memory=capital(whose),
            time=short_hours(one.full_in_s.best / HOUR_S),
        )
    else:
        heading = say("{memory} grows with the steps", memory=capital(whose))
    full, until_end = ("", "") if one.where == TENSORS else (full_words(one), end_words(one))
    said = [
        growth_words(one),
        say("full {full}", full=full) if one.full_in_s and full else full,
        until_end,
    ]
    if one.suspects:
        said.append(
            say(
                "what becomes more: {suspects}",
                suspects=say("; ").join(map(fact_words, one.suspects)),
            )
        )
    return Finding(
        heading=heading, lead=joined(say("{text}.", text=capital(each)) for each in said if each)
    )


def _course(one: MemoryOutlook, told: DiagnoseReport) -> MemoryCourse | None:
    """Return the closest account of the same memory."""
    found = [each for each in told.facts.memory if each.where == one.where]
    return min(found, key=lambda each: each.counted_by != "allocator", default=None)


def _more(count: int) -> Finding:
    return Finding(
        heading=say("Memory grows for one more reason")
        if count == 1
        else say("Memory grows for {count} more reasons", count=count),
        lead=say("What adds most stands first."),
    )
