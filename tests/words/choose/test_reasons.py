"""Reasons compare with the pick next to it, and name the one thing to know of a row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.advice import GIB, candidate, estimate, exactly, offer, run

from tfdyno.core.choose.advice import Candidate, Title
from tfdyno.words.choose import reasons

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Run

Picks = dict[Title, Candidate]

A100 = candidate("A100", 11.6, 5.24)
H100 = candidate("H100", 6.7, 5.37)
EIGHT = replace(candidate("H100", 1.3, 29.53), count=8)
OWN = replace(candidate("RTX 3090", 20.0, 1.2), offer=offer("rtx", 0.0, provider="owned"))
BIG = {"device_memory_bytes": exactly(10.5 * GIB), "usable_memory_bytes": 7.6 * GIB}


def test_pick_reasons_compare_with_the_neighbour() -> None:
    picks: Picks = {"cheapest": A100, "balanced": H100, "fastest": EIGHT}
    found = {
        title: reasons.pick_reason(title, picks, run(deadline_h=24), choices=9) for title in picks
    }
    # by hand: 5.37 / 5.24 = 1.025, 6.7 / 11.6 = 0.578; 29.53 / 5.37 = 5.5, 1.3 / 6.7 = 0.194
    assert found == {
        "cheapest": "lowest cost within 24 h of 9 choices",
        "balanced": "2% dearer, 42% less time than the cheapest",
        "fastest": "5.5x the price, 81% less time than the balanced one",
    }


def test_one_card_may_be_all_three_picks() -> None:
    picks: Picks = {"cheapest": H100, "balanced": H100, "fastest": H100}
    assert (
        reasons.pick_reason("cheapest", picks, run(), choices=1)
        == "nothing else meets the conditions"
    )
    assert reasons.pick_reason("cheapest", picks, run(), choices=3) == (
        "lowest cost of 3 choices, and nothing finishes more than 3% sooner"
    )
    assert (
        reasons.pick_reason("fastest", picks, run(), choices=3)
        == "nothing finishes more than 3% sooner"
    )
    assert "nothing saves more time" in reasons.pick_reason("balanced", picks, run(), choices=3)


def test_an_owned_card_is_compared_in_dollars_when_it_costs_nothing() -> None:
    free = replace(OWN, cost_usd=exactly(0.0))
    picks: Picks = {"cheapest": free, "balanced": H100, "fastest": H100}
    reason = reasons.pick_reason("balanced", picks, run(), choices=2)
    assert reason == "$5.40 more, 66% less time than the cheapest"


@pytest.mark.parametrize(
    ("one", "asked", "reason"),
    [
        (H100, run(), "memory traffic sets the pace"),
        (H100, run(deadline_h=8.0), "may miss 8 h, memory traffic sets the pace"),
        (H100, run(budget_usd=6.0), "may cost more than $6, memory traffic sets the pace"),
        (
            replace(H100, verdict="too late"),
            run(deadline_h=5.0),
            "takes 6.7 h, the limit is 5 h, memory traffic sets the pace",
        ),
        (
            replace(H100, verdict="too dear"),
            run(budget_usd=5.0),
            "costs $5.40, the limit is $5, memory traffic sets the pace",
        ),
        (
            candidate("Bare", 1.0, None),
            run(),
            "no price in the catalogue, memory traffic sets the pace",
        ),
        (
            replace(H100, verdict="does not fit", estimate=estimate(**BIG, max_batch_size=56)),
            run(),
            "needs 10.5 of 7.6 GiB; batch up to 56 fits",
        ),
        (
            replace(H100, verdict="does not fit", estimate=estimate(**BIG, max_batch_size=0)),
            run(),
            "needs 10.5 of 7.6 GiB; no batch fits",
        ),
        (
            replace(H100, verdict="cannot run", tensorflow="cannot: 2.10 has no code for it"),
            run(),
            "2.10 has no code for it",
        ),
    ],
)
def test_a_row_says_the_one_thing_to_know(one: Candidate, asked: Run, reason: str) -> None:
    assert reasons.row_reason(one, asked, stale=False) == reason


def test_an_old_price_is_dated_in_its_row() -> None:
    assert reasons.row_reason(H100, run(), stale=True).endswith(", price of 2026-10")
