"""What a candidate's price is worth, and which others it cannot be told from, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import listed, plural, usd_per_h, usd_per_h_range
from tfdyno.words.base.language import joined, say, say_later
from tfdyno.words.choose.advice import a_card, card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Candidate, Decider, Doubt
    from tfdyno.core.choose.hardware import Offer

TIE = say_later("≈ is a tie in cost with the cheapest: each lies within the range of the other")
TIES_NAMED = 2
"""More names would bury the answer."""


def price_line(candidate: Candidate, ranking: Sequence[Candidate]) -> str:
    """Say of when a price is, how far it may go, what is free, and what others ask for the card.

    Empty where no hour is paid for, or its price is the user's own.
    """
    offer, prices = candidate.offer, candidate.price_range
    if offer is None or prices.basis in ("electricity", "own price"):
        return ""
    free = say("what is free is not known")
    if offer.available is not None:
        free = say(
            "{machines} was free on {date}"
            if offer.available == 1
            else "{machines} were free on {date}",
            machines=plural(offer.available, "machine"),
            date=offer.priced_on,
        )
    month = offer.priced_on[:7]
    if prices.basis == "history":
        told = say(
            "These are its prices since {date}, the last one {price}; {free}.",
            date=prices.since,
            price=_now(offer),
            free=free,
        )
    elif prices.basis == "regions":
        where = plural(prices.regions, "region")
        told = say(
            "These are its prices in {where} in {month}, here {price}; {free}.",
            where=where,
            month=month,
            price=_now(offer),
            free=free,
        )
    elif offer.available is None:
        told = say(
            "The price is of {month}; how it moves and what is free is not known.", month=month
        )
    else:
        told = say(
            "The price is of {month}, and how it moves is not known; {free}.",
            month=month,
            free=free,
        )
    return joined((told, _asked_for(candidate, ranking)))


def tie_words(what: str, ties: Sequence[str], doubts: Sequence[Doubt]) -> str:
    """Write ``in cost a tie with A100, L40S and 3 more, as far as times are known``.

    Args:
        what: In what they are a tie: ``cost``, ``time``, ``cost and time``.
        ties: Names of the others, in order.
        doubts: Whose range makes the ties; empty: it is plain from ``what``.
    """
    if not ties:
        return ""
    causes = {cause for one in doubts for cause in one.split(" and ") if cause}
    why = {
        frozenset(): "",
        frozenset({"time"}): say(", as far as times are known"),
        frozenset({"price"}): say(", as far as prices move"),
        frozenset({"time", "price"}): say(", as far as times are known and prices move"),
    }[frozenset(causes)]
    return say(
        "in {what} a tie with {others}{why}",
        what=what,
        others=listed(ties, most=TIES_NAMED),
        why=why,
    )


def decided_words(decider: Decider, other: str) -> str:
    """Write ``price, not speed, puts it before L40S``; empty where nothing decides."""
    how = {
        "price": say("price, not speed, puts it before {card}", card=other),
        "speed": say("speed, not price, puts it before {card}", card=other),
        "price and speed": say("price and speed put it before {card}", card=other),
        "": "",
    }
    return how[decider]


def _now(offer: Offer) -> str:
    return usd_per_h(offer.usd_per_h)


def _asked_for(candidate: Candidate, ranking: Sequence[Candidate]) -> str:
    """Say what all offers ask for as many of the card: that is what one may end up paying."""
    offer = candidate.offer
    asked = [
        one.offer.usd_per_h
        for one in ranking
        if offer and one.offer and one.offer.terms == "public" and one.offer.usd_per_h > 0
        and (one.gpu, one.count, one.offer.gpu_fraction)
        == (candidate.gpu, candidate.count, offer.gpu_fraction)
    ]  # fmt: skip
    if len(asked) < 2 or min(asked) == max(asked):
        return ""
    what = card(candidate)
    return say(
        "The {count} offers of {card} ask {prices}.",
        count=len(asked),
        card=a_card(what),
        prices=usd_per_h_range(min(asked), max(asked)),
    )
