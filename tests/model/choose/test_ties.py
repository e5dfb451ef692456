from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import candidate, offer

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.advice import CostOrder
from tfdyno.core.choose.hardware import UNKNOWN_PRICE_RANGE, PriceRange
from tfdyno.model.choose.choose import picks_of, ranked
from tfdyno.model.choose.cost import with_price_range
from tfdyno.model.choose.ties import both_ties, cost_order, cost_ties, hours_ties, runner_up

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate


def priced(
    name: str, hours: float, usd_per_h: float, *, low: float = 1.0, high: float = 1.0,
    spread: float = 1.25, seller: str = "cloud",
) -> Candidate:  # fmt: skip
    """Hours from best / spread to best * spread, an hour's price from low to high times as much."""
    times = Interval(low=hours / spread, best=hours, high=hours * spread)
    prices = UNKNOWN_PRICE_RANGE
    if low < 1.0 or high > 1.0:
        prices = PriceRange(basis="history", low_ratio=low, high_ratio=high, since="2026-10-01")
    return replace(
        candidate(name, hours, hours * usd_per_h),
        offer=offer(name.lower(), usd_per_h, slug=f"{seller}/{name}", provider=seller),
        hours=times,
        cost_usd=with_price_range(times.times(usd_per_h), prices),
        price_range=prices,
    )


FIRST = priced("First", 10.0, 1.0)  # $10.00, from 8.00 to 12.50


@pytest.mark.parametrize(
    ("other", "order"),
    [
        # $12 of 9.60-15.00: 10 is in there, and 12 in 8.00-12.50
        (priced("B", 8.0, 1.5), CostOrder(tied=True, unsure_by="time")),
        # $12.80 of 10.24-16.00: neither is; 8 h (6.4-10) is not told from 10 h (8-12.5)
        (priced("C", 8.0, 1.6), CostOrder(tied=False, decided_by="price")),
        # the same where its price was as low as 0.75 of that: 7.68-16.00, but 12.80 is over 12.50
        (priced("C", 8.0, 1.6, low=0.75), CostOrder(tied=False, decided_by="price")),
        (priced("D", 5.0, 3.0), CostOrder(tied=False, decided_by="price")),
        (priced("E", 20.0, 0.9), CostOrder(tied=False, decided_by="speed")),
        (priced("F", 20.0, 2.0), CostOrder(tied=False, decided_by="price and speed")),
    ],
)
def test_time_makes_a_tie_or_price_or_speed_decide(other: Candidate, order: CostOrder) -> None:
    assert cost_order(FIRST, other) == order


def test_a_price_makes_a_tie_that_time_alone_does_not() -> None:
    # by hand, times known to 1%: $10 that was up to 14, and $12.80 that was down to 9.60
    one = priced("A", 10.0, 1.0, high=1.4, spread=1.01)
    other = priced("B", 8.0, 1.6, low=0.75, spread=1.01)
    assert cost_order(one, other) == CostOrder(tied=True, unsure_by="price")


def test_time_and_price_make_a_tie_together_that_neither_makes_alone() -> None:
    # by hand: 10 · 1.1 = 11 and 10 · 1.2 = 12 are below 13, 10 · 1.1 · 1.2 = 13.2 is not
    one = priced("A", 10.0, 1.0, high=1.2, spread=1.1)
    other = priced("B", 13.0, 1.0, low=1 / 1.2, spread=1.1)
    assert cost_order(one, other) == CostOrder(tied=True, unsure_by="time and price")


def test_offers_of_the_same_cards_differ_by_their_price_however_unsure_the_time() -> None:
    other = priced("First", 10.0, 1.01, seller="else")
    assert cost_order(FIRST, other) == CostOrder(tied=False, decided_by="price")
    moved = priced("First", 10.0, 1.01, low=0.9, seller="else")
    assert cost_order(FIRST, moved).tied is False  # its price was as low, the first's never as high
    both = priced("First", 10.0, 1.0, high=1.1)
    assert cost_order(both, moved) == CostOrder(tied=True, unsure_by="price")


def test_offers_at_one_price_are_a_tie_that_nobody_doubts() -> None:
    assert cost_order(FIRST, priced("First", 10.0, 1.0, seller="else")) == CostOrder(tied=True)


def test_ties_in_time_are_of_other_cards_and_ties_in_both_are_ties_in_each() -> None:
    near = priced("B", 8.0, 1.5)
    dear = priced("C", 8.0, 1.6)
    same = priced("First", 10.0, 1.0, seller="else")
    others = [FIRST, near, dear, same, priced("Slow", 20.0, 0.5)]
    assert cost_ties(FIRST, others) == (near, same, others[-1])
    assert hours_ties(FIRST, others) == (near, dear)
    assert both_ties(FIRST, others) == (near, same)


def test_the_next_is_the_next_dearer_one_on_other_cards() -> None:
    cheaper = priced("Z", 9.0, 1.0)
    same = priced("First", 10.0, 1.01, seller="else")
    near, far = priced("B", 8.0, 1.5), priced("C", 8.0, 1.6)
    assert runner_up(FIRST, [far, near, same, cheaper, FIRST]) is near
    assert runner_up(FIRST, [same, cheaper, FIRST]) is None


def test_the_ranking_says_of_each_feasible_row_how_the_first_stands_to_it() -> None:
    late = replace(priced("Late", 99.0, 0.1), verdict="too late")
    order = ranked([priced("D", 5.0, 3.0), late, priced("B", 8.0, 1.5), FIRST])
    found = {one.gpu_name: one.to_first for one in order}
    assert found == {
        "First": None,
        "B": CostOrder(tied=True, unsure_by="time"),
        "D": CostOrder(tied=False, decided_by="price"),
        "Late": None,
    }


hours_and_price = st.tuples(st.floats(0.1, 100.0), st.floats(0.1, 20.0))
ratios = st.tuples(st.floats(0.1, 1.0), st.floats(1.0, 10.0))


@given(hours_and_price, hours_and_price, ratios, ratios, ratios, st.booleans())
def test_a_wider_range_of_a_price_never_removes_a_tie(
    one: tuple[float, float],
    other: tuple[float, float],
    first: tuple[float, float],
    second: tuple[float, float],
    wider: tuple[float, float],
    same: bool,
) -> None:
    a, b = sorted((one, other), key=lambda pair: pair[0] * pair[1])
    if same:
        b = (a[0], b[1])
    name = "A" if same else "B"
    before = priced("A", *a, low=first[0], high=first[1])
    after = priced("A", *a, low=first[0] * wider[0], high=first[1] * wider[1])
    rival = priced(name, *b, low=second[0], high=second[1], seller="else")
    if cost_order(before, rival).tied:
        assert cost_order(after, rival).tied
        assert cost_order(rival, after).tied


@given(st.lists(st.tuples(hours_and_price, ratios), min_size=1, max_size=8))
def test_the_order_and_the_picks_are_those_of_the_prices_now(
    rows: list[tuple[tuple[float, float], tuple[float, float]]],
) -> None:
    ranging = [
        priced(f"Card {place}", *pair, low=ends[0], high=ends[1])
        for place, (pair, ends) in enumerate(rows)
    ]
    still = [priced(f"Card {place}", *pair) for place, (pair, _) in enumerate(rows)]
    assert [one.slug for one in ranked(ranging)] == [one.slug for one in ranked(still)]
    found = picks_of(ranked(ranging)), picks_of(ranked(still))
    assert {t: c.slug for t, c in found[0].items()} == {t: c.slug for t, c in found[1].items()}
