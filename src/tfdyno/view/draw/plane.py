"""A plane with two logarithmic axes: frame, ticks, and labels placed without overlap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.labels import Anchor, Box, along, place, text_width
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.svg import FONT_PX, NARROW_PX, WIDE_PX, Spec, framed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HALF_LINE_PX = 7.5
_OWN = {"fill": "nominal", "stroke": "nominal", "color": "nominal", "size": "quantitative"}


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis from ``low`` to ``high`` over ``length_px``."""

    low: float
    high: float
    length_px: float

    def at(self, value: float) -> float:
        """Return pixels from the low end; values outside stick to the ends."""
        span = math.log(self.high / self.low)
        share = math.log(max(value, 1e-300) / self.low) / span
        return min(max(share, 0.0), 1.0) * self.length_px

    def ticks(self, *, least_px: float) -> tuple[float, ...]:
        """Return 1, 2, 5 steps, or decades where these would stand closer than ``least_px``."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        per_decade = self.length_px / math.log10(self.high / self.low)
        steps = (1, 2, 5) if per_decade * 0.3 >= least_px else (1,)
        every = max(1, math.ceil(least_px / per_decade)) if steps == (1,) else 1
        marks = [m * 10.0**d for d in decades if d % every == 0 for m in steps]
        return tuple(mark for mark in marks if self.low <= mark <= self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """Two axes with their words and a frame in pixels."""

    x: LogAxis
    y: LogAxis
    x_title: str
    y_title: str
    x_words: Callable[[float], str]
    y_words: Callable[[float], str]
    left_px: float
    right_px: float
    tick_px: float
    x_values: tuple[float, ...] = ()
    """Where the x axis has its ticks, in ascending order; empty: at round numbers."""

    @property
    def x_ticks(self) -> tuple[float, ...]:
        """Values with a word below; what would stand too close to the one before has none."""
        if not self.x_values:
            return self.x.ticks(least_px=self.tick_px)
        kept = [self.x_values[0]]
        for value in self.x_values[1:]:
            if self.x.at(value) - self.x.at(kept[-1]) >= self.tick_px:
                kept.append(value)
        return tuple(kept)

    @property
    def frame(self) -> Box:
        """Where labels may stand."""
        return Box(2.0, 2.0, self.x.length_px + self.right_px, self.y.length_px - 2)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Place of a pair of values in pixels, y downwards."""
        return self.x.at(x), self.y.length_px - self.y.at(y)


def plane(
    *,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    x_title: str,
    y_title: str,
    x_words: Callable[[float], str],
    y_words: Callable[[float], str],
    narrow: bool,
    x_values: tuple[float, ...] = (),
) -> Plane:
    """Return a plane for one of the two layouts, 440 px (wide) or 360 px (narrow) high."""
    left, right = (44.0, 14.0) if narrow else (56.0, 24.0)
    width = (NARROW_PX if narrow else WIDE_PX) - left - right
    height = 360.0 if narrow else 440.0
    return Plane(
        x=LogAxis(*x_range, width),
        y=LogAxis(*y_range, height),
        x_title=x_title,
        y_title=y_title,
        x_words=x_words,
        y_words=y_words,
        left_px=left,
        right_px=right,
        tick_px=40.0 if narrow else 34.0,
        x_values=x_values,
    )


def padded(values: Iterable[float], *, below: float, above: float) -> tuple[float, float]:
    """Return least and most of ``values`` (above 0), widened by factors; one octave at least."""
    known = list(values)
    low, high = min(known) / below, max(known) * above
    return (low, high) if high >= 2 * low else (low / 1.5, high * 1.5)


def spec(board: Plane, layers: Sequence[Spec]) -> Spec:
    """Return the complete specification: axes of ``board`` below, ``layers`` above."""
    padding = (board.left_px, 26, board.right_px, 42)
    return framed(board.x.length_px, board.y.length_px, padding, [*_axes(board), *layers])


def marks(mark: Spec, rows: list[dict[str, Any]], **encoding: Spec) -> Spec:
    """Return a layer with ``x`` and ``y`` in pixels, as all things on a plane have them."""
    places = {name: {"field": name, "type": "quantitative", "scale": None} for name in ("x", "y")}
    return {
        "data": {"values": rows},
        "mark": {"aria": False, **mark},
        "encoding": {name: {**place_, "axis": None} for name, place_ in places.items()} | encoding,
    }


def line(points: Sequence[tuple[float, float]], **mark: object) -> Spec:
    """Return a line through ``points`` in pixels."""
    rows = [{"x": x, "y": y, "k": index} for index, (x, y) in enumerate(points)]
    order = {"field": "k", "type": "quantitative"}
    return marks({"type": "line", "strokeCap": "round", **mark}, rows, order=order)


def placed_labels(
    board: Plane,
    anchors: Sequence[Anchor],
    lines: Iterable[Sequence[tuple[float, float]]],
    words: Iterable[tuple[float, float, str]] = (),
) -> list[Spec]:
    """Place labels of ``anchors`` clear of each other, of all points, of ``lines`` and ``words``.

    ``words`` are texts that stand already: right end, middle, text.
    """
    obstacles = [
        Box(x - text_width(text, FONT_PX), y - _HALF_LINE_PX, x, y + _HALF_LINE_PX)
        for x, y, text in words
    ]
    obstacles += [
        box
        for points in lines
        for (x1, y1), (x2, y2) in pairwise(points)
        for box in along(x1, y1, x2, y2)
    ]
    labels = place(anchors, frame=board.frame, obstacles=obstacles)
    plain = [(label.x, label.y + 0.5, label.text) for label in labels if not label.bold]
    bold = [(label.x, label.y + 0.5, label.text) for label in labels if label.bold]
    ends = [label.leader for label in labels if label.leader]
    leaders = rules(ends, color=paint("muted"), strokeWidth=0.75)
    return [*leaders, *texts(plain), *texts(bold, fontWeight=650)]


def area(ends: Iterable[tuple[float, float, float]], **mark: object) -> Spec:
    """Fill what lies between two lines: x, the upper y and the lower one in pixels."""
    rows = [{"x": x, "y": upper, "b": lower} for x, upper, lower in ends]
    return marks({"type": "area", **mark}, rows, y2={"field": "b"})


def dots(places: Iterable[tuple[float, float]], **mark: object) -> list[Spec]:
    """Draw points of one style at places in pixels as one layer; none if empty."""
    rows = [{"x": x, "y": y} for x, y in places]
    return [marks({"type": "point", "filled": True, **mark}, rows)] if rows else []


def spots(rows: list[dict[str, Any]], **mark: object) -> Spec:
    """Draw points with a ``tip``; ``fill``, ``stroke``, ``color`` and ``size`` are a row's own."""
    own = {
        name: {"field": name, "type": kind, "scale": None}
        for name, kind in _OWN.items()
        if any(name in row for row in rows)
    }
    style = {"type": "point", "opacity": 1, "aria": True, **mark}
    return marks(style, rows, description={"field": "tip"}, **own)


def rules(ends: Sequence[tuple[float, float, float, float]], **mark: object) -> list[Spec]:
    """Draw straight lines of one style, each from x1, y1 to x2, y2 in pixels, as one layer."""
    rows = [{"x": x1, "y": y1, "p": x2, "q": y2} for x1, y1, x2, y2 in ends]
    style = {"type": "rule", **mark}
    return [marks(style, rows, x2={"field": "p"}, y2={"field": "q"})] if rows else []


def blocks(corners: Sequence[tuple[float, float, float, float]], colour: str) -> list[Spec]:
    """Draw filled rectangles, each from its left and top to its right and bottom, as one layer."""
    return rules(corners, type="rect", color=paint(colour))


def _axes(board: Plane) -> list[Spec]:
    bottom, right, muted = board.y.length_px, board.x.length_px, paint("muted")
    across = [(board.x.at(value), value) for value in board.x_ticks]
    up = [(bottom - board.y.at(value), value) for value in board.y.ticks(least_px=26)]
    grid = [(x, 0.0, x, bottom) for x, _ in across] + [(0.0, y, right, y) for y, _ in up]
    below = [(x, bottom + 14, board.x_words(value)) for x, value in across]
    return [
        *rules(grid, color=paint("grid"), strokeWidth=1),
        *texts(below, align="center", color=muted),
        *texts([(-8.0, y, board.y_words(v)) for y, v in up], align="right", color=muted),
        *texts([(-board.left_px, -16.0, board.y_title)], color=muted),
        *texts([(right, bottom + 34, board.x_title)], align="right", color=muted),
    ]
