"""The picks of a ranking."""

from __future__ import annotations

from tests.services import CHEAP, LATE, QUICK, candidate

from tfdyno.jobs.choose._serving_answer import late_s, picks_of


def test_the_balanced_pick_is_the_soonest_that_costs_hardly_more() -> None:
    near = candidate("near", 0.54, 0.030)
    found = {one.title: one.candidate for one in picks_of((CHEAP, near, QUICK, LATE))}
    assert found == {"cheapest": CHEAP, "balanced": near, "fastest": QUICK}


def test_of_those_as_late_the_cheaper_is_taken() -> None:
    hair = candidate("hair", 9.0, 0.0199)
    assert late_s(hair) == late_s(QUICK)
    found = {one.title: one.candidate for one in picks_of((CHEAP, QUICK, hair))}
    assert found["fastest"] is QUICK


def test_without_a_feasible_one_nothing_is_picked() -> None:
    assert picks_of((LATE,)) == ()
