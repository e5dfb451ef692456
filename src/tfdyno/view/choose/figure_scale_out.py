"""What more GPUs bring as one picture: the gain over one with its range, and the ideal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.view.choose.scale_out_text import sentence
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import area, dots, line, plane, spec
from tfdyno.view.draw.svg import Figure, Key, Spec, Table, draw
from tfdyno.words.base.amounts import table_ms
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from tfdyno.core.choose.scale_out import ScaleOut
    from tfdyno.view.draw.plane import Plane

_LEAST_ROWS = 2
_ROOM = 1.3


def scale_out_figure(series: ScaleOut, name: str) -> Figure | None:
    """Return the gain over the number of GPUs; None where one number alone is known."""
    if len(series.rows) < _LEAST_ROWS:
        return None
    return Figure(
        label=say(
            "Gain over one GPU by the number of GPUs. {sentence}", sentence=sentence(series, name)
        ),
        wide=draw(_spec(series, narrow=False)),
        narrow=draw(_spec(series, narrow=True)),
        key=(
            Key(text=say("gain over one"), variable="c1", mark="line"),
            Key(text=say("nine times in ten"), variable="c1", mark="band"),
            Key(text=say("as many times as GPUs"), variable="muted", mark="dash"),
        ),
        table=_table(series),
        caption=say("Samples a second over those of one GPU"),
    )


def _spec(series: ScaleOut, *, narrow: bool) -> Spec:
    board = _board(series, narrow=narrow)
    most = float(series.counts[-1])
    best = [board.point(row.estimate.replicas, row.gain_ratio.best) for row in series.rows]
    band = []
    for row in series.rows:
        (x, low), (_, high) = (board.point(row.estimate.replicas, end)
                               for end in (row.gain_ratio.low, row.gain_ratio.high))  # fmt: skip
        band.append((x, high, low))
    ideal = [board.point(1.0, 1.0), board.point(most, most)]
    return spec(
        board,
        [
            area(band, color=paint("c1"), opacity=0.2),
            line(ideal, color=paint("muted"), strokeWidth=1.25, strokeDash=[5, 4]),
            line(best, color=paint("c1"), strokeWidth=1.75),
            *dots(best, size=44, color=paint("c1"), opacity=1),
        ],
    )


def _board(series: ScaleOut, *, narrow: bool) -> Plane:
    most = float(series.counts[-1])
    least = min(row.gain_ratio.low for row in series.rows)
    return plane(
        x_range=(1.0 / _ROOM, most * _ROOM),
        y_range=(min(1.0, max(least, 0.1)) / _ROOM, most * _ROOM),
        x_title=say("GPUs (log scale)"),
        y_title=say("gain over one (log scale)"),
        x_words=lambda value: f"{value:,.0f}",
        y_words=lambda value: f"{significant(value, 1)}×",
        narrow=narrow,
        x_values=tuple(float(count) for count in series.counts),
    )


def _table(series: ScaleOut) -> Table:
    rows = tuple(
        (
            f"{row.estimate.replicas:,}",
            table_ms(row.estimate.step_s.best),
            significant(row.estimate.samples_per_s.best, 2),
            f"{row.gain_ratio.best:.2f}",
            f"{row.gain_ratio.low:.2f}–{row.gain_ratio.high:.2f}",
            f"{row.efficiency_ratio.best:.0%}",
        )
        for row in series.rows
    )
    return Table(
        headings=(
            "GPUs",
            say("Step ms"),
            say("Samples/s"),
            say("Gain"),
            say("9 in 10"),
            say("Efficiency"),
        ),
        rows=rows,
    )
