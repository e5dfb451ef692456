"""The steps of a training one after the other, with those marked that took much longer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.view.bench.figure_samples import thinned
from tfdyno.view.bench.runs import round_ticks
from tfdyno.view.diagnose.course import (
    KINDS,
    ends,
    longest_stalls,
    range_words,
    stall_kind,
    stall_parts,
    stall_words,
    step_count,
)
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.labels import text_width
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import LogAxis, line, rules, spots
from tfdyno.view.draw.svg import FONT_PX, NARROW_PX, WIDE_PX, Figure, Key, Spec, Table, draw, framed
from tfdyno.words.base.amounts import step_unit
from tfdyno.words.base.language import say
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import StepDiagnosis
    from tfdyno.core.measure.step_facts import TimelineFacts

COLOURS = dict(zip(KINDS, ("c4", "c5", "bad", "c3", "c2", "c5", "muted"), strict=True))
LOG_RATIO = 5.0
"""Where the longest step takes more than so many of the shortest the axis is logarithmic."""
_LEFT_PX, _RIGHT_PX = {WIDE_PX: 56.0, NARROW_PX: 46.0}, 14.0
_HEIGHT_PX = {WIDE_PX: 240.0, NARROW_PX: 200.0}
_MOST_LABELS = {WIDE_PX: 5, NARROW_PX: 2}


@dataclass(frozen=True, slots=True)
class _Frame:
    low_s: float
    high_s: float
    is_log: bool
    steps: int
    total_px: int
    factor_s: float

    @property
    def width_px(self) -> float:
        return self.total_px - _LEFT_PX[self.total_px] - _RIGHT_PX

    @property
    def height_px(self) -> float:
        return _HEIGHT_PX[self.total_px]

    def x(self, step: float) -> float:
        return self.width_px * step / self.steps

    def y(self, value_s: float) -> float:
        if self.is_log:
            return self.height_px - self._log.at(value_s)
        share = (value_s - self.low_s) / (self.high_s - self.low_s)
        return self.height_px * (1.0 - min(1.0, max(0.0, share)))

    def ticks(self) -> tuple[float, ...]:
        if self.is_log:
            return self._log.ticks(least_px=24.0)
        low, high = self.low_s / self.factor_s, self.high_s / self.factor_s
        return tuple(mark * self.factor_s for mark in round_ticks(low, high, 5))

    @property
    def _log(self) -> LogAxis:
        return LogAxis(self.low_s, self.high_s, self.height_px)


def course_figure(timeline: TimelineFacts | None, one: StepDiagnosis) -> Figure | None:
    """Return all steps that were looked at; None where fewer than two are known."""
    if timeline is None or len(timeline.whole_s) < 2 or min(timeline.whole_s) <= 0:
        return None
    kinds = {stall_kind(each) for each in timeline.stalls}
    held = Key(
        text=say("the step alone, {held}", held=seconds_words(one.held_s)),
        variable="ink",
        mark="line",
    )
    return Figure(
        label=say(
            "Time of each step in the order they ran, {steps}; {count} that took much "
            "longer are marked by what was in them.",
            steps=range_words(timeline),
            count=len(timeline.stalls),
        ),
        wide=draw(_spec(timeline, one, _frame(timeline, one, WIDE_PX))),
        narrow=draw(_spec(timeline, one, _frame(timeline, one, NARROW_PX))),
        key=(
            Key(text=say("time from one step to the next"), variable="c1", mark="line"),
            *((held,) if one.held_s else ()),
            *(
                Key(text=say("long: {kind}", kind=say(kind)), variable=COLOURS[kind])
                for kind in KINDS
                if kind in kinds
            ),
        ),
        table=_table(timeline),
        caption=say("Every step in its order"),
    )


def _frame(timeline: TimelineFacts, one: StepDiagnosis, total_px: int) -> _Frame:
    values = [*timeline.whole_s, *(each.whole_s for each in timeline.stalls)]
    values += [one.held_s] if one.held_s else []
    low_s, high_s = min(values), max(values)
    is_log = high_s > LOG_RATIO * low_s
    factor_s, _ = step_unit(one.step_s)
    low_s, high_s = (low_s / 1.25, high_s * 1.25) if is_log else (0.0, 1.08 * high_s)
    return _Frame(low_s, high_s, is_log, step_count(timeline), total_px, factor_s)


def _spec(timeline: TimelineFacts, one: StepDiagnosis, frame: _Frame) -> Spec:
    last = ends(timeline)
    places = [(frame.x(step), frame.y(s)) for step, s in zip(last, timeline.whole_s, strict=True)]
    held_px = frame.y(one.held_s) if one.held_s else 0.0
    return framed(frame.width_px, frame.height_px, (_LEFT_PX[frame.total_px], 40, _RIGHT_PX, 40), [
        *_axes(frame),
        line(thinned(places), color=paint("c1"), strokeWidth=1.25),
        *(rules([(0.0, held_px, frame.width_px, held_px)], color=paint("ink"), strokeWidth=1.5,
                strokeDash=[5, 4]) if one.held_s else []),
        *_stalls(timeline, frame),
        *_labels(timeline, frame),
    ])  # fmt: skip


def _axes(frame: _Frame) -> list[Spec]:
    muted, bottom = paint("muted"), frame.height_px
    up = [(frame.y(value), f"{value / frame.factor_s:,.6g}") for value in frame.ticks()]
    unit = next(sign for s, sign in ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")) if s == frame.factor_s)
    scale = say(", log scale") if frame.is_log else ""
    title = say("{unit} of a step{scale}", unit=unit, scale=scale)
    most = 10 if frame.total_px == WIDE_PX else 4
    across = [(frame.x(step), f"{step:,.0f}") for step in round_ticks(0, frame.steps, most)
              if step == math.floor(step)]  # fmt: skip
    return [
        *rules([(0.0, y, frame.width_px, y) for y, _ in up], color=paint("grid"), strokeWidth=1),
        *texts([(-8.0, y, words) for y, words in up], align="right", color=muted),
        *texts([(-_LEFT_PX[frame.total_px], -28.0, title)], color=muted),
        *texts([(x, bottom + 14.0, words) for x, words in across], align="center", color=muted),
        *texts([(frame.width_px, bottom + 32.0, say("steps"))], align="right", color=muted),
    ]


def _stalls(timeline: TimelineFacts, frame: _Frame) -> list[Spec]:
    layers = []
    for kind in KINDS:
        rows = [{"x": frame.x(each.step), "y": frame.y(each.whole_s), "tip": stall_words(each)}
                for each in timeline.stalls if stall_kind(each) == kind]  # fmt: skip
        if rows:
            layers.append(spots(rows, filled=True, size=46, color=paint(COLOURS[kind]),
                                stroke=paint("bg"), strokeWidth=1))  # fmt: skip
    return layers


def _labels(timeline: TimelineFacts, frame: _Frame) -> list[Spec]:
    """Return what the longest took, above their marks, where no other label stands."""
    taken: list[tuple[float, float, float]] = []
    places = []
    for each in longest_stalls(timeline, _MOST_LABELS[frame.total_px]):
        words = seconds_words(each.whole_s)
        half, y = text_width(words, FONT_PX) / 2, frame.y(each.whole_s) - 14.0
        x = min(max(frame.x(each.step), half), frame.width_px - half)
        if all(abs(x - other) > half + width + 6 or abs(y - at) > 16 for other, at, width in taken):
            taken.append((x, y, half))
            places.append((x, y, words))
    return texts(places, align="center", fontWeight=600)


def _table(timeline: TimelineFacts) -> Table:
    rows = [(f"{each.step:,}", seconds_words(each.whole_s), stall_parts(each))
            for each in timeline.stalls]  # fmt: skip
    if not rows:
        shown = sorted(timeline.whole_s)
        at = {say("shortest"): 0.0, say("middle"): 0.5, say("longest"): 1.0}
        rows = [(name, seconds_words(shown[round(share * (len(shown) - 1))]), "")
                for name, share in at.items()]  # fmt: skip
    headings = (say("Step"), say("It took"), say("With"))
    return Table(headings=headings, rows=tuple(rows), text_columns=frozenset((0, 2)))
