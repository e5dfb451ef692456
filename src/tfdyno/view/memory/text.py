"""The memory of a step as terminal text: the answer, its course, its tensors, the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.doctor.finding import Diagnosis
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.view.choose.estimate_text import FITS
from tfdyno.view.choose.sharding_text import sentence, sharding_text
from tfdyno.view.doctor.text import doctor_text
from tfdyno.view.draw.figure_memory import bars_of
from tfdyno.view.memory.figure_held import alive_words, held_name, shape_words
from tfdyno.words.base.amounts import gib, of_gib, percent, plural
from tfdyno.words.base.language import say, spoken
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import brief, fit_state
from tfdyno.words.memory.basis import proof, standing, train_command
from tfdyno.words.memory.plan import (
    base_sentence,
    batch_cell,
    fit_cell,
    learns_by,
    plan_headline,
    ratio_words,
    safe_sentence,
    shown_options,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.memory_answer import MemoryAnswer
    from tfdyno.core.choose.memory_map import AllocatorNeed, CardMemory, MemoryMap
    from tfdyno.core.choose.memory_plan import MemoryPlan, PlannedOption

FEW, MANY = 10, 40
"""Rows of a table, without and with --verbose."""
_MOST_OPTIONS = 8
_LEAST_SHARE = 0.001
"""The share of the peak below which layers are not listed."""


def memory_text(
    answer: MemoryAnswer,
    *,
    written: str = "",
    verbose: bool = False,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return every card in turn, its plan first; then the findings, those of a log among them.

    Args:
        answer: What was found.
        written: File of the plan's recipe; empty: none was written.
        verbose: Whether to list 40 tensors and layers instead of 10.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    lay = _Layout(answer, MANY if verbose else FEW, width, colour)
    blocks: list[str] = []
    for number, card in enumerate(answer.cards):
        if answer.plans:
            blocks += lay.plan(answer.plans[number])
        same = number > 0 and card.map.tensors == answer.cards[number - 1].map.tensors
        blocks += lay.head(card) if same else lay.card(card)
    blocks += [lay.told(), lay.findings(), lay.next_step(written)]
    return "\n\n".join(block for block in blocks if block)


class _Layout:
    """How wide, how much, in which colours."""

    def __init__(self, answer: MemoryAnswer, most: int, width: int, colour: bool) -> None:
        self.answer, self.names = answer, answer.names
        self.title = answer.trace.title if answer.trace else ""
        self.most, self.width, self.colour = most, width, colour

    def told(self) -> str:
        """Return what went another way, one sentence each."""
        answer = self.answer
        told = list(answer.trace.warnings) if answer.trace else []
        for card in answer.cards:
            told += [*card.estimate.warnings, *card.map.notes]
        told += [*answer.notes, log_sentence(answer)]
        lines = [wrapped(one, width=self.width) for one in dict.fromkeys(told) if one]
        return "\n".join(lines)

    def findings(self) -> str:
        """Return all that was found to be wrong, in the doctor's form."""
        answer = self.answer
        if not answer.findings:
            return ""
        diagnosis = replace(answer.log or Diagnosis(findings=()), findings=answer.findings)
        return doctor_text(
            diagnosis, exit_code=answer.exit_code, from_log=True, language=spoken(),
            width=self.width, colour=self.colour,
        )  # fmt: skip

    def next_step(self, written: str) -> str:
        """Return how to train by the recipe that was written."""
        trace = self.answer.trace
        if not written or trace is None or not any(one.recipe for one in self.answer.plans):
            return ""
        command = train_command(trace.workload, written)
        return say("Written: {written}. Next: {command}", written=written, command=command)

    def plan(self, plan: MemoryPlan) -> list[str]:
        """Return the answer, the options, and what to know of them."""
        head = say(
            "{title}: {answer}",
            title=self.title,
            answer=plan_headline(plan, brief(self.names[plan.gpu])),
        )
        told = [base_sentence(plan), safe_sentence(plan), *plan.notes]
        shared = ""
        if plan.chosen:
            told += [sentence(one, self.names[plan.gpu]) for one in plan.sharding]
        else:
            shared = sharding_text(plan.sharding, self.names, width=self.width, colour=self.colour)
        return [
            self._bold(head),
            self._options(plan),
            "\n".join(wrapped(one, width=self.width, first="- ", rest="  ") for one in told if one),
            shared,
        ]

    def head(self, card: CardMemory) -> list[str]:
        """Return what the step holds on the card, in a sentence."""
        return [self._bold(peak_sentence(card, self.title, self.names))]

    def card(self, card: CardMemory) -> list[str]:
        """Return the same with its course, its tensors and its layers."""
        found = card.map
        course = bars_of([one.live_bytes for one in found.moments], min(60, self.width - 4))
        facts = pairs(
            [
                (say("at the peak"), _parts(found)),
                (say("on the card"), device_words(card)),
                (say("in one piece"), pieces_words(found)),
            ],
            width=self.width,
        )
        return [*self.head(card), facts, f"  {course}", self._tensors(found), self._layers(found)]

    def _options(self, plan: MemoryPlan) -> str:
        shown = shown_options(plan, _MOST_OPTIONS)
        if not shown:
            return ""
        headers = (
            "",
            say("precision"),
            say("batch"),
            say("again"),
            say("trains by") if plan.base.option.fine_tune else say("optimizer"),
            "GiB",
            say("time per sample"),
            say("fits"),
        )
        rows = [self._option(one, plan) for one in shown]
        body = table(headers, rows, align="<<<<<>><", width=self.width, spare=(4, 3),
                     colour=self.colour)  # fmt: skip
        left = len(plan.options) - len(shown)
        return f"{body}\n{say('  and {count} more in --json', count=left)}" if left else body

    def _option(self, one: PlannedOption, plan: MemoryPlan) -> list[str]:
        option = one.option
        marked = plan.chosen is not None and option == plan.chosen.option
        return [
            "*" if marked else "",
            option.precision,
            batch_cell(option),
            say("blocks") if option.remat else "",
            learns_by(option, plan.base.option),
            gib(option.device_memory_bytes.best),
            ratio_words(one.time_ratio),
            fit_cell(option),
        ]

    def _tensors(self, found: MemoryMap) -> str:
        rows = [
            (f"  {held_name(one)}", named(one.part), shape_words(one), one.dtype,
             format_bytes(one.held_bytes), alive_words(one))
            for one in found.tensors[: self.most]
        ]  # fmt: skip
        headers = (
            say("  largest at the peak"),
            say("part"),
            say("shape"),
            say("type"),
            say("size"),
            say("alive"),
        )
        return table(headers, rows, align="<<<<>>", width=self.width, elastic=0, spare=(5, 3, 2),
                     colour=self.colour)  # fmt: skip

    def _layers(self, found: MemoryMap) -> str:
        rows = [
            (f"  {one.layer or say('(no layer)')}", f"{one.tensor_count:,}",
             format_bytes(one.held_bytes), percent(one.held_bytes / found.peak_bytes))
            for one in found.layers[: self.most]
            if one.held_bytes >= _LEAST_SHARE * found.peak_bytes
        ]  # fmt: skip
        headers = (say("  by layer"), say("tensors"), say("size"), say("share"))
        return table(headers, rows, align="<>>>", width=self.width, elastic=0, colour=self.colour)

    def _bold(self, text: str) -> str:
        return paint(wrapped(text, width=self.width), "bold", colour=self.colour)


def peak_sentence(card: CardMemory, title: str, names: Mapping[str, str]) -> str:
    """Return what the step holds at its peak, when, and whether that fits the card."""
    one, found = card.estimate, card.map
    memory = of_gib(one.device_memory_bytes.best, one.usable_memory_bytes)
    return say(
        "{title} at batch {batch:,} on {card} holds {peak} at its "
        "peak, after {share} of its kernels{where}. {fits}: {memory}{proof}.",
        title=title,
        batch=one.batch_size,
        card=brief(names[one.gpu]),
        peak=format_bytes(found.peak_bytes, 3),
        share=percent(found.peak_share),
        where=_where(found),
        fits=say(FITS[fit_state(one)]),
        memory=memory,
        proof=proof(one),
    )


def _where(found: MemoryMap) -> str:
    phase = {"forward": say("forward pass"), "backward": say("backward pass"),
             "update": named("update"),
             "recompute": say("second forward pass")}[found.peak_phase]  # fmt: skip
    of = say(" of {layer}", layer=found.peak_layer) if found.peak_layer else ""
    return say(", in the {phase}{of}", phase=phase, of=of)


def _parts(found: MemoryMap) -> str:
    largest = sorted(found.parts_bytes.items(), key=lambda item: -item[1])
    parts = say(", ").join(f"{named(name)} {format_bytes(size, 3)}" for name, size in largest)
    return say("{parts} ({tensors})", parts=parts, tensors=plural(found.held_count, "tensor"))


def device_words(card: CardMemory) -> str:
    """Return the range of what a card has to hold, and what stands behind it."""
    one = card.estimate
    low, high = gib(one.device_memory_bytes.low), gib(one.device_memory_bytes.high)
    route = say("compiled") if one.made_by["memory"] == "exact" else say("computed")
    return say(
        "{low}–{high} GiB with CUDA's context, workspaces and the allocator's "
        "slack ({route}, {standing})",
        low=low,
        high=high,
        route=route,
        standing=standing(one),
    )


def pieces_words(found: MemoryMap) -> str:
    """Return what has to lie together, and what lies apart."""
    if found.allocator is None:
        return say(
            "XLA asks for {size} of temporaries as one piece: memory that "
            "is free in fragments does not serve it",
            size=format_bytes(found.temporary_bytes, 3),
        )
    return fragment_words(found.allocator)


def fragment_words(need: AllocatorNeed) -> str:
    """Return what TensorFlow's allocator makes of one step."""
    largest = say(
        "the largest request is {size}",
        size=format_bytes(need.largest_request_bytes, 3),
    )
    if need.failed_bytes:
        free, piece = format_bytes(need.free_bytes, 3), format_bytes(need.largest_free_bytes, 3)
        lost = say("in fragments") if need.is_fragmented else say("too little")
        return say(
            "{size} find no piece: {free} are free, {lost}, the largest piece "
            "{piece}; {largest} (one step replayed by the allocator's rules)",
            size=format_bytes(need.failed_bytes, 3),
            free=free,
            lost=lost,
            piece=piece,
            largest=largest,
        )
    share = percent(need.fragment_bytes / max(1.0, need.footprint_bytes))
    return say(
        "{used} in use at most, {fragments} more ({share}) lie "
        "in fragments; {largest} (one step replayed by the allocator's rules, from "
        "an empty pool)",
        used=format_bytes(need.in_use_peak_bytes, 3),
        fragments=format_bytes(need.fragment_bytes, 3),
        share=share,
        largest=largest,
    )


def log_sentence(answer: MemoryAnswer) -> str:
    """Return what the log held, beside what is estimated of the workload; empty without both."""
    oom = answer.oom
    if oom is None or not answer.cards or not oom.in_use_bytes:
        return ""
    held = answer.cards[0].estimate.device_memory_bytes
    limit = say(" of {limit}", limit=format_bytes(oom.limit_bytes, 3)) if oom.limit_bytes else ""
    return say(
        "In the log {used}{limit} were in use when {asked} more "
        "were asked for; the estimate of this workload is {held} GiB "
        "({low}–{high}).",
        used=format_bytes(oom.in_use_bytes, 3),
        limit=limit,
        asked=format_bytes(oom.requested_bytes, 3),
        held=gib(held.best),
        low=gib(held.low),
        high=gib(held.high),
    )
