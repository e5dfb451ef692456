"""The advice as terminal text: 80 columns, the answer in the first line, then the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.choose.hardware import OWNED
from tfdyno.view.base.text import WIDTH, padded, paint, pairs, shown_width, wrapped
from tfdyno.view.choose.cards import old_price
from tfdyno.view.choose.ranking_text import ranking_lines
from tfdyno.words.base.amounts import A_CENT_USD, about_usd, short_hours, table_usd
from tfdyno.words.base.language import joined, say
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import (
    card,
    copied_line,
    feed_line,
    first_line,
    memory_line,
    range_line,
    terms,
)
from tfdyno.words.choose.hours import parts_line
from tfdyno.words.choose.prices import price_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Advice, Candidate, Change
    from tfdyno.core.choose.workload import Trace

SHOWN_ROWS = 8
_SHORT_ASSUMPTIONS = (
    "precision",
    "execution",
    "software",
    "batch",
    "memory",
    "length",
    "validation",
    "spot",
    "start-up",
    "electricity",
)


def advice_text(
    advice: Advice,
    trace: Trace,
    *,
    show_all: bool = False,
    report: str = "",
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return the whole answer.

    Args:
        advice: What was found.
        trace: What was traced; its warnings are told.
        show_all: Every row of the ranking instead of the first ones.
        report: Path of the page that was written, or empty.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    blocks = [
        *_head(advice, show_all, width, colour),
        _section(say("What would change the answer"), advice.changes, width, colour),
        _section(say("Buy or rent"), advice.buy_or_rent, width, colour),
        _closing(advice, trace, report, width),
    ]
    return "\n\n".join(block for block in blocks if block)


def first_text(
    advice: Advice, *, show_all: bool = False, width: int = WIDTH, colour: bool = False
) -> str:
    """Return the answer that stands while a compile settles what it names: picks and ranking."""
    blocks = [wrapped(first_line(advice), width=width), *_head(advice, show_all, width, colour)]
    return "\n\n".join(block for block in blocks if block)


def _head(advice: Advice, show_all: bool, width: int, colour: bool) -> list[str]:
    return [
        _answer(advice, width, colour),
        _picks(advice, width),
        ranking_lines(advice, rows=0 if show_all else SHOWN_ROWS, width=width, colour=colour),
    ]


def _answer(advice: Advice, width: int, colour: bool) -> str:
    lines = [paint(wrapped(advice.headline, width=width), "bold", colour=colour)]
    if balanced := advice.pick("balanced"):
        told = joined(
            (range_line(balanced.candidate), old_price(balanced.candidate, advice.made_on))
        )
        lines.append(wrapped(told, width=width))
        if parts := parts_line(balanced.candidate):
            lines.append(wrapped(parts, width=width))
        if price := price_line(balanced.candidate, advice.ranking):
            lines.append(wrapped(price, width=width))
        if copied := copied_line(balanced.candidate):
            lines.append(wrapped(copied, width=width))
        if balanced.candidate.feeding:
            lines.append(wrapped(feed_line(balanced.candidate), width=width))
    if standing := memory_line(advice):
        lines.append(wrapped(standing, width=width))
    lines += [wrapped(text, width=width) for text in advice.notes]
    return "\n".join(lines)


def _picks(advice: Advice, width: int) -> str:
    rows = [(named(pick.title), _described(pick.candidate), *_costs(pick.candidate), pick.reason)
            for pick in advice.picks]  # fmt: skip
    widths = [max((shown_width(row[column]) for row in rows), default=0) for column in range(4)]
    if sum(widths) + 8 > width:
        return "\n".join(
            wrapped(f"{row[0]}: {row[1]}, {row[2]}, {row[3]}; {row[4]}", width=width, first="  ",
                    rest="    ") for row in rows
        )  # fmt: skip
    indent = " " * (widths[0] + 4)
    return "\n".join(
        f"  {'  '.join(map(padded, row[:4], widths, '<<>>'))}\n"
        f"{wrapped(row[4], width=width, first=indent, rest=indent)}"
        for row in rows
    )


def _described(candidate: Candidate) -> str:
    offer = candidate.offer
    is_rented = offer is not None and offer.provider != OWNED
    return say(
        "{card} {terms}{seller}",
        card=card(candidate),
        terms=terms(candidate),
        seller=say(", {seller}", seller=offer.provider) if offer and is_rented else "",
    )


def _costs(candidate: Candidate) -> tuple[str, str]:
    hours = short_hours(candidate.hours.best)
    if candidate.cost_usd is None:
        return say("no price"), hours
    usd = candidate.cost_usd.best
    return about_usd(usd) if usd < A_CENT_USD else f"${table_usd(usd)}", hours


def _section(title: str, changes: Sequence[Change], width: int, colour: bool) -> str:
    if not changes:
        return ""
    body = pairs([(one.condition, one.consequence) for one in changes], width=width)
    return f"{paint(title, 'bold', colour=colour)}\n{body}"


def _closing(advice: Advice, trace: Trace, report: str, width: int) -> str:
    # Where no CPUs of offers were judged, data are taken to arrive in time.
    is_fed = any(one.feeding for one in advice.ranking)
    names = [*_SHORT_ASSUMPTIONS, *(["input"] if is_fed else [])]
    said = [advice.assumptions[name] for name in names if name in advice.assumptions]
    lines = [wrapped(say("Assumed: {said}.", said=say("; ").join(said)), width=width)]
    lines += [wrapped(say("Note: {text}", text=text), width=width) for text in trace.warnings]
    if report:
        lines.append(say("Report: {report}", report=report))
    else:
        lines.append(
            say(
                "Next: tfdyno advise {reference} --html report.html",
                reference=trace.workload.reference,
            )
        )
    return "\n".join(lines)
