"""Offers, price refreshes and data tables as terminal text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.choose.hardware import Offer
from tfdyno.view.base.text import WIDTH, paint, shorten, table, wrapped
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.catalog.price_history import PriceHistory

_HISTORY_HEADERS = (
    say_later("provider"),
    say_later("machine"),
    say_later("region"),
    "$/h",
    "",
    say_later("low"),
    say_later("high"),
    say_later("since"),
    say_later("change"),
)
_LEAST_CHANGE = 0.005
_HEADERS = (
    say_later("provider"),
    say_later("machine"),
    say_later("region"),
    "n",
    "$/h",
    "$/GPU",
    "",
    say_later("date"),
    say_later("age"),
)
Line = tuple[Offer, float, int, str]
"""Offer, price per GPU in USD/h, age in days, ``stale`` or ``very old`` or empty."""


def offer_list(
    lines: Sequence[Line], *, most: int = 0, width: int = WIDTH, colour: bool = False
) -> str:
    """Return one block per GPU, one line per offer; ages over 90 days are marked.

    Args:
        lines: In order.
        most: Past so many of a GPU the rest is counted; 0: all are shown.
        width: Columns of the screen.
        colour: Whether to mark by colour.
    """
    blocks = []
    for slug in dict.fromkeys(offer.gpu_slug for offer, *_ in lines):
        some = [line for line in lines if line[0].gpu_slug == slug]
        shown = some if not most or len(some) <= most + 1 else some[:most]
        rows: list[tuple[str, ...]] = [_row(line, colour) for line in shown]
        headers = tuple(map(say, _HEADERS))
        align, spare = "<<<>>><<>", [8, 3, 2, 4]
        if any(line[0].available is not None for line in shown):
            rows = [(*row, _free(line[0])) for row, line in zip(rows, shown, strict=True)]
            headers, align, spare = (*headers, say("free")), f"{align}>", [*spare, 9]
        body = table(headers, rows, align=align, width=width, elastic=1, spare=spare,
                     colour=colour)  # fmt: skip
        if more := len(some) - len(shown):
            body += "\n" + say(
                "… {count:,} more: tfdyno offers --gpu {slug}", count=more, slug=slug
            )
        blocks.append(f"{paint(slug, 'bold', colour=colour)}\n{body}")
    stale = sum(1 for *_, mark in lines if mark)
    is_counted = any(offer.available is not None for offer, *_ in lines)
    note = say(
        "{count:,} offers; n GPUs at $/h, $/GPU for one of them for an hour.", count=len(lines)
    )
    if is_counted:
        note += say(" free: such machines that could be had on that day; empty: nobody says.")
    if stale:
        note += say(
            " {count} prices are older than 90 days (marked !; !! over a year): check "
            "them with the provider, or fetch those of today with 'tfdyno data "
            "refresh'.",
            count=stale,
        )
    return "\n\n".join([*blocks, wrapped(note, width=width)])


def history_list(
    lines: Sequence[tuple[Offer, PriceHistory]], *, width: int = WIDTH, colour: bool = False
) -> str:
    """Return one block per GPU, one line per offer whose price moved; the others are counted."""
    moved = [(offer, past) for offer, past in lines if len(past.points) > 1]
    blocks = []
    for slug in dict.fromkeys(offer.gpu_slug for offer, _ in moved):
        rows = [_history_row(offer, past) for offer, past in moved if offer.gpu_slug == slug]
        headers = tuple(map(say, _HISTORY_HEADERS))
        body = table(headers, rows, align="<<<><>><>", width=width, elastic=1,
                     spare=(7, 2), colour=colour)  # fmt: skip
        blocks.append(f"{paint(slug, 'bold', colour=colour)}\n{body}")
    still = len(lines) - len(moved)
    note = say(
        "{count} of {all} offers have had another price; $/h of the machine, low "
        "and high since the first date, change from the first price to the one now.",
        count=len(moved),
        all=len(lines),
    )
    if still:
        note += say(" Of the other {count} one price is known so far.", count=still)
    return "\n\n".join([*blocks, wrapped(note, width=width)])


def rejected_list(rows: Iterable[tuple[str, Sequence[str]]], *, width: int = WIDTH) -> str:
    """Return rows that stay out: name of the row and every reason."""
    return "\n".join(
        wrapped(f"{name}: {'; '.join(reasons)}", width=width, first="  ", rest="    ")
        for name, reasons in rows
    )


def data_list(
    tables: Sequence[tuple[str, int, str, str, int]], *, width: int = WIDTH, colour: bool = False
) -> str:
    """Return files with rows, oldest and newest date, and number of sources."""
    rows = [
        (file, str(rows), f"{oldest} – {newest}" if oldest else "–", str(sources))
        for file, rows, oldest, newest, sources in tables
    ]
    headers = ("file", "rows", "dates", "sources")
    return table(headers, rows, align="<><>", width=width, elastic=0, spare=(3, 2),
                 colour=colour)  # fmt: skip


def _history_row(offer: Offer, past: PriceHistory) -> tuple[str, ...]:
    change = past.change_ratio
    return (
        shorten(offer.provider, 10),
        offer.instance.removeprefix("Standard_"),
        shorten(offer.region, 10),
        f"{offer.usd_per_h:,.2f}",
        "" if offer.way == "on demand" else named(offer.way),
        f"{past.low_usd_per_h:,.2f}",
        f"{past.high_usd_per_h:,.2f}",
        past.points[0].date[:7],
        f"{change:+.0%}".replace("-", "−") if abs(change) >= _LEAST_CHANGE else "0%",
    )


def _free(offer: Offer) -> str:
    return "" if offer.available is None else f"{offer.available:,}"


def _row(line: Line, colour: bool) -> tuple[str, ...]:
    offer, usd_per_gpu_h, age_days, mark = line
    flag = {"": "", "stale": " !", "very old": " !!"}[mark]
    age = f"{age_days} d{flag}" if age_days < 730 else f"{age_days / 365:.1f} y{flag}"
    age = age if offer.priced_on else ""
    count = f"{offer.gpu_fraction:.2f}" if offer.gpu_fraction < 1 else str(offer.gpu_count)
    return (
        shorten(offer.provider, 10),
        offer.instance.removeprefix("Standard_"),
        shorten(offer.region, 10),
        count,
        f"{offer.usd_per_h:,.2f}" if offer.usd_per_h else "–",
        f"{usd_per_gpu_h:,.2f}" if offer.usd_per_h else "–",
        "" if offer.way == "on demand" else named(offer.way),
        offer.priced_on[:7],
        paint(age, "yellow", colour=colour) if mark else age,
    )
