"""Verdict, order and the three picks: decisions over candidates, without words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.model.choose.cost import cost_of
from tfdyno.model.choose.pareto import pareto_front
from tfdyno.model.choose.ties import cost_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.advice import Candidate, CostOrder, Run, Title, Verdict
    from tfdyno.core.choose.estimate import Estimate

ORDER: tuple[Verdict, ...] = (
    "feasible",
    "too late",
    "too dear",
    "no offer",
    "does not fit",
    "cannot run",
)
"""Groups of the ranking, best first."""
LEVEL_RATIO = 1.03
"""Hours up to this times the fewest count as level: less than the estimates can tell apart."""


def verdict_of(
    run: Run, estimate: Estimate, *, hours: Interval, cost_usd: Interval | None, runs: bool
) -> Verdict:
    """Return the first thing that stands in the way, judged by the best estimates.

    Args:
        run: Holds the deadline and the budget; 0 means none.
        estimate: Says whether the step fits.
        hours: Of the run.
        cost_usd: Of the run; None where no price is known.
        runs: Whether the user's TensorFlow has code for the card.
    """
    if not runs:
        return "cannot run"
    if estimate.fits == "no" or _too_large(estimate):
        return "does not fit"
    if cost_usd is None:
        return "no offer"
    if run.deadline_h and hours.best > run.deadline_h:
        return "too late"
    if run.budget_usd and cost_usd.best > run.budget_usd:
        return "too dear"
    return "feasible"


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Order by verdict, cost and hours; mark the feasible ones' front and ties with the first."""
    ordered = in_order(candidates)
    feasible = [candidate for candidate in ordered if candidate.verdict == "feasible"]
    front = {feasible[i].slug for i in pareto_front([(c.hours.best, cost_of(c)) for c in feasible])}
    orders = {one.slug: cost_order(feasible[0], one) for one in feasible[1:]}
    return tuple(_placed(c, c.slug in front, orders.get(c.slug)) for c in ordered)


def _placed(candidate: Candidate, is_on_front: bool, to_first: CostOrder | None) -> Candidate:
    if (candidate.pareto, candidate.to_first) == (is_on_front, to_first):
        return candidate
    return replace(candidate, pareto=is_on_front, to_first=to_first)


def in_order(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Order by verdict, cost and hours."""
    return tuple(sorted(candidates, key=_rank))


def eligible(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return those a pick may name: feasible, and not at the brink of their memory."""
    return tuple(c for c in candidates if c.verdict == "feasible" and c.estimate.fits != "may not")


def picks_of(candidates: Sequence[Candidate]) -> dict[Title, Candidate]:
    """Return the cheapest, the fastest and the balanced choice; empty when nothing is feasible.

    Balanced is the one with the smallest ``cost / cheapest cost + hours / cheapest's hours``: a
    percent more money has to buy at least a percent less time, both counted from the cheapest.
    Of choices whose hours are level with the quickest's the fastest is the balanced one, else the
    cheapest.
    """
    open_to_choice = eligible(candidates)
    if not open_to_choice:
        return {}
    cheapest = min(open_to_choice, key=lambda c: (cost_of(c), c.hours.best, c.slug))
    balanced = min(open_to_choice, key=lambda c: (_effort(c, cheapest), cost_of(c), c.slug))
    level_h = LEVEL_RATIO * min(c.hours.best for c in open_to_choice)
    level = [c for c in open_to_choice if c.hours.best <= level_h]
    cheapest_level = min(level, key=lambda c: (cost_of(c), c.hours.best, c.slug))
    fastest = balanced if balanced.hours.best <= level_h else cheapest_level
    return {"cheapest": cheapest, "fastest": fastest, "balanced": balanced}


def _too_large(estimate: Estimate) -> bool:
    """Return whether the best figure is above the limit, though the range reaches below it."""
    return estimate.device_memory_bytes.best > estimate.usable_memory_bytes


def _effort(candidate: Candidate, cheapest: Candidate) -> float:
    money = cost_of(cheapest)
    dearer = cost_of(candidate) / money if money else (1.0 if cost_of(candidate) == 0 else 2.0)
    return dearer + candidate.hours.best / cheapest.hours.best


def _rank(candidate: Candidate) -> tuple[int, float, float, str]:
    place = ORDER.index(candidate.verdict)
    return place, cost_of(candidate), candidate.hours.best, candidate.slug
