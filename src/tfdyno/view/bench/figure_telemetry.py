"""What the machine did during the runs: lanes of utilisation, memory, power, clocks and disk."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from tfdyno.view.bench.runs import ShownRun, round_ticks, shown_runs
from tfdyno.view.bench.telemetry_lanes import Column, Lane, lanes
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.labels import text_width
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import blocks, line, rules
from tfdyno.view.draw.svg import FONT_PX, NARROW_PX, WIDE_PX, Figure, Key, Spec, Table, draw, framed
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.measure.measurement_document import MeasurementReport

_LANE_PX, _BETWEEN_PX, _GAP_PX = 56.0, 40.0, 8.0
_LEAST_LABEL_PX = 34.0
_MOST_POINTS = 500
"""The most points of a line; of longer ones every n-th point is drawn, as the mean of its
neighbours."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where each run lies on the common axis."""

    left_px: float
    length_px: float
    runs: tuple[ShownRun, ...]
    starts_px: tuple[float, ...]
    px_per_s: float

    def x(self, run: int, at_s: float) -> float:
        return self.starts_px[run] + at_s * self.px_per_s


def telemetry_figure(told: Sequence[MeasurementReport]) -> Figure | None:
    """Draw all runs in the order they were made; None where nothing was recorded."""
    runs = tuple(
        sorted((one for one in shown_runs(told) if one.run.telemetry.at_s),
               key=lambda one: one.run.order)
    )  # fmt: skip
    found = lanes(runs)
    if not found:
        return None
    throttled = any(any(marked) for lane in found for marked in lane.marked)
    names = say(", ").join(lane.title for lane in found)
    return Figure(
        label=say(
            "Telemetry of {count} runs in the order they were made, each from the start of its "
            "process: {names}.",
            count=len(runs),
            names=names,
        ),
        wide=draw(_spec(found, _frame(runs, 52.0, WIDE_PX))),
        narrow=draw(_spec(found, _frame(runs, 46.0, NARROW_PX))),
        key=(
            Key(text=say("tinted: the steady part of each run, which counts"), variable="ink",
                mark="none"),
            *(Key(text=one.name, variable=one.colour, mark="line")
              for one in found[0].lines if one.card),
            *((Key(text=say("the card lowered its clock"), variable="bad"),) if throttled else ()),
        ),
        table=_table(runs, found),
        caption=say("Telemetry, all runs one after the other"),
    )  # fmt: skip


def _frame(runs: tuple[ShownRun, ...], left_px: float, total_px: float) -> _Frame:
    length = total_px - left_px - 14.0
    lasts_s = [one.run.telemetry.at_s[-1] for one in runs]
    px_per_s = (length - _GAP_PX * (len(runs) - 1)) / (sum(lasts_s) or 1.0)
    starts, at = list[float](), 0.0
    for last_s in lasts_s:
        starts.append(at)
        at += last_s * px_per_s + _GAP_PX
    return _Frame(left_px, length, runs, tuple(starts), px_per_s)


def _table(runs: Sequence[ShownRun], found: Sequence[Lane]) -> Table:
    """Write means over the steady part of each run."""
    headings, columns = [say("Run||number")], list[list[str]]()
    for lane in found:
        for one in lane.lines:
            parts = [lane.title, one.name, lane.unit]
            headings.append(say(", ||clauses").join(filter(None, parts)))
            columns.append([_mean_words(run, column)
                            for run, column in zip(runs, one.runs, strict=True)])  # fmt: skip
        if any(any(marked) for marked in lane.marked):
            headings.append(say("Clock lowered, % of points"))
            columns.append([_mean_words(run, tuple(100.0 * one for one in marked))
                            for run, marked in zip(runs, lane.marked, strict=True)])  # fmt: skip
    rows = zip((one.name for one in runs), *columns, strict=True)
    return Table(headings=tuple(headings), rows=tuple(rows))


def _mean_words(one: ShownRun, column: Column) -> str:
    at_s = one.run.telemetry.at_s
    inside = [value for at, value in zip(at_s, column, strict=False)
              if value is not None and one.steady_began_s <= at <= one.ended_s]  # fmt: skip
    return f"{sum(inside) / len(inside):,.3g}" if inside else "–"


def _spec(found: Sequence[Lane], frame: _Frame) -> Spec:
    height = len(found) * (_LANE_PX + _BETWEEN_PX) - _BETWEEN_PX
    return framed(frame.length_px, height, (frame.left_px, 46, 14, 42), [
        *_grounds(len(found), frame),
        *(layer for at, lane in enumerate(found) for layer in _lane(lane, at, frame)),
        *_run_names(frame),
        *_foot(frame, height),
    ])  # fmt: skip


def _top(index: int) -> float:
    return index * (_LANE_PX + _BETWEEN_PX)


def _grounds(count: int, frame: _Frame) -> list[Spec]:
    grounds: list[tuple[float, float, float, float]] = []
    for at, one in enumerate(frame.runs):
        if not one.counts:
            continue
        end_s = min(one.ended_s, one.run.telemetry.at_s[-1])
        began_s = min(one.steady_began_s, end_s)
        grounds += [
            (frame.x(at, began_s), _top(lane), frame.x(at, end_s), _top(lane) + _LANE_PX)
            for lane in range(count)
        ]
    return blocks(grounds, "track")


def _lane(lane: Lane, index: int, frame: _Frame) -> list[Spec]:
    top = _top(index)
    end = 1.04 * lane.end
    ticks = [(top + _LANE_PX * (1.0 - v / end), f"{v:,.10g}") for v in round_ticks(0, end, 2)]
    grid = [(0.0, y, frame.length_px, y) for y, _ in ticks]
    numbers = [(-8.0, y, words) for y, words in ticks]
    return [
        *rules(grid, color=paint("grid"), strokeWidth=1),
        *texts(numbers, align="right", color=paint("muted")),
        *_title(lane, top - 16.0, frame),
        *_curves(lane, top, end, frame),
        *_throttling(lane, top, frame),
    ]


def _title(lane: Lane, y: float, frame: _Frame) -> list[Spec]:
    words = say(", ||clauses").join([lane.title, lane.unit])
    layers = texts([(-frame.left_px, y, words)], fontWeight=600)
    x = -frame.left_px + text_width(words, FONT_PX, bold=True) + 14.0
    for one in lane.lines:
        if one.name and not one.card:
            layers += texts([(x, y, one.name)], color=paint(one.colour))
            x += text_width(one.name, FONT_PX) + 14.0
    return layers


def _curves(lane: Lane, top: float, end: float, frame: _Frame) -> list[Spec]:
    layers: list[Spec] = []
    for one in lane.lines:
        for at, column in enumerate(one.runs):
            at_s = frame.runs[at].run.telemetry.at_s
            for stretch in _stretches(zip(at_s, column, strict=False)):
                places = [(frame.x(at, t), top + _LANE_PX * (1.0 - min(v, end) / end))
                          for t, v in _thinned(stretch)]  # fmt: skip
                layers.append(line(places, color=paint(one.colour), strokeWidth=1.25))
    return layers


def _stretches(points: Iterable[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Return runs of readable points, two at least: a line breaks where one is missing."""
    grouped = groupby(points, key=lambda point: point[1] is not None)
    found = [[(t, v) for t, v in group if v is not None] for known, group in grouped if known]
    return [stretch for stretch in found if len(stretch) > 1]


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    size = -(-len(points) // _MOST_POINTS)
    if size == 1:
        return points
    parts = [points[at : at + size] for at in range(0, len(points), size)]
    return [(sum(t for t, _ in part) / len(part), sum(v for _, v in part) / len(part))
            for part in parts]  # fmt: skip


def _throttling(lane: Lane, top: float, frame: _Frame) -> list[Spec]:
    found = []
    for at, marked in enumerate(lane.marked):
        at_s = frame.runs[at].run.telemetry.at_s
        for place, lowered in enumerate(marked):
            if lowered:
                began_s = at_s[place - 1] if place else 0.0
                found.append((frame.x(at, began_s), top + _LANE_PX - 4.0,
                              frame.x(at, at_s[place]), top + _LANE_PX))  # fmt: skip
    return blocks(found, "bad")


def _run_names(frame: _Frame) -> list[Spec]:
    """Write the runs' names over the first lane, left out where they would touch."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    free = 0.0
    for at, one in enumerate(frame.runs):
        x = frame.starts_px[at]
        room = one.run.telemetry.at_s[-1] * frame.px_per_s
        words = one.name if room > _LEAST_LABEL_PX + 8 else one.short_name
        if x >= free:
            found.setdefault(one.colour, []).append((x, -37.0, words))
            free = x + text_width(words, FONT_PX) + 4.0
    return [layer for name, places in found.items() for layer in texts(places, color=paint(name))]


def _foot(frame: _Frame, height: float) -> list[Spec]:
    """Draw where runs end, and a rule that says how long a time is."""
    total_s = sum(one.run.telemetry.at_s[-1] for one in frame.runs)
    length_s = round_ticks(0.0, max(total_s, 1.0) / 4, 2)[-1]
    x2 = length_s * frame.px_per_s
    y = height + 16.0
    ends = [(0.0, y, x2, y), (0.0, y - 4, 0.0, y + 4), (x2, y - 4, x2, y + 4)]
    return [
        *rules(ends, color=paint("muted"), strokeWidth=1),
        *texts([(x2 + 8.0, y, f"{length_s:,.10g} s")], color=paint("muted")),
    ]
