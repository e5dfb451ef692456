"""The ranking as lines of a terminal: what is feasible as a table, the rest by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.choose.hardware import OWNED
from tfdyno.view.base.text import padded, paint, shorten, shown_width, telling_width, wrapped
from tfdyno.words.base.amounts import (
    batch_cell,
    dashed,
    percent,
    plural,
    table_ms,
    table_time,
    table_usd,
)
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import card, tie_mark
from tfdyno.words.choose.prices import TIE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Advice, Candidate, Verdict

HEAD = (
    ("GPU", ""),
    (say_later("offer"), ""),
    (say_later("mem"), say_later("used")),
    (say_later("max"), say_later("batch")),
    (say_later("step"), "ms"),
    (say_later("9 in 10"), "ms"),
    (say_later("run"), "{unit}"),
    (say_later("9/10"), "{unit}"),
    (say_later("run"), "US$"),
    (say_later("held"), say_later("by")),
)
LEFT = (0, 1, 9)
SPARE = (7, 9, 3, 5, 2, 4)
"""What a narrow screen lacks: the range of hours, which that of the step says too, then others."""
INDENT = 2
SMALLEST_NAME = 12
CAUSES = {
    "communication": say_later("links"),
    "memory": say_later("memory||bottleneck"),
    "compute": say_later("maths"),
    "launch": say_later("launch"),
    "input": say_later("input"),
}
GROUPS: dict[Verdict, str] = {
    "feasible": "",
    "too late": say_later("Too late"),
    "too dear": say_later("Too dear"),
    "no offer": say_later("No price in the catalogue"),
    "does not fit": say_later("Do not fit"),
    "cannot run": say_later("This TensorFlow cannot run them"),
}
EXCLUDED = ("does not fit", "cannot run")
"""Told by reason: their times and costs say nothing."""
OLD_PRICE = say_later("* price older than 12 months: tfdyno data refresh")


def ranking_lines(advice: Advice, *, rows: int, width: int, colour: bool) -> str:
    """Return the table and what it leaves out.

    Args:
        advice: Holds the ranking.
        rows: Feasible rows to show; 0 shows every row of every group.
        width: Columns of the screen.
        colour: Whether to dim headings.
    """
    old = _old_offers(advice)
    if not rows:
        return "\n\n".join(filter(None, (
            _group(advice, verdict, old, width, colour) for verdict in GROUPS
        )))  # fmt: skip
    best = advice.ranking[0].verdict
    leading = [one for one in distinct(advice.ranking) if one.verdict == best]
    shown = [] if best in EXCLUDED else _first_rows(advice, leading, rows)
    parts = [_table(shown, old, width, colour)] if shown else []
    parts.append(wrapped(rest_line(advice, len(leading) - len(shown)), width=width,
                         first="  ", rest="  "))  # fmt: skip
    if any(tie_mark(one) for one in shown):
        parts.append(wrapped(say(TIE), width=width, first="  ", rest="  "))
    if any(one.slug in old for one in shown):
        parts.append(wrapped(say(OLD_PRICE), width=width, first="  ", rest="  "))
    return "\n".join(part for part in parts if part.strip())


def distinct(ranking: Sequence[Candidate]) -> list[Candidate]:
    """Keep one row per card, count, share and kind of price: the first, which is cheapest."""
    kept: dict[tuple[object, ...], Candidate] = {}
    for one in ranking:
        kept.setdefault((card(one), one.spot, one.offer is None, _is_owned(one)), one)
    return list(kept.values())


def rest_line(advice: Advice, hidden: int) -> str:
    """Write what the table leaves out: ``6 more are feasible, 5 are too late: add --all``."""
    groups: dict[Verdict, str] = {
        "too late": named("too late"),
        "too dear": named("too dear"),
        "no offer": say("without a price"),
        "does not fit": say("too small"),
        "cannot run": say("not for this TensorFlow"),
    }
    best = advice.ranking[0].verdict
    words = groups.pop(best, named(best))
    parts = [say("{count:,} more {words}", count=hidden, words=words)] if hidden else []
    for verdict, words in groups.items():
        cards = {card(one) for one in advice.ranking if one.verdict == verdict}
        if cards:
            parts.append(say("{count:,} {words}", count=len(cards), words=words))
    return say("{parts}: add --all", parts=say(", ").join(parts)) if parts else ""


def _first_rows(advice: Advice, feasible: list[Candidate], rows: int) -> list[Candidate]:
    """Return the cheapest rows and the picks, in the ranking's order."""
    picked = {pick.candidate.slug for pick in advice.picks}
    named = [one for one in feasible if one.slug in picked]
    room = rows - len(named)
    others = [one for one in feasible if one.slug not in picked][: max(0, room)]
    return [one for one in feasible if one in named or one in others]


def _group(advice: Advice, verdict: Verdict, old: set[str], width: int, colour: bool) -> str:
    members = [one for one in advice.ranking if one.verdict == verdict]
    if not members:
        return ""
    title = say("{group} ({rows})", group=say(GROUPS[verdict]), rows=plural(len(members), "row"))
    head = [paint(title, "bold", colour=colour)] if GROUPS[verdict] else []
    if verdict in EXCLUDED:
        by_card = {card(one): one for one in members}
        body = [
            wrapped(one.reason, width=width, first=f"  {name}: ", rest="    ")
            for name, one in by_card.items()
        ]
        return "\n".join([*head, *body])
    old_price = wrapped(say(OLD_PRICE), width=width, first="  ", rest="  ")
    tie = wrapped(say(TIE), width=width, first="  ", rest="  ")
    foot = [tie] if any(map(tie_mark, members)) else []
    foot += [old_price] if any(one.slug in old for one in members) else []
    return "\n".join([*head, _table(members, old, width, colour), *foot])


def _table(rows: Sequence[Candidate], old: set[str], width: int, colour: bool) -> str:
    unit, hours = ("min", 1.0 / 60.0) if rows[0].hours.best < 1.0 else ("h", 1.0)
    heads = [[say(head[line], unit=unit) for head in HEAD] for line in (0, 1)]
    lines = [*heads, *(_cells(one, one.slug in old, hours) for one in rows)]
    widths = [max(shown_width(line[column]) for line in lines) for column in range(len(HEAD))]
    smallest = max(SMALLEST_NAME, telling_width([card(one) for one in rows]))
    for column in SPARE:
        if _excess(widths, width) > widths[0] - smallest:
            widths[column] = 0
    widths[0] = max(smallest, widths[0] - max(0, _excess(widths, width)))
    told = [_line(line, widths) for line in lines]
    return "\n".join([*(paint(head, "dim", colour=colour) for head in told[:2]), *told[2:]])


def _excess(widths: Sequence[int], width: int) -> int:
    shown = [size for size in widths if size]
    return INDENT + sum(shown) + len(shown) - 1 - width


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    columns = [
        padded(shorten(cell, size), size) if column in LEFT else padded(cell, size, ">")
        for column, (cell, size) in enumerate(zip(cells, widths, strict=True))
        if size
    ]
    return f"{' ' * INDENT}{' '.join(columns)}".rstrip()


def _cells(one: Candidate, old: bool, hours: float) -> list[str]:
    """Return the row; times of the run in units of ``hours``."""
    estimate, run = one.estimate, one.hours.times(1.0 / hours)
    return [
        card(one),
        _offer(one) + ("*" if old else ""),
        percent(estimate.device_memory_bytes.best / estimate.usable_memory_bytes),
        batch_cell(estimate.max_batch_size),
        table_ms(estimate.step_s.best),
        f"{table_ms(estimate.step_s.low)}–{table_ms(estimate.step_s.high)}",
        table_time(run.best),
        dashed(run.low, run.high),
        f"{tie_mark(one)}{table_usd(one.cost_usd.best)}" if one.cost_usd else "–",
        say(CAUSES.get(estimate.bound_by, estimate.bound_by)),
    ]


def _offer(one: Candidate) -> str:
    if one.offer is None:
        return "–"
    if _is_owned(one):
        return say("owned")
    is_plain = one.offer.way in ("on demand", one.offer.provider)
    return one.offer.provider if is_plain else f"{one.offer.provider} {named(one.offer.way)}"


def _is_owned(one: Candidate) -> bool:
    return one.offer is not None and one.offer.provider == OWNED


def _old_offers(advice: Advice) -> set[str]:
    """Return candidates whose row says that their price is old."""
    return {
        one.slug
        for one in advice.ranking
        if one.offer and say("price of {month}", month=one.offer.priced_on[:7]) in one.reason
    }
