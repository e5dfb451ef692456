"""The cost × time figure: every offer as a point, the frontier, the limits, the pick's range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.choose.advice import Candidate
from tfdyno.view.choose.cards import card_name, offer_words, recommended
from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.labels import Anchor
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import Plane, line, padded, placed_labels, plane, rules, spec, spots
from tfdyno.view.draw.svg import Figure, Key, Spec, Table, draw
from tfdyno.words.base import amounts
from tfdyno.words.base.language import joined, say
from tfdyno.words.base.names import named as name_in_words

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Advice

_PLOTTED = ("feasible", "too late", "too dear")
_NEAREST_LABELS = {"wide": 24, "narrow": 8}


@dataclass(frozen=True, slots=True)
class _Point:
    candidate: Candidate
    hours: float
    usd: float
    rank: int
    """0: a pick, 1: on the frontier, 2: any other."""
    title: str


def priced(advice: Advice) -> list[Candidate]:
    """Return the cheapest offer of each card, count and kind of rent, in the ranking's order.

    Cards that cost nothing (the user's own) have no place on a logarithmic axis and are left out.
    """
    found: dict[tuple[str, int, bool], Candidate] = {}
    picked = {pick.candidate.slug for pick in advice.picks}
    kept = []
    for card in advice.ranking:
        if card.verdict not in _PLOTTED or card.cost_usd is None or card.cost_usd.low <= 0:
            continue
        key = (card.gpu, card.count, card.spot)
        first = found.setdefault(key, card)
        if first is card or card.slug in picked or card.pareto:
            kept.append(card)
    return kept


def frontier(advice: Advice) -> list[Candidate]:
    """Return offers that nothing beats on both cost and time, fastest first."""
    front = [card for card in priced(advice) if card.pareto and card.verdict == "feasible"]
    return sorted(front, key=lambda card: card.hours.best)


def cost_figure(advice: Advice) -> Figure | None:
    """Return the scatter plot, or ``None`` when no candidate has a price."""
    points = _points(advice)
    if not points:
        return None
    return Figure(
        label=_label(advice, points),
        wide=draw(_spec(advice, points, narrow=False)),
        narrow=draw(_spec(advice, points, narrow=True)),
        key=(
            Key(text=say("● on demand"), variable="ink", mark="none"),
            Key(text=say("○ spot"), variable="ink", mark="none"),
            Key(text=say("line: nothing is both cheaper and faster"), variable="c1", mark="none"),
            Key(text=_shaded(advice), variable="c1", mark="none"),
        ),
        table=_table(points),
    )


def _points(advice: Advice) -> list[_Point]:
    titles: dict[str, list[str]] = {}
    for pick in advice.picks:
        titles.setdefault(pick.candidate.slug, []).append(pick.title)
    points = []
    for card in priced(advice):
        named = titles.get(card.slug, [])
        on_front = card.pareto and card.verdict == "feasible"
        title = " · ".join([card_name(card).replace(" × ", "×"), *map(name_in_words, named)])
        rank = 0 if named else 1 if on_front else 2
        usd = card.cost_usd.best if card.cost_usd else 0.0
        points.append(_Point(card, card.hours.best, usd, rank, title))
    return sorted(points, key=lambda point: point.rank)


def _spec(advice: Advice, points: list[_Point], *, narrow: bool) -> Spec:
    board = _board(advice, points, narrow=narrow)
    front = [board.point(c.hours.best, c.cost_usd.best) for c in frontier(advice) if c.cost_usd]
    lines: list[list[tuple[float, float]]] = [front] if len(front) > 1 else []
    layers = []
    for band in _bands(advice, board):
        layers.append(line(band, color=paint("c1"), strokeWidth=16, opacity=0.22))
        lines.append(band)
    limits, limit_lines = _limits(advice, board)
    layers += limits
    lines += limit_lines
    if len(front) > 1:
        layers.append(line(front, color=paint("c1"), strokeWidth=1.75))
    layers.append(_dots(points, board))
    return spec(board, layers + placed_labels(board, _anchors(points, board, narrow), lines))


def _board(advice: Advice, points: list[_Point], *, narrow: bool) -> Plane:
    hours = [point.hours for point in points]
    usd = [point.usd for point in points]
    if advice.run.deadline_h:
        hours.append(advice.run.deadline_h)
    return plane(
        x_range=padded(hours, below=1.3, above=1.9 if narrow else 1.6),
        y_range=padded(usd, below=1.5, above=1.5),
        x_title=say("hours for the whole run (log scale)"),
        y_title=say("US$ for the whole run (log scale)"),
        x_words=_hours_tick,
        y_words=lambda value: f"${value:,.2f}" if value < 1 else f"${value:,.0f}",
        narrow=narrow,
    )


def _hours_tick(value: float) -> str:
    return f"{value * 60:.0f} min" if value < 1 else f"{value:,.0f} h"


def _bands(advice: Advice, board: Plane) -> list[list[tuple[float, float]]]:
    """Return the pick's range of time as a diagonal (cost is hours × price), its prices upright."""
    card = recommended(advice)
    if card is None or card.cost_usd is None or card.cost_usd.low <= 0:
        return []
    if card.verdict not in _PLOTTED:
        return []
    hours, usd, prices = card.hours, card.cost_usd, card.price_range
    bands = [
        [
            board.point(hours.low, usd.low / prices.low_ratio),
            board.point(hours.high, usd.high / prices.high_ratio),
        ]
    ]
    if prices.low_ratio < prices.high_ratio:
        ends = usd.best * prices.low_ratio, usd.best * prices.high_ratio
        bands.append([board.point(hours.best, end) for end in ends])
    return bands


def _shaded(advice: Advice) -> str:
    """Say what is shaded: the range of the pick's time, and of its price where that is known."""
    card = recommended(advice)
    moves = card is not None and card.price_range.low_ratio < card.price_range.high_ratio
    if moves:
        return say("shaded: the pick, 9 times in 10; upright: its prices")
    return say("shaded: the pick, 9 times in 10")


def _limits(advice: Advice, board: Plane) -> tuple[list[Spec], list[list[tuple[float, float]]]]:
    """Draw deadline and budget as dashed lines with words, and what labels keep clear of."""
    run, bottom, right = advice.run, board.y.length_px, board.x.length_px
    ends: list[tuple[float, float, float, float]] = []
    words, blocked = [], []
    if run.deadline_h:
        x = board.x.at(run.deadline_h)
        ends.append((x, 0.0, x, bottom))
        words.append((x - 6, 8.0, say("{hours} h deadline", hours=amounts.plain(run.deadline_h))))
        blocked.append([(x - 90, 8.0), (x, 8.0)])
    if run.budget_usd and board.y.low < run.budget_usd < board.y.high:
        y = bottom - board.y.at(run.budget_usd)
        ends.append((0.0, y, right, y))
        words.append((right, y - 9, say("${budget:,.0f} budget", budget=run.budget_usd)))
        blocked.append([(right - 80, y - 9), (right, y - 9)])
    dashed = rules(ends, color=paint("ink"), strokeWidth=1.25, strokeDash=[3, 3])
    blocked += [[(x1, y1), (x2, y2)] for x1, y1, x2, y2 in ends]
    return [*dashed, *texts(words, align="right")], blocked


def _dots(points: list[_Point], board: Plane) -> Spec:
    rows = []
    for point in reversed(points):
        x, y = board.point(point.hours, point.usd)
        colour = paint("c5" if point.rank == 2 else "c1")
        rows.append(
            {
                "x": x,
                "y": y,
                "fill": paint("bg") if point.candidate.spot else colour,
                "stroke": colour,
                "size": (120, 60, 36)[point.rank],
                "tip": _tip(point),
            }
        )
    return spots(rows, strokeWidth=1.75)


def _anchors(points: list[_Point], board: Plane, narrow: bool) -> list[Anchor]:
    anchors = []
    for index, point in enumerate(points):
        if point.rank == 2 and index >= _NEAREST_LABELS["narrow" if narrow else "wide"]:
            text = ""
        else:
            text = point.title
        x, y = board.point(point.hours, point.usd)
        radius = (6.0, 5.0, 4.0)[point.rank]
        pick, rings = point.rank == 0, (7, 5, 2)[point.rank]
        anchors.append(
            Anchor(x=x, y=y, text=text, radius=radius, bold=pick, must=pick, rings=rings)
        )
    return anchors


def _tip(point: _Point) -> str:
    card = point.candidate
    cost = card.cost_usd
    return (
        f"{card_name(card)}, {offer_words(card)}: "
        f"{amounts.table_hours(card.hours.best)} h ({amounts.table_hours_range(card.hours)}), "
        + (
            f"${amounts.table_usd(cost.best)} ({amounts.usd_range(cost)})"
            if cost
            else say("no price")
        )
    )


def _label(advice: Advice, points: list[_Point]) -> str:
    front = [
        say(
            "{card} {way} {hours} hours ${cost}",
            card=card_name(card),
            way=name_in_words("spot" if card.spot else "on demand"),
            hours=amounts.table_hours(card.hours.best),
            cost=amounts.table_usd(card.cost_usd.best),
        )
        for card in frontier(advice)
        if card.cost_usd
    ]
    text = say(
        "Scatter plot of run cost against run time for {count} offers on logarithmic axes.",
        count=len(points),
    )
    if front:
        best = say("Offers that nothing beats on both: {offers}.", offers=amounts.listed(front))
        text = joined((text, best))
    return text


def _table(points: list[_Point]) -> Table:
    rows = []
    for point in sorted(points, key=lambda item: item.hours):
        card, cost = point.candidate, point.candidate.cost_usd
        rows.append(
            (
                f"{card_name(card)} · {offer_words(card)}",
                amounts.table_hours(card.hours.best),
                amounts.table_hours_range(card.hours),
                f"{cost.best:,.2f}" if cost else "–",
                amounts.usd_range(cost).lstrip("$") if cost else "–",
            )
        )
    headings = (say("Offer"), say("Hours"), say("9 in 10"), "US$", say("9 in 10"))
    return Table(headings=headings, rows=tuple(rows))
