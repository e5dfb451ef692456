"""The memory that is alive over a step: a curve, and the largest tensors at its peak."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import area, dots, line, rules
from tfdyno.view.draw.svg import NARROW_PX, WIDE_PX, Figure, Spec, Table, draw, framed
from tfdyno.words.base import amounts
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.estimate import Estimate, HeldBuffer

HEIGHT_PX = 150.0
LEFT_PX, RIGHT_PX = 44.0, 14.0
PADDING_PX = (LEFT_PX, 26, RIGHT_PX, 38)
_ROOM = 1.15
"""Height of the axes over that of the peak: its words stand above it."""
_MOST_TICKS = 4
_BARS = "▁▂▃▄▅▆▇█"


def live_figure(estimate: Estimate) -> Figure | None:
    """Return bytes alive over the step with the tensors of the peak below; None without a curve."""
    if len(estimate.live_curve_bytes) < 2:
        return None
    share, peak_bytes = peak_of(estimate)
    first, last = estimate.live_curve_bytes[0][1], estimate.live_curve_bytes[-1][1]
    return Figure(
        label=say(
            "Curve of the memory alive over a step: {first} at its start, {peak} "
            "at the peak after {share} of it, {last} at its end.",
            first=format_bytes(first, 2),
            peak=format_bytes(peak_bytes, 2),
            share=amounts.percent(share),
            last=format_bytes(last, 2),
        ),
        wide=draw(_spec(estimate, WIDE_PX)),
        narrow=draw(_spec(estimate, NARROW_PX)),
        table=Table(
            headings=(say("Largest at the peak"), say("Part"), say("Size"), say("Share")),
            rows=tuple(_row(one, peak_bytes) for one in estimate.largest_buffers),
            text_columns=frozenset((0, 1)),
        ),
        caption=say(
            "Tensors alive over the step, as {planner} them", planner=planner(estimate.execution)
        ),
    )


def planner(execution: str) -> str:
    """Return who holds the tensors, with its verb."""
    if execution == "graph":
        return say("TensorFlow’s executor holds")
    return say("XLA plans") if execution == "xla" else say("XLA would plan")


def peak_of(estimate: Estimate) -> tuple[float, float]:
    """Return where in the step (share 0-1) the most bytes are alive, and how many."""
    return max(estimate.live_curve_bytes, key=lambda point: point[1])


def tensor_name(one: HeldBuffer) -> str:
    """Name the layer with what makes the tensor in it; the tensor itself outside of layers."""
    return f"{one.layer} ({one.name})" if one.layer and one.layer != one.name else one.name


def sparkline(estimate: Estimate, columns: int) -> str:
    """Return the curve in one line of text, each character the most of its stretch of the step."""
    return bars_of([alive for _, alive in estimate.live_curve_bytes], columns)


def bars_of(points: Sequence[float], columns: int) -> str:
    """Write amounts in one line of text, each character the most of its stretch."""
    columns = min(columns, len(points))
    top = max(points, default=0.0) or 1.0
    edges = [index * len(points) // columns for index in range(columns + 1)]
    highest = [max(points[a:b]) for a, b in pairwise(edges)]
    return "".join(_BARS[min(7, math.floor(8 * value / top))] for value in highest)


def _row(one: HeldBuffer, peak_bytes: float) -> tuple[str, ...]:
    share = amounts.percent(one.held_bytes / peak_bytes)
    return tensor_name(one), named(one.part), format_bytes(one.held_bytes), share


def _spec(estimate: Estimate, width_px: float) -> Spec:
    length = width_px - LEFT_PX - RIGHT_PX
    share, peak_bytes = peak_of(estimate)
    curve = [(at * length, height_px(alive, peak_bytes)) for at, alive in estimate.live_curve_bytes]
    below = [(x, y, HEIGHT_PX) for x, y in curve]
    drawn = [area(below, color=paint("c1"), opacity=0.18),
             line(curve, color=paint("c1"), strokeWidth=1.75)]  # fmt: skip
    return course_spec(drawn, share, peak_bytes, width_px)


def height_px(alive_bytes: float, peak_bytes: float) -> float:
    """Return where an amount stands, from the top, on axes that leave room over the peak."""
    return HEIGHT_PX * (1.0 - alive_bytes / (_ROOM * peak_bytes))


def course_spec(drawn: Sequence[Spec], share: float, peak_bytes: float, width_px: float) -> Spec:
    """Draw axes of bytes over a step's course, what is on them, and the mark of the peak."""
    length = width_px - LEFT_PX - RIGHT_PX
    at = share * length, height_px(peak_bytes, peak_bytes)
    axes, peak = _axes(length, _ROOM * peak_bytes), _peak(at, share, peak_bytes)
    return framed(length, HEIGHT_PX, PADDING_PX, [*axes, *drawn, *peak])


def _peak(at: tuple[float, float], share: float, peak_bytes: float) -> list[Spec]:
    """Return a dot on the peak and its words, on the side where there is room."""
    words = say(
        "{peak} after {share} of the step",
        peak=format_bytes(peak_bytes, 2),
        share=amounts.percent(share),
    )
    left = share > 0.5
    place = (at[0] - 8.0 if left else at[0] + 8.0, max(8.0, at[1] - 9.0), words)
    dot = dots([at], size=44, color=paint("c1"))
    return [*dot, *texts([place], align="right" if left else "left")]


def _axes(length: float, end_bytes: float) -> list[Spec]:
    muted, bottom = paint("muted"), HEIGHT_PX
    across = [(length * quarter / 4, f"{quarter * 25}%") for quarter in range(5)]
    return [
        *bytes_axis(length, end_bytes),
        *texts([(x, bottom + 14, text) for x, text in across], align="center", color=muted),
        *texts(
            [(length, bottom + 31, say("share of the step’s kernels"))], align="right", color=muted
        ),
    ]


def bytes_axis(length_px: float, end_bytes: float) -> list[Spec]:
    """Return lines and numbers of an axis of bytes that begins at 0, with its unit above."""
    muted, ticks = paint("muted"), ticks_of(end_bytes)
    up = [(HEIGHT_PX * (1.0 - value / end_bytes), value) for value in ticks]
    unit = format_bytes(ticks[-1]).rpartition(" ")[2]
    return [
        *rules([(0.0, y, length_px, y) for y, _ in up], color=paint("grid"), strokeWidth=1),
        *texts([(-8.0, y, _tick(value, ticks[-1])) for y, value in up], align="right", color=muted),
        *texts([(-LEFT_PX, -16.0, unit)], color=muted),
    ]


def ticks_of(end_bytes: float) -> tuple[float, ...]:
    """Return 0 and at most four more marks at 1, 2 or 5 times a power of ten of a binary unit."""
    unit = 1024.0 ** math.floor(math.log(max(end_bytes, 1.0), 1024.0))
    span = end_bytes / unit
    power = 10.0 ** math.floor(math.log10(span / _MOST_TICKS))
    step = next(m * power for m in (1, 2, 5, 10) if span / (m * power) <= _MOST_TICKS + 0.999)
    return tuple(unit * step * index for index in range(math.floor(span / step) + 1))


def _tick(value: float, largest: float) -> str:
    unit = 1024.0 ** math.floor(math.log(max(largest, 1.0), 1024.0))
    return f"{value / unit:.10g}"
