"""The size of a service as terminal text: the answer first, then the picks and the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.base.amounts import percent
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose.serving_size import (
    goal_words,
    machine_words,
    ms,
    scaling_words,
    seller_words,
    usd,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.serving_size import ServingCandidate, ServingSize

SHOWN_ROWS = 8
_GROUPS = {
    "too dear": say_later("Over the budget"),
    "no offer": say_later("No price in the catalogue"),
    "too slow": say_later("Not in time"),
    "does not fit": say_later("Does not fit"),
    "cannot run": say_later("This TensorFlow cannot run them"),
}


def size_text(
    size: ServingSize,
    *,
    show_all: bool = False,
    report: str = "",
    output: str = "",
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return the whole answer.

    Args:
        size: What was found.
        show_all: Every row of the ranking instead of the first ones.
        report: Path of the page that was written, or empty.
        output: Path of the JSON that was written, or empty.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    blocks = [
        _answer(size, width, colour),
        _picks(size, width),
        _ranking(size, show_all=show_all, width=width, colour=colour),
        _closing(size, report, output, width),
    ]
    return "\n\n".join(block for block in blocks if block)


def _answer(size: ServingSize, width: int, colour: bool) -> str:
    lines = [paint(wrapped(size.headline, width=width), "bold", colour=colour)]
    lines.append(wrapped(say("For {goal}.", goal=goal_words(size.goal)), width=width))
    best = size.pick("balanced")
    if best:
        lines.append(wrapped(best.candidate.replica.reason, width=width))
    if size.autoscaling:
        lines.append(wrapped(scaling_words(size), width=width))
    lines += [wrapped(text, width=width) for text in size.notes]
    return "\n".join(lines)


def _picks(size: ServingSize, width: int) -> str:
    return pairs(
        [
            (
                named(one.title),
                say(
                    "{machine}, {seller}: {usd} a month; {reason}",
                    machine=machine_words(one.candidate),
                    seller=seller_words(one.candidate),
                    usd=usd(one.candidate.usd_per_month or 0.0),
                    reason=one.reason,
                ),
            )
            for one in size.picks
        ],
        width=width,
    )


def _ranking(size: ServingSize, *, show_all: bool, width: int, colour: bool) -> str:
    feasible = [one for one in size.ranking if one.verdict == "feasible"]
    rest = [one for one in size.ranking if one.verdict != "feasible"]
    blocks = []
    if feasible:
        shown = feasible if show_all else feasible[:SHOWN_ROWS]
        more = len(feasible) - len(shown)
        blocks.append(_table(shown, width, colour))
        blocks += [say("{count} more keep it; add --all", count=more)] if more else []
    if show_all or not feasible:
        blocks += [_group(size, verdict, show_all, width) for verdict in _GROUPS]
    elif rest:
        counts = {verdict: sum(one.verdict == verdict for one in rest) for verdict in _GROUPS}
        told = [f"{say(words).lower()}: {counts[verdict]}"
                for verdict, words in _GROUPS.items() if counts[verdict]]  # fmt: skip
        blocks.append(wrapped(say("Left out: {told}.", told=say("; ").join(told)), width=width))
    return "\n".join(block for block in blocks if block)


def _table(rows: Sequence[ServingCandidate], width: int, colour: bool) -> str:
    headers = (
        say("machines"),
        say("offer"),
        say("batch"),
        say("delay"),
        "p50",
        "p99",
        say("used"),
        "$/million",
        "$/month",
    )
    cells = [
        (
            machine_words(one),
            seller_words(one),
            f"{one.replica.max_batch_size}",
            ms(one.replica.max_delay_s) if one.replica.max_delay_s else "0",
            ms(one.at_peak.p50_s) if one.at_peak else "",
            ms(one.at_peak.p99_s) if one.at_peak else "",
            percent(min(1.0, one.at_peak.utilisation_ratio)) if one.at_peak else "",
            usd(one.usd_per_million or 0.0),
            usd(one.usd_per_month or 0.0),
        )
        for one in rows
    ]
    return table(headers, cells, align="<<>>>>>>>", width=width, elastic=1, spare=(3, 6, 4),
                 colour=colour)  # fmt: skip


def _group(size: ServingSize, verdict: str, show_all: bool, width: int) -> str:
    least_last = reversed(size.ranking)
    found = {one.replica.gpu: one for one in least_last if one.verdict == verdict}
    if not found:
        return ""
    shown = list(found.values())[::-1][: None if show_all else SHOWN_ROWS]
    body = pairs([(machine_words(one) if one.machines else one.replica.gpu_name, one.reason)
                  for one in shown], width=width)  # fmt: skip
    return f"\n{say(_GROUPS[verdict])} ({len(found)})\n{body}"


def _closing(size: ServingSize, report: str, output: str, width: int) -> str:
    assumed = [f"{named(name)}: {text}" for name, text in size.assumptions.items()]
    lines = [wrapped(say("Assumed: {said}.", said=say("; ").join(assumed)), width=width)]
    lines += [say("Sizes: {output}", output=output)] if output else []
    lines += [say("Report: {report}", report=report)] if report else []
    if not report:
        lines.append(say("Next: add --html report.html, or --output size.json for an autoscaler"))
    return "\n".join(lines)
