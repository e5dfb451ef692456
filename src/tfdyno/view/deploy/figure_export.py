"""The trade-off of formats: time of a call against how far the outputs are off, with sizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, significant
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.labels import Anchor
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import Plane, padded, placed_labels, plane, rules, spec, spots
from tfdyno.view.draw.svg import Figure, Key, Spec, Table, draw
from tfdyno.words.deploy.export import HEADINGS, cells, difference_words, used_columns

if TYPE_CHECKING:
    from tfdyno.core.deploy.export import Artefact, ExportResult

FLOOR = 1e-9
"""Where an export stands that is equal to the last bit: a logarithmic axis has no 0."""
_MS = 1e3


def trade_off_figure(found: ExportResult) -> Figure | None:
    """Draw a point per format that was timed and whose difference is a number; None: none."""
    timed = [
        one
        for one in found.artefacts
        if one.verification.latencies and math.isfinite(one.verification.max_abs)
    ]
    if not timed:
        return None
    size = timed[0].verification.latencies[0].batch_size
    return Figure(
        label=_label(timed),
        wide=draw(_spec(timed, narrow=False)),
        narrow=draw(_spec(timed, narrow=True)),
        key=(
            Key(text="● kept", variable="c1", mark="none"),
            Key(text="○ failed its gate", variable="c1", mark="none"),
            Key(text="line: 95 % of the time of a call", variable="c1", mark="line"),
        ),
        table=table_of(found),
        caption=f"Time of a call at batch {size} and largest difference of an output; left and "
        "low is better",
    )


def table_of(found: ExportResult) -> Table:
    """Return all numbers of all formats."""
    rows = [cells(one) for one in found.artefacts]
    used = used_columns(rows)
    return Table(
        headings=tuple(HEADINGS[i].capitalize() for i in used),
        rows=tuple(tuple(row[i] for i in used) for row in rows),
    )


def _call_ms(one: Artefact) -> tuple[float, float, float]:
    taken = one.verification.latencies[0].exported_s
    return taken.low * _MS, taken.best * _MS, taken.high * _MS


def _apart(one: Artefact) -> float:
    return max(one.verification.max_abs, FLOOR)


def _spec(timed: list[Artefact], *, narrow: bool) -> Spec:
    board = _board(timed, narrow=narrow)
    before_ms = _original_ms(timed)
    x, bottom = board.x.at(before_ms), board.y.length_px
    line = [(x, 0.0), (x, bottom)]
    words = "model in TensorFlow"
    side = x - 6
    ranges = _ranges(timed, board)
    lines = [line, *([(x1, y1), (x2, y2)] for x1, y1, x2, y2 in ranges)]
    layers: list[Spec] = [
        *rules([(x, 0.0, x, bottom)], color=paint("ink"), strokeWidth=1.25, strokeDash=[3, 3]),
        *texts([(side, 8.0, words)], align="right"),
        *rules(ranges, color=paint("c1"), strokeWidth=6, opacity=0.3),
        _dots(timed, board),
    ]
    anchors = [_anchor(one, board) for one in timed]
    return spec(board, layers + placed_labels(board, anchors, lines, [(side, 8.0, words)]))


def _board(timed: list[Artefact], *, narrow: bool) -> Plane:
    size = timed[0].verification.latencies[0].batch_size
    times = [ms for one in timed for ms in _call_ms(one)] + [_original_ms(timed)]
    return plane(
        x_range=padded(times, below=1.6, above=2.6 if narrow else 1.8),
        y_range=padded([_apart(one) for one in timed] + [1e-4], below=5.0, above=5.0),
        x_title=f"ms for a call at batch {size} (log scale)",
        y_title="largest difference of an output (log scale)",
        x_words=lambda value: significant(value, 1),
        y_words=lambda value: "equal" if value <= FLOOR * 1.01 else f"{value:.0e}",
        narrow=narrow,
    )


def _original_ms(timed: list[Artefact]) -> float:
    return min(one.verification.latencies[0].original_s.best for one in timed) * _MS


def _ranges(timed: list[Artefact], board: Plane) -> list[tuple[float, float, float, float]]:
    ends = []
    for one in timed:
        low, _, high = _call_ms(one)
        y = board.point(1.0, _apart(one))[1]
        ends.append((board.x.at(low), y, board.x.at(high), y))
    return ends


def _dots(timed: list[Artefact], board: Plane) -> Spec:
    rows = []
    for one in timed:
        x, y = board.point(_call_ms(one)[1], _apart(one))
        fill = paint("c1") if one.kept else paint("bg")
        rows.append({"x": x, "y": y, "fill": fill, "tip": _tip(one)})
    return spots(rows, strokeWidth=1.75, size=90, stroke=paint("c1"))


def _anchor(one: Artefact, board: Plane) -> Anchor:
    x, y = board.point(_call_ms(one)[1], _apart(one))
    text = f"{one.format}, {format_bytes(one.size_bytes, 2)}"
    accuracy = one.verification.accuracy
    if accuracy:
        text += f", {100 * accuracy.after_ratio:.1f} %"
    return Anchor(x=x, y=y, text=text, radius=6.0, bold=one.kept, must=True, rings=7)


def _tip(one: Artefact) -> str:
    apart = difference_words(one.verification.max_abs)
    return (
        f"{one.format}: {_call_ms(one)[1]:.3g} ms, largest difference {apart}, "
        f"{format_bytes(one.size_bytes)}"
    )


def _label(timed: list[Artefact]) -> str:
    listed = "; ".join(map(_tip, timed))
    return f"Scatter plot of time of a call against the largest difference of an output. {listed}."
