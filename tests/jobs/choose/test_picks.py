from __future__ import annotations

from dataclasses import replace

import pytest
from tests.advice import candidate, run

from tfdyno.jobs.choose.picks import NOTICED_H, sober_picks, told_picks

ONE = candidate("One", 0.20, 0.10)
FOUR = replace(candidate("Four", 0.13, 0.11), count=4)
EIGHT = replace(candidate("Eight", 0.12, 0.12), count=8)


def test_more_gpus_that_save_less_than_5_minutes_are_not_the_balanced_pick() -> None:
    # by hand, cost/0.10 + hours/0.20: one 2.0, four 1.1 + 0.65 = 1.75, eight 1.2 + 0.6 = 1.8;
    # four saves 0.07 h = 4.2 minutes
    picks = sober_picks([ONE, FOUR, EIGHT])
    assert picks == {"cheapest": ONE, "balanced": ONE, "fastest": EIGHT}


def test_more_gpus_that_save_more_stay() -> None:
    slow = replace(ONE, hours=candidate("One", 0.13 + NOTICED_H + 0.001).hours)
    assert sober_picks([slow, FOUR, EIGHT])["balanced"] is FOUR


def test_fewer_gpus_that_cost_more_are_not_preferred() -> None:
    dear = candidate("Dear", 0.14, 0.30)
    assert sober_picks([dear, FOUR])["balanced"] is FOUR


def test_the_reason_names_what_was_spared() -> None:
    reasons = {pick.title: pick.reason for pick in told_picks([ONE, FOUR, EIGHT], run())}
    assert reasons["balanced"] == "4 x Four would save less than 5 minutes"
    assert list(reasons) == ["cheapest", "balanced", "fastest"]


@pytest.mark.parametrize("ranking", [[], [replace(ONE, verdict="too late")]])
def test_nothing_feasible_has_no_picks(ranking: list[object]) -> None:
    assert told_picks(ranking, run()) == ()  # type: ignore[arg-type]


def test_a_tie_is_told_as_one_with_the_rows_that_make_it() -> None:
    # by hand, ranges of -20 to +25%: 0.11 is within 0.08-0.125, and 0.10 within 0.088-0.1375
    near, far = candidate("Near", 0.19, 0.11), candidate("Far", 0.05, 9.0)
    cheapest, balanced, fastest = told_picks([ONE, near, far], run())
    assert cheapest.ties == (near.slug,)
    assert cheapest.reason == (
        "lowest cost of 3 choices; in cost a tie with Near, as far as times are known"
    )
    assert (cheapest.runner_up, cheapest.decided_by) == (near.slug, "")
    assert balanced.ties == (near.slug,)
    assert balanced.reason.endswith("in cost and time a tie with Near, as far as times are known")
    assert fastest.ties == ()


def test_without_a_tie_the_cheapest_says_whether_price_or_speed_puts_it_first() -> None:
    dear = candidate("Dear", 0.05, 9.0)
    cheapest, *_ = told_picks([ONE, dear], run())
    assert (cheapest.ties, cheapest.runner_up, cheapest.decided_by) == ((), dear.slug, "price")
    assert cheapest.reason.endswith("; price, not speed, puts it before Dear")
    slow = candidate("Slow", 1.0, 0.2)
    cheapest, *_ = told_picks([ONE, slow], run())
    assert cheapest.reason.endswith("; speed, not price, puts it before Slow")


def test_a_tie_of_offers_of_the_same_card_names_their_sellers() -> None:
    assert ONE.offer
    other = replace(ONE, offer=replace(ONE.offer, slug="else/One", provider="else"))
    cheapest, *_ = told_picks([ONE, other], run())
    assert "; in cost a tie with that of else" in cheapest.reason
