"""Why a step takes so long, as a table of the page: a row for each kind of kernel and the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.draw.svg import Table
from tfdyno.words.base.amounts import percent
from tfdyno.words.base.language import say, say_later
from tfdyno.words.choose import explanation as words

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.explanation import Explanation, KernelPrice

_MOST_LAYERS = 2
HEADINGS = (
    "#",
    say_later("what"),
    say_later("time"),
    say_later("share"),
    say_later("worked out"),
    say_later("reached"),
)


def explanation_title(one: Estimate) -> str:
    """Return what the folded table holds; empty without an explanation."""
    why = one.explanation
    if why is None:
        return ""
    waited_s = one.terms_s.get("input", 0.0)
    time = words.time_words(one.step_s.best - waited_s)
    but = (
        say(", but for {time} of waiting for input", time=words.time_words(waited_s))
        if waited_s
        else ""
    )
    return say(
        "Why {time}{but}: {count} kinds of kernel with formula and numbers",
        time=time,
        but=but,
        count=len(why.kernels),
    )


def explanation_table(one: Estimate) -> Table | None:
    """Return every kernel that is listed, what is not, and the step that they add up to."""
    why = one.explanation
    if why is None:
        return None
    kernels = [_row(number, price) for number, price in enumerate(why.kernels, start=1)]
    rest = [
        ("", name, words.time_words(seconds), percent(seconds / why.step_s), told, "")
        for name, seconds, told in _rest(why)
        if seconds > 0.0
    ]
    return Table(
        headings=tuple(map(say, HEADINGS)),
        rows=(*kernels, *rest),
        text_columns=frozenset((0, 1, 4, 5)),
    )


def _row(number: int, price: KernelPrice) -> tuple[str, ...]:
    return (
        str(number),
        f"{words.title(price)} ({words.layers(price, _MOST_LAYERS)})",
        words.time_words(price.time_s),
        percent(price.share_ratio),
        say("; ").join(
            f"{say(words.CAUSES[term.cause])} {words.formula(term)}" for term in price.terms
        ),
        words.reached(price),
    )


def _rest(why: Explanation) -> list[tuple[str, float, str]]:
    """Name, seconds and where they come from of all that has no row of its own; then the step."""
    launches = sum(one.count for one in why.others)
    exchanged = (
        [(say("exchange of gradients"), why.exchange.exposed_s, words.exchange(why.exchange))]
        if why.exchange
        else []
    )
    moved = say("{time} by the model", time=words.time_words(why.step_s))
    return [
        (
            say("other kernels"),
            sum(one.time_s for one in why.others),
            say("{count:,} launches", count=launches),
        ),
        (
            say("waiting for the host"),
            why.waiting_s,
            say("{host}, beside the device", host=words.host(why.host)),
        ),
        (say("once per step"), why.fixed_s, why.fixed_constant),
        *exchanged,
        (say("the step"), why.step_s, say("together") if why.measured_ratio == 1.0 else moved),
    ]
