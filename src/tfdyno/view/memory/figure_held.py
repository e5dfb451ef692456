"""What a step holds over its course, stacked by what it is for, with its largest tensors below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.view.choose.figures import PARTS
from tfdyno.view.draw.figure_memory import LEFT_PX, RIGHT_PX, course_spec, height_px, planner
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import area
from tfdyno.view.draw.svg import NARROW_PX, WIDE_PX, Figure, Key, Spec, Table, draw
from tfdyno.words.base import amounts
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named

if TYPE_CHECKING:
    from tfdyno.core.choose.memory_map import HeldTensor, MemoryMap


def held_figure(found: MemoryMap) -> Figure:
    """Stack areas of the bytes alive over the step; the table has the tensors of the peak."""
    first, last = found.moments[0].live_bytes, found.moments[-1].live_bytes
    shown = [say(words) for words, _, names in PARTS if any(_of(found, names))]
    return Figure(
        label=say(
            "Areas of the memory alive over a step by what it is for ({parts}): {first} at its "
            "start, {peak} at the peak after {share} of it, {last} at its end.",
            parts=say(", ").join(shown),
            first=format_bytes(first, 2),
            peak=format_bytes(found.peak_bytes, 2),
            share=amounts.percent(found.peak_share),
            last=format_bytes(last, 2),
        ),
        wide=draw(_spec(found, WIDE_PX)),
        narrow=draw(_spec(found, NARROW_PX)),
        key=tuple(
            Key(text=say(words), variable=colour)
            for words, colour, names in PARTS
            if any(_of(found, names))
        ),
        table=Table(
            headings=(
                say("Largest at the peak"),
                say("Part"),
                say("Shape"),
                say("Type"),
                say("Size"),
                say("Share"),
                say("Alive"),
            ),
            rows=tuple(_row(one, found.peak_bytes) for one in found.tensors),
            text_columns=frozenset((0, 1, 2, 3)),
        ),
        caption=say(
            "Tensors alive over the step, as {planner} them", planner=planner(found.execution)
        ),
    )


def held_name(one: HeldTensor) -> str:
    """Name the layer with what makes the tensor in it; the tensor itself outside of layers."""
    within = one.layer and not one.name.startswith(one.layer)
    return f"{one.layer} ({one.name})" if within else one.name


def alive_words(one: HeldTensor) -> str:
    """Write from when to when of the step: ``0–65%``; ``all of it``."""
    if one.first_share == 0 and one.last_share == 1:
        return say("all of it")
    return f"{one.first_share:.0%}–{one.last_share:.0%}".replace("%–", "–")


def shape_words(one: HeldTensor) -> str:
    """Write ``256 x 56 x 56 x 64``; ``scalar``."""
    return " x ".join(map(str, one.shape)) or say("scalar")


def _row(one: HeldTensor, peak_bytes: float) -> tuple[str, ...]:
    return (
        held_name(one),
        named(one.part),
        shape_words(one),
        one.dtype,
        format_bytes(one.held_bytes),
        amounts.percent(one.held_bytes / peak_bytes),
        alive_words(one),
    )


def _of(found: MemoryMap, names: tuple[str, ...]) -> list[float]:
    """Return bytes of some parts at each moment."""
    return [sum(one.parts_bytes.get(name, 0.0) for name in names) for one in found.moments]


def _spec(found: MemoryMap, width_px: float) -> Spec:
    length, peak = width_px - LEFT_PX - RIGHT_PX, found.peak_bytes
    below = [0.0] * len(found.moments)
    drawn: list[Spec] = []
    for words, colour, names in PARTS:
        amount = _of(found, names)
        if not any(amount):
            continue
        above = [low + more for low, more in zip(below, amount, strict=True)]
        ends = [
            (one.share * length, height_px(high, peak), height_px(low, peak))
            for one, low, high in zip(found.moments, below, above, strict=True)
        ]
        drawn.append(area(ends, color=paint(colour), opacity=0.75, description=say(words)))
        below = above
    return course_spec(drawn, found.peak_share, peak, width_px)
