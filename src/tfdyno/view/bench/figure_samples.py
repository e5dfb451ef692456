"""Step times in the order they were taken, one small panel per run, the steady part marked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.view.bench.runs import ShownRun, StepAxis, shown_runs, step_axis, steps_upto
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import blocks, dots, line, rules
from tfdyno.view.draw.svg import NARROW_PX, WIDE_PX, Figure, Key, Spec, Table, draw, framed
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement_document import MeasurementReport

_HEIGHT_PX, _ROW_GAP_PX, _GAP_PX = 78.0, 56.0, 18.0
_MOST_POINTS = 240
"""The most points of a line; longer runs keep the least and the greatest sample of each stretch."""


@dataclass(frozen=True, slots=True)
class _Grid:
    columns: int
    left_px: float
    total_px: float
    axis: StepAxis

    @property
    def panel_px(self) -> float:
        room = self.total_px - self.left_px - 14.0 - (self.columns - 1) * _GAP_PX
        return room / self.columns

    def corner(self, index: int) -> tuple[float, float]:
        row, column = divmod(index, self.columns)
        return column * (self.panel_px + _GAP_PX), row * (_HEIGHT_PX + _ROW_GAP_PX)


def samples_figure(told: Sequence[MeasurementReport]) -> Figure:
    """Return every run from its second step to its last."""
    axis, runs = step_axis(told), shown_runs(told)
    columns = min(3 if len(runs) != 4 else 2, max(1, len(runs)))
    wide = _Grid(columns, 52.0, WIDE_PX, axis)
    narrow = _Grid(1 if len(runs) < 3 else 2, 40.0, NARROW_PX, axis)
    found = sum(one.steady for one in runs)
    return Figure(
        label=say(
            "Step times of {runs} runs in the order they were taken; a steady state was found in "
            "{count} of them and is marked by a tinted ground.",
            runs=len(runs),
            count=found,
        ),
        wide=draw(_spec(runs, wide)),
        narrow=draw(_spec(runs, narrow)),
        key=(
            Key(text=say("steady part, counted"), variable="c1", mark="line"),
            *(
                (Key(text=say("the same of B"), variable="c3", mark="line"),)
                if len(told) == 2
                else ()
            ),
            Key(text=say("warm-up, left out"), variable="c2", mark="line"),
            *(
                ()
                if all(one.counts for one in runs)
                else (Key(text=say("no steady state, left out"), variable="c5", mark="line"),)
            ),
            Key(text=say("median of the run"), variable="ink", mark="line"),
        ),
        table=Table(
            headings=(
                say("Run||number"),
                say("Steps left out"),
                say("Steps counted"),
                say("Median, ms"),
                say("Most, ms"),
            ),
            rows=tuple(_row(one) for one in runs),
        ),
        caption=say("Time of a step over each run"),
    )


def _row(one: ShownRun) -> tuple[str, ...]:
    steps = one.run.steps_per_sample
    ms = (f"{1e3 * value:,.4g}" for value in (one.median_s, max(one.run.samples_s)))
    return one.name, f"{sum(steps[: one.start]):,}", f"{sum(steps[one.start :]):,}", *ms


def _spec(runs: Sequence[ShownRun], grid: _Grid) -> Spec:
    rows = math.ceil(len(runs) / grid.columns)
    width = grid.total_px - grid.left_px - 14.0
    height = rows * (_HEIGHT_PX + _ROW_GAP_PX) - _ROW_GAP_PX
    panels = [layer for at, one in enumerate(runs) for layer in _panel(one, at, grid)]
    return framed(width, height, (grid.left_px, 34, 14, 40), panels + _units(runs, grid))


def _panel(one: ShownRun, index: int, grid: _Grid) -> list[Spec]:
    left, top = grid.corner(index)
    steps = steps_upto(one.run)
    last = steps[-1]

    def x(step: float) -> float:
        return left + grid.panel_px * step / last

    def y(value_s: float) -> float:
        return top + _HEIGHT_PX * (1.0 - grid.axis.share(value_s))

    places = [(x(step), y(value_s)) for step, value_s in zip(steps, one.run.samples_s, strict=True)]
    began = x(steps[one.start - 1]) if one.start else left
    ground = [(began, top, left + grid.panel_px, top + _HEIGHT_PX)] if one.counts else []
    median = y(one.median_s)
    return [
        *blocks(ground, "track"),
        *_lines(index, grid),
        *_curve(places[: one.start + 1], "c2"),
        *_curve(places[one.start :], one.colour),
        *_marks_above(one, places, top),
        *rules([(began, median, left + grid.panel_px, median)], color=paint("ink"), strokeWidth=1),
        *_words(one, (left, top), grid, last),
    ]  # fmt: skip


def _lines(index: int, grid: _Grid) -> list[Spec]:
    """Draw a panel's grid; the first of each row has the numbers."""
    left, top = grid.corner(index)
    found = [(top + _HEIGHT_PX * (1.0 - grid.axis.share(v)), words)
             for v, words in grid.axis.ticks(3)]  # fmt: skip
    ends = [(left, y, left + grid.panel_px, y) for y, _ in found]
    numbers = [(-8.0, y, words) for y, words in found] if index % grid.columns == 0 else []
    return [
        *rules(ends, color=paint("grid"), strokeWidth=1),
        *texts(numbers, align="right", color=paint("muted")),
    ]


def _curve(places: Sequence[tuple[float, float]], colour: str) -> list[Spec]:
    return [line(thinned(places), color=paint(colour), strokeWidth=1.25)] if places else []


def thinned(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the curve with its extremes, in at most ``_MOST_POINTS`` points or a few more."""
    if len(places) <= _MOST_POINTS:
        return list(places)
    size = math.ceil(2 * len(places) / _MOST_POINTS)
    kept = {0, len(places) - 1}
    for start in range(0, len(places), size):
        stretch = range(start, min(start + size, len(places)))
        kept |= {min(stretch, key=lambda at: places[at][1]),
                 max(stretch, key=lambda at: places[at][1])}  # fmt: skip
    return [places[at] for at in sorted(kept)]


def _marks_above(one: ShownRun, places: Sequence[tuple[float, float]], top: float) -> list[Spec]:
    """Draw crosses for samples that hold more than steps: the first of an epoch."""
    crosses = [(places[at][0], max(places[at][1], top)) for at in one.run.excluded]
    return dots(crosses, shape="cross", size=26, color=paint("c2"))


def _words(one: ShownRun, corner: tuple[float, float], grid: _Grid, last: int) -> list[Spec]:
    left, top = corner
    bottom, right = top + _HEIGHT_PX + 12.0, left + grid.panel_px
    state = grid.axis.words(one.median_s) if one.steady else say("no steady state")
    muted = paint("muted")
    return [
        *texts([(left, top - 10.0, one.name)], fontWeight=600),
        *texts([(right, top - 10.0, state)], align="right", color=muted),
        *texts([(left, bottom, "0")], color=muted, fontSize=11),
        *texts(
            [(right, bottom, say("{count:,} steps", count=last))],
            align="right",
            color=muted,
            fontSize=11,
        ),
    ]


def _units(runs: Sequence[ShownRun], grid: _Grid) -> list[Spec]:
    most = max(s for one in runs for s in one.run.samples_s)
    words = [(-grid.left_px, -26.0, grid.axis.unit)]
    if most > grid.axis.high_s:
        bottom = grid.corner(len(runs) - 1)[1] + _HEIGHT_PX + 31.0
        beyond = say(
            "cut at the top; the longest took {time:,.3g} {unit}",
            time=most / grid.axis.unit_s,
            unit=grid.axis.unit,
        )
        words.append((-grid.left_px, bottom, beyond))
    return texts(words, color=paint("muted"))
