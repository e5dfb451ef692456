"""The picks that an answer names: the arithmetic's, less GPUs that nobody would miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.choose.advice import Pick
from tfdyno.model.choose.choose import eligible, picks_of
from tfdyno.model.choose.cost import cost_of
from tfdyno.model.choose.ties import (
    both_ties,
    cost_order,
    cost_ties,
    hours_ties,
    is_same_hardware,
    runner_up,
)
from tfdyno.words.base.language import say, say_later
from tfdyno.words.choose.advice import card
from tfdyno.words.choose.prices import decided_words, tie_words
from tfdyno.words.choose.reasons import pick_reason, spared_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Candidate, Run, Title

TITLES: tuple[Title, ...] = ("cheapest", "balanced", "fastest")
_TIES = {
    "cheapest": (say_later("cost"), cost_ties),
    "balanced": (say_later("cost and time"), both_ties),
    "fastest": (say_later("time"), hours_ties),
}
"""What each is picked for, and the others that the ranges do not tell from it there."""
NOTICED_H = 5.0 / 60.0
"""Less than this saved is not worth more GPUs: a reader would not notice it."""


def sober_picks(ranking: Sequence[Candidate]) -> dict[Title, Candidate]:
    """Return the picks, the balanced one with the fewest GPUs at no more cost and no lost time."""
    chosen = picks_of(ranking)
    if "balanced" not in chosen:
        return chosen
    most = chosen["balanced"]
    fewer = [
        one
        for one in eligible(ranking)
        if one.count < most.count
        and one.hours.best - most.hours.best < NOTICED_H
        and cost_of(one) <= cost_of(most)
    ]
    if not fewer:
        return chosen
    fewest = min(one.count for one in fewer)
    best = picks_of([one for one in fewer if one.count == fewest])["balanced"]
    return chosen | {"balanced": best}


def told_picks(ranking: Sequence[Candidate], run: Run) -> tuple[Pick, ...]:
    """Return the same with the reason for each in words; empty where nothing is feasible.

    A choice that is a tie with others is told as one.
    """
    chosen, choices = sober_picks(ranking), eligible(ranking)
    reasons = {title: pick_reason(title, chosen, run, choices=len(choices)) for title in chosen}
    arithmetic = picks_of(ranking).get("balanced")
    if arithmetic and chosen["balanced"] is not arithmetic:
        reasons["balanced"] = spared_reason(arithmetic)
    return tuple(
        _told(title, chosen[title], reasons[title], choices) for title in TITLES if title in chosen
    )


def _told(title: Title, one: Candidate, reason: str, choices: Sequence[Candidate]) -> Pick:
    """Return the pick with what its ranges do not tell from it, and what puts it before the next.

    Of a tie with offers of the same cards alone their sellers are named.
    """
    what, ties_of = _TIES[title]
    ties = ties_of(one, choices)
    names = dict.fromkeys(card(tie) for tie in ties if not is_same_hardware(tie, one))
    sellers = dict.fromkeys(
        say("that of {seller}", seller=tie.offer.provider) for tie in ties if tie.offer
    )
    doubts = [cost_order(one, tie).unsure_by for tie in ties if title != "fastest"]
    told = [reason, tie_words(say(what), list(names or sellers), doubts)]
    after = runner_up(one, choices) if title == "cheapest" else None
    decider = cost_order(one, after).decided_by if after else ""
    if after:
        told.append(decided_words(decider, card(after)))
    return Pick(
        title=title,
        candidate=one,
        reason=say("; ").join(filter(None, told)),
        ties=tuple(tie.slug for tie in ties),
        runner_up=after.slug if after else "",
        decided_by=decider,
    )
