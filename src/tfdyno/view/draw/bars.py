"""Horizontal stacked bars: one row per thing, its name left, its number right.

On a narrow page name and number stand above the bar, so that long names never shrink it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfdyno.view.draw.labels import text_width
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.svg import FONT_PX, NARROW_PX, WIDE_PX, Figure, Key, Spec, Table, draw, framed

if TYPE_CHECKING:
    from collections.abc import Sequence

_INK_ON_BAR_PX = 11
_AXIS_PX = 44
_HEAD_PX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One colour of a bar."""

    variable: str
    value: float
    tip: str
    numeral: str = ""
    """Printed inside where the segment is wide enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One bar with its texts; ``low`` and ``high`` draw a range over its end."""

    name: str
    number: str
    segments: tuple[Segment, ...]
    low: float = 0.0
    high: float = 0.0
    strong: bool = False
    bad: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Rows on one linear axis that starts at 0."""

    rows: tuple[Row, ...]
    end: float
    """Where the axis ends."""
    ticks: tuple[float, ...]
    tick_format: str
    """The format in the notation of d3-format."""
    axis_title: str
    track: float = 0.0
    """Length of the empty bar behind each row; 0: none."""
    limit: float = 0.0
    """Position of a vertical line across all rows; 0: none."""
    limit_text: str = ""


@dataclass(frozen=True, slots=True)
class _Layout:
    total_px: float
    left_px: float
    right_px: float
    row_px: float
    bar_px: float
    bar_offset_px: float
    narrow: bool

    @property
    def width_px(self) -> float:
        return self.total_px - self.left_px - self.right_px


def absolute(
    rows: tuple[Row, ...], title: str, *, limit: float = 0.0, limit_text: str = ""
) -> BarChart:
    """Draw rows on an axis that ends at a round number beyond the longest bar, and a limit."""
    longest = max([limit, *(sum(segment.value for segment in row.segments) for row in rows)])
    step = _round_step(longest / 4)
    end = step * math.ceil(longest / step - 1e-9)
    ticks = tuple(step * k for k in range(round(end / step) + 1))
    return BarChart(
        rows=rows, end=end, ticks=ticks, tick_format=",~f", axis_title=title, limit=limit,
        limit_text=limit_text,
    )  # fmt: skip


def _round_step(value: float) -> float:
    """Return the next 1, 2 or 5 × a power of ten at or above ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= value * (1 - 1e-9))


def bar_figure(
    chart: BarChart, *, label: str, table: Table, key: tuple[Key, ...] = (), caption: str = ""
) -> Figure:
    """Draw a chart in both layouts, with what a figure has besides."""
    return Figure(
        label=label,
        wide=draw(_wide(chart)),
        narrow=draw(_narrow(chart)),
        key=key,
        table=table,
        caption=caption,
    )


def _wide(chart: BarChart) -> Spec:
    """Return layout for a page of 936 px: names left of the bars, numbers right of them."""
    names = max((text_width(row.name, FONT_PX, bold=row.strong) for row in chart.rows), default=0)
    numbers = max((text_width(row.number, FONT_PX) for row in chart.rows), default=0)
    layout = _Layout(WIDE_PX, min(names, 260) + 12, numbers + 18, 30, 14, 8, narrow=False)
    return _spec(chart, layout)


def _narrow(chart: BarChart) -> Spec:
    """Return layout for a phone of 360 px: names and numbers above the bars."""
    layout = _Layout(NARROW_PX, 2, 14, 42, 14, 21, narrow=True)
    rows = tuple(_fitted(row, layout.width_px) for row in chart.rows)
    return _spec(replace(chart, rows=rows), layout)


def _fitted(row: Row, width_px: float) -> Row:
    """Fit texts that share one line: first the number's later parts go, then letters."""

    def room() -> float:
        return width_px - 10 - text_width(row.number, FONT_PX)

    def needs(name: str) -> float:
        return text_width(name, FONT_PX, bold=row.strong)

    while needs(row.name) > room() and " · " in row.number:
        row = replace(row, number=row.number.rpartition(" · ")[0])
    name = row.name
    while name and needs(name + "…") > room():
        name = name[:-1]
    return row if needs(row.name) <= room() else replace(row, name=name.rstrip() + "…")


def _spec(chart: BarChart, layout: _Layout) -> Spec:
    height = layout.row_px * len(chart.rows)
    head = _HEAD_PX if chart.limit else 6
    drawn = framed(layout.width_px, height, (layout.left_px, head, layout.right_px, _AXIS_PX), [
        _bars(chart, layout),
        *_track(chart, layout),
        *_numerals(chart, layout),
        *_ranges(chart, layout),
        *_limit(chart, layout, height),
        *_names(chart, layout),
        *_title(chart, layout, height),
    ])  # fmt: skip
    return drawn | {"resolve": {"scale": {"y": "independent"}}}


def _top(index: int, layout: _Layout) -> float:
    return index * layout.row_px + layout.bar_offset_px


def _bars(chart: BarChart, layout: _Layout) -> Spec:
    values = []
    for index, row in enumerate(chart.rows):
        start = 0.0
        for segment in row.segments:
            stop = min(start + segment.value, chart.end)
            if stop > start:
                values.append(
                    {
                        "a": start,
                        "b": stop,
                        "y": _top(index, layout),
                        "z": _top(index, layout) + layout.bar_px,
                        "c": paint(segment.variable),
                        "t": segment.tip,
                    }
                )
            start = stop
    axis = {"values": list(chart.ticks), "format": chart.tick_format}
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "stroke": paint("bg"), "strokeWidth": 1},
        "encoding": {
            "x": {
                "field": "a",
                "type": "quantitative",
                "scale": {"domain": [0, chart.end], "nice": False},
                "axis": axis,
            },
            "x2": {"field": "b"},
            "y": {**_pixels("y"), "axis": None},
            "y2": {"field": "z"},
            "color": {"field": "c", "type": "nominal", "scale": None},
            "description": {"field": "t"},
        },
    }


def _track(chart: BarChart, layout: _Layout) -> list[Spec]:
    if not chart.track:
        return []
    values = []
    for index, row in enumerate(chart.rows):
        used = min(sum(segment.value for segment in row.segments), chart.end)
        if used < chart.track:
            top = _top(index, layout)
            values.append({"a": used, "b": chart.track, "y": top, "z": top + layout.bar_px})
    mark = {"type": "rect", "color": paint("track"), "aria": False}
    return _layer(mark, values, x=_value("a"), x2={"field": "b"}, y=_pixels("y"), y2={"field": "z"})


def _numerals(chart: BarChart, layout: _Layout) -> list[Spec]:
    values = []
    scale = layout.width_px / chart.end
    for index, row in enumerate(chart.rows):
        start = 0.0
        for segment in row.segments:
            room = segment.value * scale
            if segment.numeral and room > text_width(segment.numeral, _INK_ON_BAR_PX) + 8:
                middle = _top(index, layout) + layout.bar_px / 2 + 0.5
                values.append({"a": start + segment.value / 2, "y": middle, "t": segment.numeral})
            start += segment.value
    mark = {
        "type": "text",
        "align": "center",
        "fontSize": _INK_ON_BAR_PX,
        "fontWeight": 600,
        "color": paint("bg"),
        "aria": False,
    }
    return _layer(mark, values, x=_value("a"), y=_pixels("y"), text={"field": "t"})


def _ranges(chart: BarChart, layout: _Layout) -> list[Spec]:
    values = [
        {
            "a": min(row.low, chart.end),
            "b": min(row.high, chart.end),
            "y": _top(index, layout) + layout.bar_px / 2,
        }
        for index, row in enumerate(chart.rows)
        if row.high > row.low
    ]
    mark = {"type": "rule", "strokeWidth": 1.5, "color": paint("ink"), "aria": False}
    return _layer(mark, values, x=_value("a"), x2={"field": "b"}, y=_pixels("y"))


def _limit(chart: BarChart, layout: _Layout, height: float) -> list[Spec]:
    if not chart.limit:
        return []
    rule = {"type": "rule", "color": paint("ink"), "aria": False}
    text = {"type": "text", "align": "center", "aria": False}
    line = [{"a": chart.limit, "y": -4.0, "z": height}]
    if layout.narrow:  # the numbers stand above the bars: the line must not cross them
        tops = (_top(index, layout) for index in range(len(chart.rows)))
        line = [{"a": chart.limit, "y": top - 3, "z": top + layout.bar_px + 3} for top in tops]
    half_px = text_width(chart.limit_text, FONT_PX) / 2  # the words stay within the figure
    scale = chart.end / layout.width_px
    low, high = (half_px - layout.left_px) * scale, chart.end - (half_px - layout.right_px) * scale
    words = [{"a": max(low, min(high, chart.limit)), "y": -12, "t": chart.limit_text}]
    return [
        *_layer(rule, line, x=_value("a"), y=_pixels("y"), y2={"field": "z"}),
        *_layer(text, words, x=_value("a"), y=_pixels("y"), text={"field": "t"}),
    ]


def _names(chart: BarChart, layout: _Layout) -> list[Spec]:
    plain: list[tuple[float, float, str]] = []
    strong, numbers, bad = plain.copy(), plain.copy(), plain.copy()
    for index, row in enumerate(chart.rows):
        middle = _top(index, layout) + layout.bar_px / 2 + 0.5
        y = index * layout.row_px + 11 if layout.narrow else middle
        (strong if row.strong else plain).append((0.0 if layout.narrow else -10.0, y, row.name))
        number_x = layout.width_px if layout.narrow else layout.width_px + 12
        (bad if row.bad else numbers).append((number_x, y, row.number))
    left = {"align": "left" if layout.narrow else "right"}
    right = {"align": "right" if layout.narrow else "left"}
    return [
        *texts(plain, **left),
        *texts(strong, fontWeight=600, **left),
        *texts(numbers, **right),
        *texts(bad, color=paint("bad"), **right),
    ]


def _title(chart: BarChart, layout: _Layout, height: float) -> list[Spec]:
    place = (layout.width_px / 2, height + 36, chart.axis_title)
    return texts([place], align="center", color=paint("muted"))


def texts(places: Sequence[tuple[float, float, str]], **mark: object) -> list[Spec]:
    """Draw texts of one style at places in pixels of the data area, as one layer; none if empty."""
    rows = [{"x": x, "y": y, "t": text} for x, y, text in places]
    style = {"type": "text", "aria": False, **mark}
    return _layer(style, rows, x=_pixels("x"), y=_pixels("y"), text={"field": "t"})


def _layer(mark: Spec, values: list[dict[str, Any]], **encoding: Spec) -> list[Spec]:
    """Return a layer, none without values."""
    layer = {"data": {"values": values}, "mark": mark, "encoding": encoding}
    return [layer] if values else []


def _pixels(field: str) -> Spec:
    """Return a channel whose data are pixels already."""
    return {"field": field, "type": "quantitative", "scale": None}


def _value(field: str) -> Spec:
    """Return a channel on the axis of the bars."""
    return {"field": field, "type": "quantitative"}
