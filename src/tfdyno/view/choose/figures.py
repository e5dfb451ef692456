"""Bar figures of the page: memory by part, memory by card, causes of a step, time by layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import GIB
from tfdyno.view.choose.cards import card_name, fits, same
from tfdyno.view.draw.bars import BarChart, Row, Segment, absolute, bar_figure
from tfdyno.view.draw.svg import Figure, Key, Table
from tfdyno.words.base import amounts
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose import kernels
from tfdyno.words.choose.advice import fit_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Candidate
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.view.draw.layers import LayerGroup

PARTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (say_later("weights, gradients, optimizer"), "c4", ("weights", "gradients", "optimizer")),
    (say_later("activations"), "c1", ("activations",)),
    (say_later("inputs"), "c2", ("inputs",)),
    (say_later("workspace"), "c3", ("workspace",)),
    (say_later("CUDA context and allocator"), "c5", ("context", "allocator")),
)
"""Words, colour and keys of ``memory_parts_bytes`` in stacking order; unknown keys come last."""
TERMS = (
    ("compute", "c1"),
    ("memory", "c3"),
    ("launch", "c5"),
    ("communication", "c4"),
    ("input", "c2"),
)
PHASES = (("forward", "c1"), ("backward", "c3"), ("recompute", "c4"), ("update", "c2"))
_AXIS_END = 1.5
_SMALL_RATIO = 0.005
"""Parts of memory below this have no bar of their own."""


def grouped_parts(estimate: Estimate) -> list[tuple[str, str, float]]:
    """Return words, colour and bytes of each non-empty part of the memory, as stacked."""
    left = dict(estimate.memory_parts_bytes)
    found = []
    for words, colour, names in PARTS:
        size = sum(left.pop(name, 0.0) for name in names)
        if size > 0:
            found.append((say(words), colour, size))
    rest = sum(left.values())
    return [*found, (say("other"), "c5", rest)] if rest > 0 else found


def parts_figure(estimate: Estimate) -> Figure | None:
    """Return memory on the recommended card by part, absolute; ``None`` when no part is known."""
    sizes = {name: size for name, size in estimate.memory_parts_bytes.items() if size > 0}
    if not sizes:
        return None
    total = sum(sizes.values())
    colours = {name: colour for _, colour, names in PARTS for name in names}
    rows = tuple(
        Row(
            name=_part_name(name),
            number=f"{amounts.gib_part(size)} GiB · {amounts.percent(size / total)}",
            segments=(
                Segment(
                    variable=colours.get(name, "c5"),
                    value=size / GIB,
                    tip=f"{named(name)}: {amounts.gib(size)} GiB",
                ),
            ),
        )
        for name, size in sorted(sizes.items(), key=lambda item: -item[1])
        if size > _SMALL_RATIO * total
    )
    chart = absolute(rows, "GiB")
    parts = [f"{row.name} {row.number}" for row in rows]
    return bar_figure(
        chart,
        label=say(
            "Bars of the memory that the step holds, {total} GiB in all: {parts}.",
            total=amounts.gib(total),
            parts=amounts.listed(parts),
        ),
        table=Table(
            headings=(say("Part"), "GiB", say("Share")),
            rows=tuple((row.name, *row.number.split(" GiB · ")) for row in rows),
        ),
        caption=say("What fills the card at batch {batch:,}", batch=estimate.batch_size),
    )


def _part_name(name: str) -> str:
    longer = {"context": say("CUDA context"), "optimizer": say("optimizer state")}
    return longer.get(name) or named(name)


def memory_figure(cards: Sequence[Candidate], best: Candidate) -> Figure | None:
    """Return memory as a share of each card's; ``None`` without cards."""
    known = [card for card in cards if card.estimate.usable_memory_bytes > 0]
    if not known:
        return None
    rows = tuple(_memory_row(card, strong=card.gpu == best.gpu) for card in known)
    end = _axis_end(known)
    chart = BarChart(
        rows=rows,
        end=end,
        ticks=tuple(step * 0.25 for step in range(math.floor(end * 4 + 1e-9) + 1)),
        tick_format="%",
        axis_title=say("share of the card’s usable memory"),
        track=1.0,
        limit=1.0,
        limit_text=say("card full"),
    )
    found: dict[str, str] = {}
    for card in known:
        found |= {words: colour for words, colour, _ in grouped_parts(card.estimate)}
    parts = [say(words) for words, _, _ in PARTS]
    keys = [Key(text=words, variable=found[words]) for words in parts if words in found]
    return bar_figure(
        chart,
        label=say(
            "Bars of memory use per card as a share of its usable memory: {cards}.",
            cards=amounts.listed([f"{row.name} {row.number}" for row in rows]),
        ),
        key=(*keys, Key(text=say("9 times in 10"), variable="ink", mark="line")),
        table=_memory_table(known),
        caption=say("The model on one card of each size"),
    )


def _axis_end(cards: Sequence[Candidate]) -> float:
    most = max(c.estimate.device_memory_bytes.high / c.estimate.usable_memory_bytes for c in cards)
    return 1.0 if most <= 1.0 else _AXIS_END


def _memory_row(card: Candidate, *, strong: bool) -> Row:
    estimate = card.estimate
    usable, needed = estimate.usable_memory_bytes, estimate.device_memory_bytes
    segments = tuple(
        Segment(
            variable=colour,
            value=size / usable,
            tip=say(
                "{card}, {part}: {size} GiB, {share} of the card",
                card=card.gpu_name,
                part=words,
                size=amounts.gib(size),
                share=amounts.percent(size / usable),
            ),
        )
        for words, colour, size in grouped_parts(estimate)
    )
    number = say(
        "{used} of {usable} GiB", used=amounts.gib(needed.best), usable=amounts.gib(usable)
    )
    if not fits(card):
        number += say(" · may not fit") if estimate.fits == "may not" else say(" · too small")
    elif estimate.fits == "unverified":
        number += say(" · not compiled")
    return Row(
        name=card_name(card),
        number=say(
            "{number} · max batch {batch}",
            number=number,
            batch=amounts.batch_words(estimate.max_batch_size),
        ),
        segments=segments,
        low=needed.low / usable,
        high=needed.high / usable,
        strong=strong,
        bad=not fits(card) and estimate.fits != "may not",
    )


def _memory_table(cards: Sequence[Candidate]) -> Table:
    rows = tuple(
        (
            card.gpu_name,
            amounts.gib(card.estimate.usable_memory_bytes),
            amounts.gib(card.estimate.device_memory_bytes.best),
            amounts.gib_range(card.estimate.device_memory_bytes),
            amounts.percent(
                card.estimate.device_memory_bytes.best / card.estimate.usable_memory_bytes
            ),
            named(fit_state(card.estimate)),
            amounts.batch_cell(card.estimate.max_batch_size),
        )
        for card in cards
    )
    return Table(
        headings=(
            say("Card"),
            say("Usable GiB"),
            say("Needed GiB"),
            say("9 in 10"),
            say("Share"),
            say("Fits"),
            say("Max batch"),
        ),
        rows=rows,
        text_columns=frozenset((0, 5)),
    )


def term_shares(estimate: Estimate) -> dict[str, float]:
    """Share of each cause in the sum of all causes, 0–1; empty when no cause takes time."""
    total = sum(estimate.terms_s.values())
    if total <= 0:
        return {}
    return {name: seconds / total for name, seconds in estimate.terms_s.items() if seconds > 0}


def terms_figure(cards: Sequence[Candidate], best: Candidate) -> Figure | None:
    """Return causes of a step per card as shares; ``None`` without a cause anywhere."""
    known = [card for card in cards if term_shares(card.estimate)]
    if not known:
        return None
    rows = tuple(_terms_row(card, strong=same(card, best)) for card in known)
    chart = BarChart(
        rows=rows,
        end=1.0,
        ticks=(0, 0.25, 0.5, 0.75, 1.0),
        tick_format="%",
        axis_title=say("share of the time that the causes of one step take"),
    )
    present = {name for card in known for name in term_shares(card.estimate)}
    key = tuple(Key(text=kernels.cause(n), variable=c) for n, c in TERMS if n in present)
    headings = ["GPU", say("Step ms"), say("9 in 10")]
    headings += [amounts.capital(kernels.cause(n)) for n, _ in TERMS if n in present]
    shown = [n for n, _ in TERMS if n in present]
    return bar_figure(
        chart,
        label=say(
            "Stacked bars of what one step waits for, by card: {cards}.",
            cards=amounts.listed([_terms_words(card) for card in known]),
        ),
        key=key,
        table=Table(
            headings=tuple(headings),
            rows=tuple(_terms_cells(card, shown) for card in known),
        ),
    )


def _terms_row(card: Candidate, *, strong: bool) -> Row:
    shares, step = term_shares(card.estimate), card.estimate.step_s
    name = card_name(card).replace(" × ", "×")
    segments = tuple(
        Segment(
            variable=colour,
            value=shares[term],
            numeral=f"{shares[term] * 100:.0f}",
            tip=f"{name}, {kernels.cause(term)}: {amounts.percent(shares[term])}, "
            f"{amounts.table_ms(card.estimate.terms_s[term])} ms",
        )
        for term, colour in TERMS
        if term in shares
    )
    number = f"{amounts.table_ms(step.best)} ms ({amounts.table_ms_range(step)})"
    return Row(name=name, number=number, segments=segments, strong=strong)


def _terms_words(card: Candidate) -> str:
    shares = term_shares(card.estimate)
    largest = max(shares, key=lambda name: shares[name])
    return f"{card_name(card)} {kernels.cause(largest)} {amounts.percent(shares[largest])}"


def _terms_cells(card: Candidate, shown: Sequence[str]) -> tuple[str, ...]:
    shares, step = term_shares(card.estimate), card.estimate.step_s
    causes = [amounts.percent(shares[name]) if name in shares else "–" for name in shown]
    range_ = amounts.table_ms_range(step)
    return (card_name(card), amounts.table_ms(step.best), range_, *causes)


def certainty_table(cards: Sequence[Candidate]) -> Table:
    """Write how far time and memory reach on each card, and which route made each."""
    rows = tuple(
        (
            card_name(card),
            amounts.table_ms(card.estimate.step_s.best),
            amounts.interval_percent(card.estimate.step_s),
            _route(card.estimate, "time"),
            amounts.gib(card.estimate.device_memory_bytes.best),
            amounts.interval_percent(card.estimate.device_memory_bytes),
            _route(card.estimate, "memory"),
        )
        for card in cards
    )
    headings = (
        say("Card"),
        say("Step ms"),
        say("9 in 10"),
        say("Time by"),
        say("Memory GiB"),
        say("9 in 10"),
        say("Memory by"),
    )
    return Table(headings=headings, rows=rows, text_columns=frozenset((0, 3, 6)))


def _route(estimate: Estimate, figure: str) -> str:
    """Return the route that made a figure, with the GPU family whose compiled program that was."""
    route = estimate.made_by.get(figure, "–")
    compiled_for = estimate.compiled_for
    is_told = route == "exact" and compiled_for
    return f"{named(route)}, {compiled_for}" if is_told else named(route)


def layers_figure(groups: Sequence[LayerGroup], estimate: Estimate) -> Figure | None:
    """Return milliseconds of a step by group of layers and phase; ``None`` without layers."""
    total = sum(group.step_s for group in groups)
    if total <= 0:
        return None
    rows = tuple(_layer_row(group, total) for group in groups)
    chart = absolute(rows, say("ms of one step, best estimate"))
    present = {phase for group in groups for phase, s in group.by_phase_s.items() if s > 0}
    words = {"update": say("optimizer update")}
    key = tuple(Key(text=words.get(n) or named(n), variable=c) for n, c in PHASES if n in present)
    return bar_figure(
        chart,
        label=say(
            "Stacked bars of milliseconds per step by layer group, batch {batch:,}: {layers}.",
            batch=estimate.batch_size,
            layers=amounts.listed([f"{row.name} {row.number}" for row in rows]),
        ),
        key=key if len(key) > 1 else (),
        table=_layer_table(groups, total),
    )


def _layer_row(group: LayerGroup, total_s: float) -> Row:
    segments = tuple(
        Segment(
            variable=colour,
            value=group.by_phase_s.get(phase, 0.0) * 1e3,
            tip=f"{group.name}, {named(phase)}: "
            f"{amounts.table_ms(group.by_phase_s.get(phase, 0.0))} ms",
        )
        for phase, colour in PHASES
        if group.by_phase_s.get(phase, 0.0) > 0
    )
    share = amounts.percent(group.step_s / total_s)
    number = f"{amounts.table_ms(group.step_s)} ms · {share}"
    return Row(name=group.name, number=number, segments=segments)


def _layer_table(groups: Sequence[LayerGroup], total_s: float) -> Table:
    again = any(group.by_phase_s.get("recompute", 0.0) > 0 for group in groups)
    phases = [phase for phase, _ in PHASES if again or phase != "recompute"]
    rows = tuple(
        (
            group.name,
            f"{group.layers:,}",
            *(amounts.table_ms(group.by_phase_s.get(phase, 0.0)) for phase in phases),
            amounts.percent(group.step_s / total_s),
            f"{group.flops / 1e9:,.1f}",
            f"{group.traffic_bytes / 1e9:,.2f}",
        )
        for group in groups
    )
    headings = (
        say("Layers"),
        say("Number"),
        *(f"{amounts.capital(named(phase))} ms" for phase in phases),
        say("Share"),
    )
    return Table(headings=(*headings, "GFLOP", say("GB moved")), rows=rows)
