"""What more GPUs bring, as terminal text: one sentence, then the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.view.base.text import WIDTH, paint, table, wrapped
from tfdyno.words.base.amounts import table_ms
from tfdyno.words.base.language import joined, say, say_later
from tfdyno.words.choose import kernels
from tfdyno.words.choose.advice import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.scale_out import ScaleOut, ScaleRow

_HEADERS = (
    "GPUs",
    say_later("batch"),
    say_later("step ms"),
    say_later("samples/s"),
    say_later("gain"),
    say_later("9 in 10"),
    say_later("efficiency"),
    say_later("exposed ms"),
)
MOST_TABLES = 3
_SPARE = (1, 2, 5)
"""Columns that a narrow screen lacks."""
_SLOWER = 1.0
_LOSS = 1.05
"""The loss from which on the time of another program is told."""
_PROGRAMS = {"graph": say_later("as a graph"), "xla": say_later("under XLA")}


def scale_out_text(
    series: Sequence[ScaleOut],
    names: Mapping[str, str],
    *,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return a sentence and a table for each card; of many cards the sentences alone."""
    if len(series) > MOST_TABLES:
        told = (wrapped(sentence(each, names[each.gpu]), width=width) for each in series)
        return "\n".join(told)
    return "\n\n".join(_one(each, names[each.gpu], width, colour) for each in series)


def sentence(series: ScaleOut, name: str) -> str:
    """Say where more of a card stop paying."""
    card, rows = brief(name), series.rows[1:]
    if not rows:
        return say("Only one {card} was asked for.", card=card)
    first, last = rows[0], rows[-1]
    told = say("{count} {card} gain {times}", count=_count(first), card=card, times=_times(first))
    if first.estimate.replicas == 2:
        told = say("A second {card} gains {times}", card=card, times=_times(first))
    switch = _switch(series)
    if all(row.gain_ratio.best < _SLOWER for row in rows):
        return say(
            "{told}: one alone is faster{switch}.",
            told=told,
            switch=switch and say(", and {switch}", switch=switch),
        )
    return say(
        "{told}{later}: {switch}{brings}.",
        told=told,
        later=_later(series, first, last),
        switch=switch and say("{switch}; ", switch=switch),
        brings=_brings(series),
    )


def _later(series: ScaleOut, first: ScaleRow, last: ScaleRow) -> str:
    """Say later gains: where it stops paying, and the last where it is above 1."""
    told = [row for row in series.rows if row.estimate.replicas > series.pays_until][:1]
    told += [last] if last.gain_ratio.best > _SLOWER else []
    named = {row.estimate.replicas: row for row in told if row is not first}
    return "".join(
        say(", {count} gain {times}", count=_count(row), times=_times(row))
        for row in named.values()
    )


def _brings(series: ScaleOut) -> str:
    """Return what added cards bring: all of them, or those beyond where it pays."""
    rows, stops = series.rows[1:], series.pays_until
    beyond = [row for row in rows if row.estimate.replicas > stops]
    shares = sorted(max(0.0, row.added_ratio) for row in beyond[:1] or rows)
    told = list(dict.fromkeys(significant(share, 2) for share in shares))
    share = say(
        "{shares} of the first", shares=say(" to ").join(dict.fromkeys((told[0], told[-1])))
    )
    who = (
        say("from {stops:,} to {count} an added card", stops=stops, count=_count(beyond[0]))
        if beyond
        else say("each added card")
    )
    return say("{who} brings {share}", who=who, share=share if shares[-1] else say("nothing"))


def _switch(series: ScaleOut) -> str:
    """Return the loss that is another program's; empty where there is none, or it is not known."""
    if not series.switched_to:
        return ""
    name = series.switched_to
    program = say(_PROGRAMS[name]) if name in _PROGRAMS else say("as {name}", name=name)
    told = say("on several cards the step runs {program}", program=program)
    ratio = series.switch_ratio
    if ratio is None:
        return told
    return (
        say(
            "{told}, which alone takes {ratio} times as long",
            told=told,
            ratio=significant(ratio, 2),
        )
        if ratio >= _LOSS
        else ""
    )


def _count(row: ScaleRow) -> str:
    return f"{row.estimate.replicas:,}"


def _times(row: ScaleRow) -> str:
    return f"{significant(row.gain_ratio.best, 2)}×"


def _one(series: ScaleOut, name: str, width: int, colour: bool) -> str:
    money = _money(series)
    headers = (*map(say, _HEADERS), *([money[0]] if money else []))
    rows = [
        (*_cells(row), *([significant(money[1][index].best, 2)] if money else []))
        for index, row in enumerate(series.rows)
    ]
    body = table(headers, rows, align=">" * len(headers), width=width, spare=_SPARE, colour=colour)
    blocks = [paint(wrapped(sentence(series, name), width=width), "bold", colour=colour), body]
    blocks.append(wrapped(assumed(series), width=width))
    return "\n\n".join(blocks)


def _cells(row: ScaleRow) -> tuple[str, ...]:
    one, gain = row.estimate, row.gain_ratio
    where = f"{one.replicas:,}" if one.nodes == 1 else (
        f"{one.nodes:,} × {one.replicas // one.nodes:,}")  # fmt: skip
    return (
        where,
        f"{one.batch_size:,}",
        table_ms(one.step_s.best),
        significant(one.samples_per_s.best, 2),
        f"{gain.best:.2f}",
        f"{gain.low:.2f}–{gain.high:.2f}" if one.replicas > 1 else "",
        f"{row.efficiency_ratio.best:.0%}",
        table_ms(one.exposed_s) if one.replicas > 1 else "",
    )


def _money(series: ScaleOut) -> tuple[str, list[Interval]] | None:
    epochs = [row.usd_per_epoch for row in series.rows if row.usd_per_epoch]
    millions = [row.million_samples_usd for row in series.rows if row.million_samples_usd]
    if epochs:
        return say("$ an epoch"), epochs
    return (say("$ a million"), millions) if millions else None


def assumed(series: ScaleOut) -> str:
    """Return what the numbers rest on."""
    held = (
        say("Held: the batch of each GPU (weak scaling).")
        if series.holds == "batch per replica"
        else say("Held: the global batch (strong scaling).")
    )
    parts = [held]
    if series.switched_to:
        before = kernels.execution(series.rows[0].estimate.execution)
        after = kernels.execution(series.switched_to)
        parts.append(
            say(
                "One GPU runs {before}, several {after}: part of the loss is that.",
                before=before,
                after=after,
            )
        )
    if any(row.capped for row in series.rows):
        parts.append(
            say(
                "A gain above the number of GPUs was cut to it: of the two programs only "
                "one is fitted to your measurement."
            )
        )
    if any(row.estimate.execution == "graph" for row in series.rows[1:]):
        parts.append(
            say(
                "tf.distribute sends all gradients at once after the backward pass: "
                "nothing is hidden."
            )
        )
    if series.through_host:
        parts.append(
            say(
                "These cards copy through the host's memory, without peer access over "
                "PCIe: more cards share that one way."
            )
        )
    price = series.price
    if price:
        parts.append(
            say(
                "Price: ${price:.2f} a GPU and hour, {offer}, {date}.",
                price=price.usd_per_h,
                offer=price.offer,
                date=price.priced_on,
            )
        )
    return joined(parts)
