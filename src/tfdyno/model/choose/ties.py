"""Which candidates the ranges of time and price do not tell apart, and what decides between others.

Two are a tie where the best figure of each lies within the range of the other. Were the errors of
both independent, nine in ten would ask for 1.4 times as far; where half of them is shared, as
between cards, for just as far. Offers of the same cards take the same time, whatever it is: of
them only prices are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.advice import Candidate, CostOrder, Decider, Doubt
from tfdyno.model.choose.cost import cheapest_of, cost_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_same_hardware(one: Candidate, other: Candidate) -> bool:
    """Return whether both are as many of the same card, shared and joined alike."""
    return _hardware(one) == _hardware(other)


def cost_order(one: Candidate, other: Candidate) -> CostOrder:
    """Say what puts ``one`` before ``other``, which costs as much or more; both have a price."""
    same = is_same_hardware(one, other)
    if not _overlap(_cost(one, timed=not same), _cost(other, timed=not same)):
        return CostOrder(tied=False, decided_by=_decider(one, other, same=same))
    by_time = not same and _overlap(_cost(one, priced=False), _cost(other, priced=False))
    moves = _moves(one) or _moves(other)
    by_price = moves and _overlap(_cost(one, timed=False), _cost(other, timed=False))
    return CostOrder(tied=True, unsure_by=_doubt(by_time=by_time, by_price=by_price, moves=moves))


def cost_ties(pick: Candidate, others: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return those whose cost is not told from that of the pick."""
    return tuple(
        one for one in others
        if one.slug != pick.slug and one.cost_usd and pick.cost_usd and cost_order(pick, one).tied
    )  # fmt: skip


def hours_ties(pick: Candidate, others: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return those on other cards, or other numbers of them, whose hours are not told from its."""
    return tuple(
        one for one in others
        if not is_same_hardware(pick, one) and _overlap(pick.hours, one.hours)
    )  # fmt: skip


def both_ties(pick: Candidate, others: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return those that are not told from the pick in cost nor in hours."""
    return tuple(
        one for one in cost_ties(pick, others)
        if is_same_hardware(pick, one) or _overlap(pick.hours, one.hours)
    )  # fmt: skip


def runner_up(pick: Candidate, others: Iterable[Candidate]) -> Candidate | None:
    """Return the next dearer one on other hardware; None where there is none."""
    dearer = [
        one for one in others
        if not is_same_hardware(pick, one) and one.cost_usd and cost_of(one) >= cost_of(pick)
    ]  # fmt: skip
    return cheapest_of(dearer)


def _hardware(one: Candidate) -> tuple[str, int, float, int]:
    share, nodes = (one.offer.gpu_fraction, one.offer.nodes) if one.offer else (1.0, 1)
    return one.gpu, one.count, share, nodes


def _overlap(one: Interval, other: Interval) -> bool:
    """Return whether the best figure of each lies within the other's range."""
    return one.low <= other.best <= one.high and other.low <= one.best <= other.high


def _cost(one: Candidate, *, timed: bool = True, priced: bool = True) -> Interval:
    """Return the cost with the range of time, that of the price, or both."""
    usd, prices = one.cost_usd, one.price_range
    if usd is None:
        raise ValueError(f"{one.slug} has no price")
    if timed and priced:
        return usd
    if timed:
        return Interval(low=min(usd.low / prices.low_ratio, usd.best), best=usd.best,
                        high=max(usd.high / prices.high_ratio, usd.best))  # fmt: skip
    return Interval(low=usd.best * prices.low_ratio, best=usd.best,
                    high=usd.best * prices.high_ratio)  # fmt: skip


def _moves(one: Candidate) -> bool:
    return one.price_range.low_ratio < 1.0 or one.price_range.high_ratio > 1.0


def _doubt(*, by_time: bool, by_price: bool, moves: bool) -> Doubt:
    if by_time and not by_price:
        return "time"
    if by_price and not by_time:
        return "price"
    return "time and price" if moves else ""


def _decider(one: Candidate, other: Candidate, *, same: bool) -> Decider:
    """Return in what ``one`` is surely better: in hours, in the price of an hour, or in both.

    Where it is surely better in neither alone, both together make it so.
    """
    faster = not same and one.hours.best < other.hours.best
    faster = faster and not _overlap(one.hours, other.hours)
    prices = _price(one), _price(other)
    cheaper = prices[0].best < prices[1].best and not _overlap(*prices)
    if cheaper and not faster:
        return "price"
    return "speed" if faster and not cheaper else "price and speed"


def _price(one: Candidate) -> Interval:
    """Return the price of an hour of the run; of an owned card, its electricity."""
    return _cost(one, timed=False).times(1.0 / one.hours.best)
