"""The picks that an answer names: the arithmetic's, less GPUs that nobody would miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.choose.advice import Pick
from tfdyno.model.choose.choose import cost_of, eligible, picks_of
from tfdyno.words.choose.advice import pick_reason, spared_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Candidate, Run, Title

TITLES: tuple[Title, ...] = ("cheapest", "balanced", "fastest")
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
    """Return the same with the reason for each in words; empty where nothing is feasible."""
    chosen, choices = sober_picks(ranking), len(eligible(ranking))
    reasons = {title: pick_reason(title, chosen, run, choices=choices) for title in chosen}
    arithmetic = picks_of(ranking).get("balanced")
    if arithmetic and chosen["balanced"] is not arithmetic:
        reasons["balanced"] = spared_reason(arithmetic)
    return tuple(
        Pick(title=title, candidate=chosen[title], reason=reasons[title])
        for title in TITLES
        if title in chosen
    )
