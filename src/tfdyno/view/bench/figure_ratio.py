"""B against A as one picture: the ratio with its interval, 1 and the least effect marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.bench.runs import round_ticks
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import blocks, rules
from tfdyno.view.draw.svg import NARROW_PX, WIDE_PX, Figure, Spec, Table, draw, framed
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Comparison

_HEIGHT_PX, _LEFT_PX, _RIGHT_PX = 64.0, 14.0, 14.0
_LEAST_HALF = 0.02


def ratio_figure(found: Comparison) -> Figure | None:
    """Return the ratio of throughputs; None where the two do not compare."""
    if found.ratio <= 0:
        return None
    low, high = found.interval
    sure = 100 * found.confidence_ratio
    return Figure(
        label=say(
            "Throughput of B over that of A: {ratio:.3f}, {sure:.3g} % interval {low:.3f} to "
            "{high:.3f}; 1 means equal.",
            ratio=found.ratio,
            sure=sure,
            low=low,
            high=high,
        ),
        wide=draw(_spec(found, WIDE_PX, 9)),
        narrow=draw(_spec(found, NARROW_PX, 4)),
        table=Table(
            headings=(say("Throughput of B over A"), say("Ratio"), say("Low"), say("High"),
                      say("Confidence")),
            rows=((say("paired runs") if found.paired else say("independent runs"),
                   f"{found.ratio:.4f}", f"{low:.4f}", f"{high:.4f}",
                   say("{share} %", share=f"{sure:.3g}")),),
        ),
        caption=say("Throughput of B over that of A, {sure:.3g} % interval", sure=sure),
    )  # fmt: skip


def _spec(found: Comparison, total_px: float, most: int) -> Spec:
    length = total_px - _LEFT_PX - _RIGHT_PX
    low, high = found.interval
    start, end = min(low, 1.0 - _LEAST_HALF), max(high, 1.0 + _LEAST_HALF)
    margin = 0.08 * (end - start)
    start, end = start - margin, end + margin

    def x(ratio: float) -> float:
        return length * (ratio - start) / (end - start)

    ticks = [(x(value), f"{value:.10g}") for value in round_ticks(start, end, most)]
    middle, muted = 34.0, paint("muted")
    words = f"{found.ratio:.3f}"
    return framed(length, _HEIGHT_PX, (_LEFT_PX, 22, _RIGHT_PX, 40), [
        *blocks([(x(0.99), 0.0, x(1.01), _HEIGHT_PX)], "track"),
        *rules([(at, 0.0, at, _HEIGHT_PX) for at, _ in ticks],
               color=paint("grid"), strokeWidth=1),
        *rules([(x(1.0), 0.0, x(1.0), _HEIGHT_PX)], color=paint("ink"), strokeWidth=1),
        *rules([(x(low), middle, max(x(high), x(low) + 2), middle)],
               color=paint("c1"), strokeWidth=8, opacity=0.45),
        *rules([(x(found.ratio), middle - 11, x(found.ratio), middle + 11)],
               color=paint("c1"), strokeWidth=2.5),
        *texts([(x(found.ratio), middle - 20, words)], align="center", fontWeight=600),
        *texts([(at, _HEIGHT_PX + 13, text) for at, text in ticks],
               align="center", color=muted),
        *_sides(x(1.0), length),
        *texts([(length, _HEIGHT_PX + 32, say("grey: within 1 %, counted as equal"))],
               align="right", color=muted),
    ])  # fmt: skip


def _sides(one_px: float, length: float) -> list[Spec]:
    """Return which way is which, on the sides of 1 that have room."""
    muted, words = paint("muted"), list[Spec]()
    if one_px > 76.0:
        words += texts([(one_px - 8.0, -11.0, say("‹ B slower"))], align="right", color=muted)
    if length - one_px > 76.0:
        words += texts([(one_px + 8.0, -11.0, say("B faster ›"))], color=muted)
    return words
