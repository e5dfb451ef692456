"""How the times of a step are spread: every run as a strip of its samples, its median marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.view.bench.runs import ShownRun, StepAxis, shown_runs, sides, step_axis
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import dots, rules
from tfdyno.view.draw.svg import NARROW_PX, WIDE_PX, Figure, Key, Spec, Table, draw, framed
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.measure.measurement_document import MeasurementReport

MOST_DOTS = 1500
"""The most dots in one drawing; of longer runs every n-th sample in order of size is drawn."""
_ROW_PX, _STRIP_PX, _JITTER_PX, _BEYOND_PX = 42.0, 14.0, 14.0, 31.0
_APART_GAP_PX = 24.0
_GOLDEN = 0.6180339887


@dataclass(frozen=True, slots=True)
class _Frame:
    left_px: float
    right_px: float
    total_px: float
    axis: StepAxis
    most_ticks: int
    apart_px: float
    """Width of the part for the warm-up, whose axis goes further."""
    furthest_s: float

    @property
    def whole_px(self) -> float:
        return self.total_px - self.left_px - self.right_px

    @property
    def length_px(self) -> float:
        return self.whole_px - (self.apart_px + _APART_GAP_PX if self.furthest_s else 0.0)

    def at(self, value_s: float) -> float:
        return self.axis.share(value_s) * self.length_px

    def apart(self, value_s: float) -> float:
        """Place on the axis of the warm-up."""
        share = (value_s - self.axis.low_s) / (self.furthest_s - self.axis.low_s)
        return self.length_px + _APART_GAP_PX + max(0.0, share) * self.apart_px


def steps_figure(told: Sequence[MeasurementReport]) -> Figure:
    """Draw all runs' strips above each measurement's median with its interval."""
    axis, runs = step_axis(told), shown_runs(told)
    far_s = max((s for one in runs for s in one.left_out_s), default=0.0)
    far_s = max(far_s, axis.high_s) if far_s else 0.0
    wide = _Frame(64.0, 84.0, WIDE_PX, axis, 8, 140.0, far_s)
    narrow = _Frame(46.0, 70.0, NARROW_PX, axis, 3, 40.0, far_s)
    colours = [Key(text=say("{side}: steady samples", side=side), variable=colour, mark="box")
               for side, colour in (("A", "c1"), ("B", "c3"))] if len(told) == 2 else [
               Key(text=say("steady samples"), variable="c1")]  # fmt: skip
    if not all(one.counts for one in runs):
        colours.append(Key(text=say("no steady state, left out"), variable="c5"))
    left_out = [Key(text=say("warm-up, left out"), variable="c2")]
    return Figure(
        label=_label(told, axis),
        wide=draw(_spec(told, runs, wide)),
        narrow=draw(_spec(told, runs, narrow)),
        key=(*colours, *(left_out if any(one.left_out_s for one in runs) else ()),
             Key(text=say("median"), variable="ink", mark="line")),
        table=_table(runs),
        caption=say("Time of a step, one row per run"),
    )  # fmt: skip


def _label(told: Sequence[MeasurementReport], axis: StepAxis) -> str:
    parts = []
    for side, one in zip(sides(told), told, strict=True):
        low_s, high_s = one.summary.interval_s
        runs = say(
            "{count} runs with a median step of {median}, 95 % interval {low} to {high}",
            count=one.summary.run_count,
            median=axis.words(one.summary.median_s),
            low=axis.words(low_s),
            high=axis.words(high_s),
        )
        parts.append(f"{side}: {runs}" if side else runs)
    return say("Samples of the time of a step in every run. {parts}.", parts=say("; ").join(parts))


def _table(runs: Sequence[ShownRun]) -> Table:
    rows = []
    for one in runs:
        kept = sorted(one.run.steady_s)
        at = [kept[round(share * (len(kept) - 1))] for share in (0.0, 0.25, 0.75, 1.0)]
        values = [_ms(value) for value in (one.median_s, *at)]
        rows.append((one.name, f"{len(kept)}", *values, f"{len(one.left_out_s)}"))
    headings = (say("Run||number"), say("Steady samples"), say("Median, ms"), say("Least"),
                say("25 %"), say("75 %"), say("Most"), say("Left out||samples"))  # fmt: skip
    return Table(headings=headings, rows=tuple(rows))


def _ms(value_s: float) -> str:
    return f"{1e3 * value_s:,.4g}"


def _spec(told: Sequence[MeasurementReport], runs: Sequence[ShownRun], frame: _Frame) -> Spec:
    height = _ROW_PX * (len(runs) + len(told)) + 6.0
    return framed(frame.whole_px, height, (frame.left_px, 8, frame.right_px, 42), [
        *_axes(frame, height),
        *_dots(runs, frame),
        *_names(told, runs, frame),
        *_medians(runs, frame),
        *_intervals(told, len(runs), frame),
    ])  # fmt: skip


def _axes(frame: _Frame, height: float) -> list[Spec]:
    ticks = [(frame.at(value), words) for value, words in frame.axis.ticks(frame.most_ticks)]
    grid = [(x, 0.0, x, height) for x, _ in ticks]
    numbers = [(x, height + 14, words) for x, words in ticks]
    title = (frame.length_px, height + 33, say("time of a step, {unit}", unit=frame.axis.unit))
    muted = paint("muted")
    return [
        *rules(grid, color=paint("grid"), strokeWidth=1),
        *texts(numbers, align="center", color=muted),
        *texts([title], align="right", color=muted),
        *_apart_axis(frame, height),
    ]


def _apart_axis(frame: _Frame, height: float) -> list[Spec]:
    if not frame.furthest_s:
        return []
    left, right = frame.length_px + _APART_GAP_PX, frame.whole_px
    end = say("to {time:,.3g}", time=frame.furthest_s / frame.axis.unit_s)
    words = [(right, height + 14, end), (right, height + 33, say("warm-up"))]
    ends = [(left, 0.0, left, height), (right, 0.0, right, height)]
    return [
        *rules(ends, color=paint("grid"), strokeWidth=1),
        *texts(words, align="right", color=paint("c2")),
    ]


def _dots(runs: Sequence[ShownRun], frame: _Frame) -> list[Spec]:
    most = max(20, MOST_DOTS // max(1, len(runs)))
    steady: dict[str, list[tuple[float, float]]] = {}
    left_out: list[tuple[float, float]] = []
    for row, one in enumerate(runs):
        top = row * _ROW_PX + _STRIP_PX
        inside = [s for s in one.run.steady_s if s <= frame.axis.high_s]
        steady.setdefault(one.colour, []).extend(
            (frame.at(s), top + _jitter(at)) for at, s in enumerate(_thinned(inside, most))
        )
        left_out += [(frame.apart(s), top + _jitter(at))
                     for at, s in enumerate(_thinned(one.left_out_s, 40))]  # fmt: skip
    return [
        *(layer for name, places in steady.items()
          for layer in dots(places, size=14, opacity=0.6, color=paint(name))),
        *dots(left_out, filled=False, size=18, color=paint("c2"), strokeWidth=1.2),
    ]  # fmt: skip


def _jitter(at: int) -> float:
    """Shift up or down so that neighbours do not lie on each other."""
    return (at * _GOLDEN % 1.0 - 0.5) * _JITTER_PX


def _thinned(values: Iterable[float], most: int) -> list[float]:
    """Thin to at most ``most`` values, evenly by rank, the least and the greatest included."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return ordered
    return [ordered[round(at * (len(ordered) - 1) / (most - 1))] for at in range(most)]


def _names(
    told: Sequence[MeasurementReport], runs: Sequence[ShownRun], frame: _Frame
) -> list[Spec]:
    """Return names left, medians right, and how many samples lie beyond the end of the axis."""
    names = [(-frame.left_px, i * _ROW_PX + _STRIP_PX, one.name) for i, one in enumerate(runs)]
    right = frame.whole_px + frame.right_px
    numbers = [(right, i * _ROW_PX + _STRIP_PX, frame.axis.words(one.median_s))
               for i, one in enumerate(runs)]  # fmt: skip
    beyond = [(frame.length_px, i * _ROW_PX + _BEYOND_PX, text)
              for i, one in enumerate(runs) if (text := _beyond(one, frame.axis))]  # fmt: skip
    first = len(runs) * _ROW_PX + _STRIP_PX
    whole = [
        (
            -frame.left_px,
            first + i * _ROW_PX,
            say("{side} all", side=side) if side else say("all||runs"),
        )
        for i, side in enumerate(sides(told))
    ]
    best = [(right, first + i * _ROW_PX, frame.axis.words(one.summary.median_s))
            for i, one in enumerate(told)]  # fmt: skip
    return [
        *texts(names),
        *texts(numbers, align="right"),
        *texts(beyond, align="right", color=paint("muted"), fontSize=11),
        *texts(whole, fontWeight=600),
        *texts(best, align="right", fontWeight=600),
    ]


def _beyond(one: ShownRun, axis: StepAxis) -> str:
    """Write ``3 more, to 310 ms ›``: steady samples off the axis."""
    far = [sample_s for sample_s in one.run.steady_s if sample_s > axis.high_s]
    if not far:
        return ""
    return say(
        "{count} more, to {time:,.3g} {unit} ›",
        count=len(far),
        time=max(far) / axis.unit_s,
        unit=axis.unit,
    )


def _medians(runs: Sequence[ShownRun], frame: _Frame) -> list[Spec]:
    ends = []
    for row, one in enumerate(runs):
        x, top = frame.at(one.median_s), row * _ROW_PX
        ends.append((x, top + 3.0, x, top + 25.0))
    return rules(ends, color=paint("ink"), strokeWidth=2)


def _intervals(told: Sequence[MeasurementReport], count: int, frame: _Frame) -> list[Spec]:
    """Draw each 95 % interval as a bar, its median as a line through all rows."""
    layers: list[Spec] = []
    for row, (side, one) in enumerate(zip(sides(told), told, strict=True)):
        colour = paint("c3" if side == "B" else "c1")
        middle = (count + row) * _ROW_PX + _STRIP_PX
        low, high = (frame.at(value) for value in one.summary.interval_s)
        x = frame.at(one.summary.median_s)
        high = max(high, low + 2.0)
        layers += rules([(low, middle, high, middle)], color=colour, strokeWidth=8, opacity=0.45)
        layers += rules([(x, middle - 11, x, middle + 11)], color=paint("ink"), strokeWidth=2)
    frame_top = count * _ROW_PX - 3.0
    line = (-frame.left_px, frame_top, frame.whole_px + frame.right_px, frame_top)
    return [*rules([line], color=paint("grid"), strokeWidth=1), *layers]
