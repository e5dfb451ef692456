"""The sentences of a size."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.advice import offer
from tests.services import CHEAP, GOAL, LATE, QUICK, candidate, replica, size

from tfdyno.words.choose.serving_size import (
    goal_words,
    headline,
    machine_words,
    ms,
    per_s,
    pick_reason,
    replica_reason,
    row_reason,
    scaling_words,
    seller_words,
    usd,
)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0072, "7.2 ms"), (0.25, "250 ms"), (1.234, "1.23 s")]
)
def test_seconds_have_the_digits_that_matter(seconds: float, words: str) -> None:
    assert ms(seconds) == words


def test_rates_and_amounts_too() -> None:
    assert (per_s(1234.5), per_s(0.123)) == ("1,234/s", "0.12/s")
    assert (usd(1234.5), usd(12.34), usd(0.0123)) == ("$1,234", "$12.3", "$0.012")


def test_one_request_a_day_is_one() -> None:
    assert goal_words(replace(GOAL, requests_per_day=1)).startswith("1 request a day, ")


def test_the_headline_says_what_to_rent_how_soon_and_for_how_much() -> None:
    said = headline((CHEAP, QUICK), CHEAP, GOAL)
    assert said.startswith("Rent 2 x Cheap (cloud ")
    assert "p99 of 40 ms at the peak of 300/s, $2.78 a million requests." in said


def test_what_no_machine_keeps_is_said_with_the_quickest() -> None:
    assert headline((LATE,), None, GOAL) == f"No machine here keeps 50 ms: {LATE.replica.reason}"


def test_a_budget_that_is_too_small_names_the_cheapest() -> None:
    dear = replace(CHEAP, verdict="too dear")
    said = headline((dear,), None, replace(GOAL, budget_usd=10.0))
    assert said == "Nothing keeps 50 ms for $10 a month: the cheapest, 2 x Cheap, costs $730."


def test_machines_of_several_cards_and_shares_of_one_are_told() -> None:
    four = candidate("card", 1.0, 0.04, offer=offer("card", 1.0, gpu_count=4))
    share = candidate("card", 1.0, 0.04, machines=1, offer=offer("card", 1.0, gpu_fraction=0.25))
    assert machine_words(four) == "2 x (4 x Card)"
    assert machine_words(share) == "1/4 of Card"
    assert seller_words(candidate("card", 1.0, 0.04, offer=None)) == "no offer"


def test_what_holds_a_replica_back_is_named() -> None:
    assert "more would be too late" in replica_reason(replica(), GOAL, {1: 0.006})
    assert "its front takes 0.30 ms" in replica_reason(replica(bound_by="host"), GOAL, {1: 0.006})
    assert "no larger batch fits" in replica_reason(replica(bound_by="memory"), GOAL, {1: 0.006})
    assert "does not fit on Card" in replica_reason(replica(fits=False), GOAL, {})
    assert "does not run on Card" in replica_reason(replica(runs=False), GOAL, {})


def test_a_row_says_how_much_of_it_is_used() -> None:
    assert row_reason(CHEAP, GOAL) == "each carries 200/s in time, 75% of it used at the peak"
    assert row_reason(LATE, GOAL) == LATE.replica.reason[:-1]


def test_a_pick_is_held_against_the_cheapest() -> None:
    chosen = {"cheapest": CHEAP, "balanced": CHEAP, "fastest": QUICK}
    assert pick_reason("cheapest", chosen) == "the least money, p99 40 ms"
    assert pick_reason("fastest", chosen) == "the shortest p99, 20 ms, at 6 times the least money"
    alone = {"cheapest": CHEAP, "fastest": CHEAP}
    assert pick_reason("fastest", alone) == "the shortest p99, 40 ms, and the least money too"
    free = {"cheapest": replace(CHEAP, usd_per_month=0.0), "fastest": QUICK}
    assert pick_reason("fastest", free).endswith("20 ms, for $4,380 a month")
    assert pick_reason("balanced", chosen).startswith("nothing within a tenth of its cost")


def test_scaling_is_a_sentence() -> None:
    assert scaling_words(size()) == "Autoscaling: 1 to 3 replicas, another one beyond 140/s each."
    assert scaling_words(size(autoscaling=None)) == ""
