"""How memory moved in the steps that were looked at, and from there to where it is full."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.core.base.units import HOUR_S, format_bytes, significant
from tfdyno.view.bench.runs import round_ticks
from tfdyno.view.diagnose.growth_text import bytes_range, hours_words
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.figure_memory import HEIGHT_PX, LEFT_PX, PADDING_PX, RIGHT_PX, bytes_axis
from tfdyno.view.draw.labels import text_width
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import area, dots, line, rules
from tfdyno.view.draw.svg import FONT_PX, NARROW_PX, WIDE_PX, Figure, Key, Spec, Table, draw, framed
from tfdyno.words.base.amounts import short_hours
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.memory_outlook import MemoryOutlook
    from tfdyno.core.measure.step_facts import MemoryCourse

    Points = Sequence[tuple[float, float]]

_ROOM = 1.15
"""Height of the axis over that of what is drawn."""
_LEAST_BYTES = 4096.0
"""The least bytes on the axis: what moves by less is drawn flat."""
_BEYOND, _MOST_BEYOND = 1.3, 3.0
"""How far an outlook is drawn, in steps until it is full by the best estimate: past it, and to the
latest there may be, but not so far that nothing can be seen of the first."""
_TABLE_ROWS = 6
_MOST_TICKS, _GAP_PX = 8, 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plot:
    """Steps across, bytes up from 0."""

    first_step: float
    last_step: float
    end_bytes: float
    total_px: int
    across: str
    """What is counted on the axis below."""

    @property
    def length_px(self) -> float:
        return self.total_px - LEFT_PX - RIGHT_PX

    def at(self, step: float, value_bytes: float) -> tuple[float, float]:
        share = (step - self.first_step) / (self.last_step - self.first_step)
        height = min(1.0, max(0.0, value_bytes / self.end_bytes))
        return share * self.length_px, HEIGHT_PX * (1.0 - height)

    def line(self, points: Points, colour: str, **style: object) -> Spec:
        return line([self.at(*one) for one in points], color=paint(colour), **style)

    def wedge(self, low: Points, high: Points) -> Spec:
        """Return what lies between two lines over the same steps."""
        places = [(self.at(*one), self.at(*two)) for one, two in zip(low, high, strict=True)]
        ends = [(x, above, below) for (x, below), (_, above) in places]
        return area(ends, color=paint("muted"), opacity=0.25)

    def spec(self, drawn: Sequence[Spec]) -> Spec:
        axis = bytes_axis(self.length_px, self.end_bytes)
        return framed(self.length_px, HEIGHT_PX, PADDING_PX, [*axis, *self._steps(), *drawn])

    def _steps(self) -> list[Spec]:
        muted, bottom = paint("muted"), HEIGHT_PX
        right_px = self.length_px + RIGHT_PX
        widest_px = text_width(f"{self.last_step:,.0f}", FONT_PX) + _GAP_PX
        most = max(1, min(_MOST_TICKS, int(self.length_px / widest_px)))
        marked = [(self.at(step, 0.0)[0], f"{step:,.0f}")
                  for step in round_ticks(self.first_step, self.last_step, most)
                  if step == round(step)]  # fmt: skip
        shown = [(x, bottom + 14.0, words) for x, words in marked
                 if x + text_width(words, FONT_PX) / 2 <= right_px]  # fmt: skip
        return [
            *texts(shown, align="center", color=muted),
            *texts([(self.length_px, bottom + 31.0, self.across)], align="right", color=muted),
        ]


def moved_figure(one: MemoryCourse, whose: str) -> Figure | None:
    """Draw what was in use after each step, and its slope; None: fewer than two steps are known.

    Args:
        one: As it was seen.
        whose: The memory in words: ``the host’s memory``.
    """
    points = one.course_bytes
    if len(points) < 2:
        return None
    (first, start_bytes), (last, end_bytes) = points[0], points[-1]
    least = min(value for _, value in points)
    slope = say(
        "{best} a step ({bounds})",
        best=format_bytes(one.bytes_per_step),
        bounds=bytes_range(_interval(one)),
    )
    shown = [points[round(at * (len(points) - 1) / (_TABLE_ROWS - 1))] for at in range(_TABLE_ROWS)]
    return Figure(
        label=say(
            "What is in use of {whose} after each step: {start} at step {first:,}, {end} "
            "at step {last:,}; the slope of the steady steps is {slope}.",
            whose=whose,
            start=format_bytes(start_bytes),
            first=first,
            end=format_bytes(end_bytes),
            last=last,
            slope=slope,
        ),
        wide=draw(_moved_spec(one, least, WIDE_PX)),
        narrow=draw(_moved_spec(one, least, NARROW_PX)),
        key=(
            Key(text=say("in use"), variable="c1", mark="line"),
            Key(text=say("until it is steady, left out"), variable="c2", mark="line"),
            Key(text=say("slope, {slope}", slope=slope), variable="ink", mark="line"),
        ),
        table=Table(
            headings=(say("Step"), say("In use"), say("Above the least")),
            rows=tuple(
                (f"{step:,}", format_bytes(value), format_bytes(value - least))
                for step, value in dict(shown).items()
            ),
        ),
        caption=say("In use, above the least of {least}", least=format_bytes(least)),
    )


def _interval(one: MemoryCourse) -> Interval:
    return Interval(low=one.low_bytes_per_step, best=one.bytes_per_step,
                    high=one.high_bytes_per_step)  # fmt: skip


def _moved_spec(one: MemoryCourse, least: int, total_px: int) -> Spec:
    above = [(float(step), float(value - least)) for step, value in one.course_bytes]
    steady_from = above[-1][0] - one.steps + 1
    before = [point for point in above if point[0] <= steady_from]
    steady = [point for point in above if point[0] >= steady_from]
    most = max(_LEAST_BYTES, *(value for _, value in above))
    plot = _Plot(
        first_step=above[0][0],
        last_step=above[-1][0],
        end_bytes=_ROOM * most,
        total_px=total_px,
        across=say("steps that were looked at"),
    )
    # The slope alone is known: its line goes through the middle of the steady steps.
    middle = (steady[0][0] + steady[-1][0]) / 2
    level = median(value - one.bytes_per_step * (step - middle) for step, value in steady)
    ends = (steady[0][0], middle, steady[-1][0])
    bounds = [sorted((one.low_bytes_per_step * (step - middle),
                      one.high_bytes_per_step * (step - middle))) for step in ends]  # fmt: skip
    low, high = ([(step, level + each[side]) for step, each in zip(ends, bounds, strict=True)]
                 for side in (0, 1))  # fmt: skip
    best = [(step, level + one.bytes_per_step * (step - middle)) for step in ends]
    return plot.spec([
        plot.wedge(low, high),
        *([plot.line([*before, steady[0]], "c2", strokeWidth=1.5)] if before else []),
        plot.line(steady, "c1", strokeWidth=1.75),
        plot.line(best, "ink", strokeWidth=1.25, strokeDash=[5, 4]),
    ])  # fmt: skip


def outlook_figure(one: MemoryOutlook, whose: str) -> Figure | None:
    """Draw from what is in use at the look's end to where all is; None where that is not known.

    Args:
        one: How it moves.
        whose: The memory in words: ``the host’s memory``.
    """
    if one.full_in_steps is None or one.full_in_s is None or one.bytes_per_step.low <= 0:
        return None
    hours = one.full_in_s.times(1 / HOUR_S)
    used = format_bytes(one.used_bytes)
    all_of_it = format_bytes(one.used_bytes + one.free_bytes)
    return Figure(
        label=say(
            "What is in use of {whose} from here on at this rate: {used} now, all "
            "{most} in about {best} ({hours}).",
            whose=whose,
            used=used,
            most=all_of_it,
            best=short_hours(hours.best),
            hours=hours_words(hours),
        ),
        wide=draw(_outlook_spec(one, short_hours(hours.best), WIDE_PX)),
        narrow=draw(_outlook_spec(one, short_hours(hours.best), NARROW_PX)),
        key=(
            Key(text=say("in use at this rate"), variable="c1", mark="line"),
            Key(text=say("by the slope’s interval"), variable="muted"),
            Key(
                text=say("{most}, all there is", most=all_of_it),
                variable="bad",
                mark="line",
            ),
        ),
        table=_full_table(one, hours),
        caption=say("From here on, at the same rate"),
    )


def _full_table(one: MemoryOutlook, hours: Interval) -> Table:
    assert one.full_in_steps
    rate, steps = one.bytes_per_step, one.full_in_steps
    rows = [(say("best"), rate.best, steps.best, hours.best)]
    if rate.low < rate.high:
        rows = [(say("fastest||growth"), rate.high, steps.low, hours.low), *rows,
                (say("slowest"), rate.low, steps.high, hours.high)]  # fmt: skip
    return Table(
        headings=(say("Growth"), say("A step"), say("Steps until full"), say("Time until full")),
        rows=tuple(
            (name, format_bytes(grows), significant(until, 2), short_hours(time))
            for name, grows, until, time in rows
        ),
    )


def _outlook_spec(one: MemoryOutlook, full_in: str, total_px: int) -> Spec:
    assert one.full_in_steps
    until, rate = one.full_in_steps, one.bytes_per_step
    used, most = float(one.used_bytes), float(one.used_bytes + one.free_bytes)
    end = min(max(_BEYOND * until.best, until.high), _MOST_BEYOND * until.best)
    plot = _Plot(
        first_step=0.0,
        last_step=end,
        end_bytes=_ROOM * most,
        total_px=total_px,
        across=say("steps from here"),
    )
    places = sorted({0.0, until.low, min(until.high, end), end})
    low, high = ([(step, min(most, used + grows * step)) for step in places]
                 for grows in (rate.low, rate.high))  # fmt: skip
    (left, top), (x, _) = plot.at(0.0, most), plot.at(until.best, most)
    words = say("full in about {time}", time=full_in)
    half = text_width(words, FONT_PX, bold=True) / 2
    beside = min(max(x, half), plot.length_px - half)
    return plot.spec([
        plot.wedge(low, high),
        plot.line([(0.0, used), (until.best, most)], "c1", strokeWidth=1.75),
        *rules([(left, top, plot.length_px, top)], color=paint("bad"), strokeWidth=1.5),
        *dots([(x, top)], size=44, color=paint("bad"), opacity=1),
        *texts([(beside, top - 11.0, words)], align="center", fontWeight=600),
    ])  # fmt: skip
