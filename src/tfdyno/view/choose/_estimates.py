"""Estimates of several cards as terminal text: a sentence, and a table of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.view.base.text import table
from tfdyno.words.base.amounts import about_step, batch_cell, gib, listed, of_gib, table_ms
from tfdyno.words.base.language import say, say_later
from tfdyno.words.choose.advice import brief, fit_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.workload import Trace

MOST_NAMED = 3
"""More cards than this are counted instead of named."""
_MOST_WARNINGS = 6
_SPARE = (7, 2, 6, 5, 3, 4)
"""Columns of the table that a narrow screen lacks: what holds the card, its range, ..."""
_DOUBTS = {
    "yes": say_later("yes"),
    "unverified": "?",
    "may not": say_later("may not fit"),
    "probably not": say_later("no?"),
    "no": say_later("no"),
}

_BOUNDS = {
    "compute": say_later("compute"),
    "memory": say_later("memory||bottleneck"),
    "launch": say_later("launch"),
    "communication": say_later("links"),
    "input": say_later("input"),
}


def cards_of(one: Estimate, names: Mapping[str, str]) -> str:
    """Write ``H100``, ``8 x H100``."""
    name = brief(names[one.gpu])
    return name if one.replicas == 1 else f"{one.replicas} x {name}"


def many_headline(estimates: Sequence[Estimate], trace: Trace, names: Mapping[str, str]) -> str:
    """Return the answer for several cards: which is the quickest, and how many are too small."""
    fitting = [one for one in estimates if fit_state(one) not in ("no", "probably not")]
    where = say("{title} at batch {batch:,}", title=trace.title, batch=estimates[0].batch_size)
    if len({one.batch_size for one in estimates}) > 1:
        where = say(
            "{title} at a global batch of {batch:,}",
            title=trace.title,
            batch=estimates[0].global_batch_size,
        )
    if not fitting:
        nearest = min(estimates, key=lambda e: e.device_memory_bytes.best / e.usable_memory_bytes)
        memory = of_gib(nearest.device_memory_bytes.best, nearest.usable_memory_bytes)
        return say(
            "{where} fits none of them: {card} would need {memory}.",
            where=where,
            card=brief(names[nearest.gpu]),
            memory=memory,
        )
    quickest = max(fitting, key=lambda one: one.samples_per_s.best)
    best, bounds = about_step(quickest.step_s)
    return say(
        "{where}: {leads}, about {best} a step ({bounds}).{left_out}",
        where=where,
        leads=_leads(fitting, quickest, names),
        best=best,
        bounds=bounds,
        left_out=_left_out(estimates),
    )


def _leads(fitting: Sequence[Estimate], quickest: Estimate, names: Mapping[str, str]) -> str:
    """Say who is quickest: several where figures read alike; in samples/s, if need be."""
    if any(one.step_s.best < quickest.step_s.best for one in fitting):
        rate = significant(quickest.samples_per_s.best, 2)
        return say(
            "{card} has the most samples/s, about {rate}",
            card=cards_of(quickest, names),
            rate=rate,
        )
    best = about_step(quickest.step_s)[0]
    level = [one for one in fitting if about_step(one.step_s)[0] == best
             and one.global_batch_size == quickest.global_batch_size]  # fmt: skip
    if len(level) == 1:
        return say("{card} is the quickest", card=cards_of(quickest, names))
    shown = [cards_of(one, names) for one in level]
    if len(shown) > MOST_NAMED:
        shown = [shown[0], say("{count} more", count=len(shown) - 1)]
    return say("{cards} are the quickest", cards=listed(shown))


def _left_out(estimates: Sequence[Estimate]) -> str:
    states = [fit_state(one) for one in estimates]
    out, doubtful = states.count("no"), states.count("probably not")
    told = [say("{count} of {all} do not fit", count=out, all=len(states))] if out else []
    told += (
        [say("{count} of {all} probably do not (no?)", count=doubtful, all=len(states))]
        if doubtful
        else []
    )
    return say(" {told}.", told=say(", ").join(told)) if told else ""


def estimates_table(
    estimates: Sequence[Estimate], names: Mapping[str, str], width: int, colour: bool
) -> str:
    """Return a row for each card, the quickest first."""
    headers = (
        "GPU",
        say("step ms"),
        say("9 in 10"),
        say("samples/s"),
        "GiB",
        say("of"),
        say("max batch"),
        say("held by"),
        say("fits"),
    )
    rows = [_row(one, names) for one in sorted(estimates, key=lambda e: -e.samples_per_s.best)]
    return table(
        headers, rows, align="<>>>>>><<", width=width, elastic=0, spare=_SPARE, colour=colour
    )


def _row(one: Estimate, names: Mapping[str, str]) -> tuple[str, ...]:
    low, high = table_ms(one.step_s.low), table_ms(one.step_s.high)
    doubt = say(_DOUBTS[fit_state(one)])
    return (
        cards_of(one, names),
        table_ms(one.step_s.best),
        f"{low}–{high}",
        significant(one.samples_per_s.best, 2),
        gib(one.device_memory_bytes.best),
        gib(one.usable_memory_bytes),
        batch_cell(one.max_batch_size),
        say(_BOUNDS[one.bound_by]) if one.bound_by in _BOUNDS else one.bound_by,
        doubt,
    )


def warned(estimates: Sequence[Estimate], names: Mapping[str, str]) -> list[str]:
    """Write warnings, each once, with the rows that they are about where these are not all."""
    rows: dict[str, list[Estimate]] = {}
    for one in estimates:
        for text in one.warnings:
            rows.setdefault(text, []).append(one)
    return [_about(text, some, estimates, names) for text, some in rows.items()][:_MOST_WARNINGS]


def _about(
    text: str, some: Sequence[Estimate], estimates: Sequence[Estimate], names: Mapping[str, str]
) -> str:
    if len(some) == len(estimates) or any(names[one.gpu] in text for one in some):
        return text
    shown = [cards_of(one, names) for one in some]
    about = (
        say(", ").join(shown)
        if len(shown) <= MOST_NAMED
        else say("{count} of {all} rows", count=len(some), all=len(estimates))
    )
    return say("{cards}: {text}", cards=about, text=text)
