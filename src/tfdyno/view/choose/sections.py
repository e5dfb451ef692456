"""The sections of the page that hold evidence: what each found, and the figures that show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.view.choose import cards, figures, scale_out_text, sentences, step_sentences
from tfdyno.view.choose.explanation_table import explanation_table, explanation_title
from tfdyno.view.choose.figure_cost import cost_figure, frontier
from tfdyno.view.choose.figure_roofline import roofline_figure
from tfdyno.view.choose.figure_scale_out import scale_out_figure
from tfdyno.view.choose.sentences import Finding
from tfdyno.view.draw.figure_memory import live_figure
from tfdyno.view.draw.layers import group_layers
from tfdyno.view.draw.svg import Figure, Table
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.advice import Advice, Candidate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program

_CARDS_IN_A_FIGURE = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What was found for one choice of card, and its evidence."""

    topic: str
    finding: Finding
    choice: str = ""
    """Name of the card that the reader may choose; empty where there is no choice."""
    figures: tuple[Figure, ...] = ()
    table: Table | None = None
    folded: tuple[str, Table] | None = None
    """A title, and the table that opens under it."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page with one panel, or one for each card; the first is shown."""

    id: str
    short: str
    """Its name in the navigation."""
    panels: tuple[Panel, ...]


def section(
    id: str,
    short: str,
    finding: Finding,
    *figures: Figure | None,
    topic: str = "",
    table: Table | None = None,
) -> Section:
    """Return a section with one panel, which without a topic is called as in the navigation."""
    panel = Panel(topic=topic or short, finding=finding, figures=_drawn(*figures), table=table)
    return Section(id=id, short=short, panels=(panel,))


def evidence(
    advice: Advice, best: Candidate | None, gpus: Mapping[str, Gpu], program: Program
) -> tuple[Section, ...]:
    """Return all sections with a finding and figures; those about one card need a candidate."""
    found = sentences.cost(advice, frontier(advice))
    cost = section("cost", say("Cost and time"), found, cost_figure(advice))
    if best is None:
        return (cost,)
    chosen = _choices(advice, best)
    forward = [kernel.layer for kernel in program.kernels if kernel.phase == "forward"]
    rooflines = tuple(_roofline(card, gpus) for card in chosen)
    layers = tuple(_layers(card, forward) for card in chosen)
    return (
        cost,
        Section(id="memory", short=say("Memory"), panels=(_memory(advice, best, gpus),)),
        Section(id="terms", short=say("Bottleneck"), panels=(_terms(advice, best),)),
        *_scaling(advice, gpus),
        Section(id="roofline", short=say("Roofline"), panels=rooflines),
        Section(id="layers", short=say("Layers"), panels=layers),
        section(
            "sure", say("How sure"), sentences.sure(advice, best),
            table=figures.certainty_table(cards.shown_cards(advice, _CARDS_IN_A_FIGURE)),
        ),
    )  # fmt: skip


def _choices(advice: Advice, best: Candidate) -> list[Candidate]:
    """Return the recommended card and those of the other picks, each once."""
    found = {(best.gpu, best.count): best}
    for pick in advice.picks:
        found.setdefault((pick.candidate.gpu, pick.candidate.count), pick.candidate)
    return list(found.values())


def _memory(advice: Advice, best: Candidate, gpus: Mapping[str, Gpu]) -> Panel:
    by_size = cards.memory_cards(advice, _CARDS_IN_A_FIGURE)
    parts = figures.parts_figure(best.estimate)
    return Panel(
        topic=say("Memory"),
        finding=step_sentences.memory(advice, best, gpus),
        figures=_drawn(parts, live_figure(best.estimate), figures.memory_figure(by_size, best)),
    )


def _terms(advice: Advice, best: Candidate) -> Panel:
    shown = cards.shown_cards(advice, _CARDS_IN_A_FIGURE)
    return Panel(
        topic=say("What holds each card back"),
        finding=step_sentences.terms(shown),
        figures=_drawn(figures.terms_figure(shown, best)),
        note=say(
            "Right: best estimate of one step and, in brackets, its 9-in-10 range. "
            "Causes overlap in time, so their shares are of their sum."
        ),
    )


def _scaling(advice: Advice, gpus: Mapping[str, Gpu]) -> tuple[Section, ...]:
    """Return what more of the recommended card bring; no section where that is not known."""
    found = []
    for series in advice.scaling:
        name = gpus[series.gpu].name if series.gpu in gpus else series.gpu
        heading = scale_out_text.sentence(series, name).rstrip(".")
        finding = Finding(heading, scale_out_text.assumed(series))
        drawn = scale_out_figure(series, name)
        found.append(section("scaling", say("Several GPUs"), finding, drawn))
    return tuple(found)


def _roofline(card: Candidate, gpus: Mapping[str, Gpu]) -> Panel:
    gpu = gpus.get(card.gpu)
    return Panel(
        topic=say("Roofline, {card}", card=cards.card_in_words(card)),
        choice=cards.card_name(card),
        finding=step_sentences.roofline(card.estimate),
        figures=_drawn(roofline_figure(card.estimate, gpu) if gpu else None),
        note=step_sentences.coverage(card.estimate),
    )


def _layers(card: Candidate, order: Sequence[str]) -> Panel:
    groups = group_layers(card.estimate.layers, order=order)
    why = explanation_table(card.estimate)
    return Panel(
        topic=say("Where the time goes, {card}", card=cards.card_in_words(card)),
        choice=cards.card_name(card),
        finding=step_sentences.layers(groups),
        figures=_drawn(figures.layers_figure(groups, card.estimate)),
        folded=(explanation_title(card.estimate), why) if why else None,
    )


def _drawn(*found: Figure | None) -> tuple[Figure, ...]:
    return tuple(figure for figure in found if figure is not None)
