"""Figures of a service: p99 as the rate rises, and cost against p99."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.labels import Anchor
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import Plane, line, padded, placed_labels, plane, rules, spec, spots
from tfdyno.view.draw.svg import Figure, Key, Spec, Table, draw
from tfdyno.words.base.language import say
from tfdyno.words.choose.advice import brief
from tfdyno.words.choose.serving_size import machine_words, ms, per_s, seller_words, usd

if TYPE_CHECKING:
    from tfdyno.core.choose.serving_size import LatencyCurve, ServingCandidate, ServingSize

_COLOURS = ("c1", "c3", "c2", "c4")
_MOST_LABELS = {True: 0, False: 14}
_BEYOND = 4.0
"""Times the promise up to which a curve is drawn."""


def rate_figure(size: ServingSize) -> Figure | None:
    """Draw p99 of one replica against its rate, a line per picked card; None without one."""
    curves = [one for one in size.curves if len(one.rate_per_s) > 1]
    if not curves:
        return None
    named = ", ".join(
        say("{card} up to {rate}", card=brief(one.gpu_name), rate=per_s(one.most_per_s))
        for one in curves
    )
    return Figure(
        label=say(
            "p99 of a request against the rate at one replica: in time on {named}.", named=named
        ),
        wide=draw(_rate_spec(size, curves, narrow=False)),
        narrow=draw(_rate_spec(size, curves, narrow=True)),
        key=(
            *(Key(text=brief(one.gpu_name), variable=_colour(index), mark="line")
              for index, one in enumerate(curves)),
            Key(text=say("the same, model at the high end"), variable="ink", mark="none"),
        ),
        table=Table(
            headings=(say("Card"), say("Requests/s"), say("p50, ms"), say("p99, ms"),
                      say("p99 high, ms")),
            rows=tuple(row for one in curves for row in _rows(one)),
        ),
        caption=say("p99 at one replica as its rate rises"),
    )  # fmt: skip


def _colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def _rows(one: LatencyCurve) -> list[tuple[str, ...]]:
    return [
        (brief(one.gpu_name), f"{rate:,.4g}", *(f"{1e3 * value:.3g}" for value in values))
        for rate, *values in zip(one.rate_per_s, one.p50_s, one.p99_s, one.p99_high_s, strict=True)
    ]


def _rate_spec(size: ServingSize, curves: list[LatencyCurve], *, narrow: bool) -> Spec:
    most_s = _BEYOND * size.goal.p99_s
    shown = [min(value, most_s) for one in curves for value in (*one.p99_s, *one.p99_high_s)]
    board = plane(
        x_range=padded([rate for one in curves for rate in one.rate_per_s], below=1.1, above=1.1),
        y_range=padded([*shown, size.goal.p99_s], below=1.3, above=1.2),
        x_title=say("requests per second at one replica (log scale)"),
        y_title=say("p99 (log scale)"),
        x_words=_rate_tick,
        y_words=ms,
        narrow=narrow,
    )
    layers: list[Spec] = []
    for index, one in enumerate(curves):
        colour = paint(_colour(index))
        for values, style in ((one.p99_s, {}), (one.p99_high_s, {"strokeDash": [4, 4]})):
            points = [
                board.point(rate, value)
                for rate, value in zip(one.rate_per_s, values, strict=True)
                if value <= most_s
            ]
            layers.append(line(points, color=colour, strokeWidth=1.75, **style))
    return spec(board, [*layers, *_promise(size, board)])


def _rate_tick(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1.0 else f"{rate:g}"


def _promise(size: ServingSize, board: Plane) -> list[Spec]:
    y = board.y.length_px - board.y.at(size.goal.p99_s)
    right = board.x.length_px
    dashed = rules([(0.0, y, right, y)], color=paint("ink"), strokeWidth=1.25, strokeDash=[3, 3])
    return [*dashed, *texts([(4.0, y - 9, say("{ms} promised", ms=ms(size.goal.p99_s)))])]


def cost_figure(size: ServingSize) -> Figure | None:
    """Draw cost per million requests against p99, the cheapest offer of every card."""
    points = _cheapest(size)
    if not points:
        return None
    front = [one for one in points if one.pareto]
    return Figure(
        label=say(
            "Cost per million requests against p99 at the peak for {count} cards. "
            "Nothing is both cheaper and sooner than {machines}.",
            count=len(points),
            machines=say("; ").join(
                f"{machine_words(one)}, {usd(one.usd_per_million or 0.0)}" for one in front
            ),
        ),
        wide=draw(_cost_spec(size, points, narrow=False)),
        narrow=draw(_cost_spec(size, points, narrow=True)),
        key=(
            Key(text=say("line: nothing is both cheaper and sooner"), variable="c1", mark="none"),
        ),
        table=Table(
            headings=(
                say("Machines"),
                say("p50, ms"),
                say("p99, ms"),
                say("US$ per million"),
                say("US$ a month"),
            ),
            rows=tuple(_cost_row(one) for one in points),
        ),
        caption=say("Cost and latency at the peak"),
    )


def _cheapest(size: ServingSize) -> list[ServingCandidate]:
    """Choose of every card the cheapest offer, those that nothing beats, and the picks."""
    picked = {one.candidate.slug for one in size.picks}
    seen: set[str] = set()
    found = []
    for one in size.ranking:
        if one.verdict != "feasible" or not one.usd_per_million or one.at_peak is None:
            continue
        if one.replica.gpu not in seen or one.pareto or one.slug in picked:
            found.append(one)
        seen.add(one.replica.gpu)
    return found


def _cost_row(one: ServingCandidate) -> tuple[str, ...]:
    peak = one.at_peak
    return (
        f"{machine_words(one)}, {seller_words(one)}",
        f"{1e3 * peak.p50_s:.3g}" if peak else "–",
        f"{1e3 * peak.p99_s:.3g}" if peak else "–",
        f"{one.usd_per_million or 0.0:,.2f}",
        f"{one.usd_per_month or 0.0:,.0f}",
    )


def _at(one: ServingCandidate) -> tuple[float, float]:
    return (one.at_peak.p99_s if one.at_peak else 0.0), one.usd_per_million or 0.0


def _cost_spec(size: ServingSize, points: list[ServingCandidate], *, narrow: bool) -> Spec:
    board = plane(
        x_range=padded([_at(one)[0] for one in points], below=1.05, above=1.25),
        y_range=padded([_at(one)[1] for one in points], below=1.4, above=1.4),
        x_title=say("p99 at the peak (log scale)"),
        y_title=say("US$ per million requests (log scale)"),
        x_words=ms,
        y_words=usd,
        narrow=narrow,
    )
    front = sorted(board.point(*_at(one)) for one in points if one.pareto)
    layers = [line(front, color=paint("c1"), strokeWidth=1.75)] if len(front) > 1 else []
    titles = {one.candidate.slug for one in size.picks}
    rows, anchors = [], []
    for index, one in enumerate(points):
        x, y = board.point(*_at(one))
        must = one.slug in titles
        rows.append({"x": x, "y": y, "color": paint("c1" if must or one.pareto else "c5"),
                     "tip": _tip(one)})  # fmt: skip
        text = machine_words(one) if must or one.pareto or index < _MOST_LABELS[narrow] else ""
        anchors.append(Anchor(x=x, y=y, text=text, radius=4.0, bold=must, must=must,
                              rings=7 if must else 2))  # fmt: skip
    dots = spots(rows[::-1], filled=True, size=50)
    return spec(board, [*layers, dots, *placed_labels(board, anchors, [front])])


def _tip(one: ServingCandidate) -> str:
    late_s, cost_usd = _at(one)
    return say(
        "{machine}, {seller}: {ms}, {usd} a million",
        machine=machine_words(one),
        seller=seller_words(one),
        ms=ms(late_s),
        usd=usd(cost_usd),
    )
