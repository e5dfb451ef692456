"""The page of the memory of a step: the plan, the course of the step, tensors and layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.view.base.template import page
from tfdyno.view.choose.sections import Panel, Section
from tfdyno.view.choose.sentences import Finding
from tfdyno.view.choose.sharding_text import sentence
from tfdyno.view.draw.svg import Table
from tfdyno.view.memory.document import memory_document
from tfdyno.view.memory.figure_held import held_figure
from tfdyno.view.memory.text import device_words, peak_sentence, pieces_words
from tfdyno.words.base.amounts import gib, of_gib, percent
from tfdyno.words.base.language import joined, say
from tfdyno.words.base.names import named
from tfdyno.words.memory.basis import train_command, typed
from tfdyno.words.memory.plan import (
    base_sentence,
    batch_cell,
    fit_cell,
    learns_by,
    plan_headline,
    ratio_words,
    safe_sentence,
    weighed_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.choose.memory_answer import MemoryAnswer
    from tfdyno.core.choose.memory_map import CardMemory
    from tfdyno.core.choose.memory_plan import MemoryPlan, PlannedOption


def memory_page(answer: MemoryAnswer, version: str) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript.

    Args:
        answer: Of a workload, on one card or several.
        version: Of tfdyno, told at the foot.

    Raises:
        ValueError: The answer is about a log alone.
    """
    if answer.trace is None or not answer.cards:
        raise ValueError("a page needs a workload with a card")
    trace, first = answer.trace, answer.cards[0]
    heads = [plan_headline(one, answer.names[one.gpu]) for one in answer.plans]
    return page(
        "memory",
        memory_document(answer),
        reference=trace.workload.reference,
        setup=(
            trace.title,
            say("batch {batch:,}", batch=first.estimate.batch_size),
            first.estimate.precision,
        ),
        date="",
        headline=(heads or [peak_sentence(first, trace.title, answer.names)])[0].rstrip("."),
        answer=joined(_answers(answer)),
        sections=tuple(_sections(answer)),
        findings=answer.findings,
        notes=tuple(dict.fromkeys(_notes(answer))),
        commands=_commands(answer),
        version=version,
    )


def _answers(answer: MemoryAnswer) -> Iterator[str]:
    title = answer.trace.title if answer.trace else ""
    for number, card in enumerate(answer.cards):
        if answer.plans:
            yield base_sentence(answer.plans[number])
            yield safe_sentence(answer.plans[number])
        elif number == 0:
            yield say("On the card it takes {memory}.", memory=device_words(card))
    yield from (peak_sentence(one, title, answer.names) for one in answer.cards[1:])


def _sections(answer: MemoryAnswer) -> Iterator[Section]:
    if answer.plans:
        panels = tuple(_plan_panel(one, answer.names[one.gpu]) for one in answer.plans)
        yield Section(id="plan", short=say("Plan"), panels=panels)
    title = answer.trace.title if answer.trace else ""
    yield Section(
        id="course",
        short=say("Over the step"),
        panels=tuple(_course_panel(one, title, answer.names) for one in answer.cards),
    )


def _plan_panel(plan: MemoryPlan, card: str) -> Panel:
    rows, weighed = tuple(_row(one, plan) for one in plan.options), weighed_words(plan)
    trained = say("Trains by") if plan.base.option.fine_tune else say("Optimizer")
    headings = (say("Precision"), say("Batch"), say("Computed again"), trained, "GiB",
                say("Nine in ten"),
                say("Time per sample"), say("Fits"), say("Learns differently"))  # fmt: skip
    heading = plan_headline(plan, card).rstrip(".")
    lead = (
        say(
            "{weighed}. Listed is what fits and no other beats in both memory and time.",
            weighed=weighed,
        )
        if rows
        else say("{weighed}, and none fits.", weighed=weighed)
    )
    return Panel(
        topic=say("Plan for {card}", card=card),
        finding=Finding(heading=heading, lead=lead),
        table=Table(headings=headings, rows=rows, text_columns=frozenset((0, 1, 2, 3, 7, 8))),
    )


def _row(one: PlannedOption, plan: MemoryPlan) -> tuple[str, ...]:
    option = one.option
    chosen = plan.chosen is not None and option == plan.chosen.option
    held = option.device_memory_bytes
    return (
        option.precision + (say(" (chosen)") if chosen else ""),
        batch_cell(option),
        say("blocks") if option.remat else "–",
        learns_by(option, plan.base.option) or "–",
        gib(held.best),
        f"{gib(held.low)}–{gib(held.high)}",
        ratio_words(one.time_ratio),
        fit_cell(option),
        say(", ").join(map(named, one.learns_differently)) or "–",
    )


def _course_panel(card: CardMemory, title: str, names: dict[str, str]) -> Panel:
    found = card.map
    one = card.estimate
    layers = Table(
        headings=(say("Layer"), say("Tensors"), say("Size"), say("Share of the peak")),
        rows=tuple(
            (each.layer or say("(no layer)"), f"{each.tensor_count:,}",
             format_bytes(each.held_bytes),
             percent(each.held_bytes / found.peak_bytes))
            for each in found.layers
        ),
    )  # fmt: skip
    memory = of_gib(one.device_memory_bytes.best, one.usable_memory_bytes)
    return Panel(
        topic=say("Over the step on {card}", card=names[one.gpu]),
        finding=Finding(
            heading=peak_sentence(card, title, names).rstrip("."),
            lead=say(
                "The card has to hold {memory}: {held}. {pieces}.",
                memory=memory,
                held=device_words(card),
                pieces=pieces_words(found),
            ),
        ),
        figures=(held_figure(found),),
        folded=(say("What each layer holds at the peak"), layers),
    )


def _notes(answer: MemoryAnswer) -> Iterator[str]:
    if answer.trace:
        yield from answer.trace.warnings
    for card in answer.cards:
        yield from card.estimate.warnings
        yield from card.map.notes
    for plan in answer.plans:
        yield from plan.notes
        yield from (sentence(one, answer.names[plan.gpu]) for one in plan.sharding)
    yield from answer.notes


def _commands(answer: MemoryAnswer) -> list[tuple[str, str]]:
    assert answer.trace is not None
    workload, first = answer.trace.workload, answer.cards[0].estimate
    words = ["--gpu", first.gpu]
    if answer.batch_source == "as asked":
        words += ["--batch-size", str(first.batch_size)]
    if not answer.plans:
        return [(typed("memory", workload, *words, "--plan"), say("Settings that make it fit"))]
    if answer.plans[0].recipe is None:
        return [(typed("advise", workload), say("Cards that hold it"))]
    plan = typed("memory", workload, *words, "--plan", "--output", "fit.toml")
    train = train_command(workload, "fit.toml")
    return [(plan, say("The plan as a recipe")), (train, say("Train by it"))]
