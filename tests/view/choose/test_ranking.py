"""The ranking is grouped, numbered through, and folded so that the telling rows show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.view import answers
from tests.view.answers import GIB

from tfdyno.core.choose.program import Rematerialisation
from tfdyno.view.choose.cards import old_price, stale
from tfdyno.view.choose.ranking import groups, hours_axis

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate


def test_groups_come_in_order_and_number_their_rows_through() -> None:
    found = groups(answers.advice(), answers.gpus())
    assert [group.verdict for group in found] == ["feasible", "too late", "does not fit"]
    numbers = [row.number for group in found for row in group.rows]
    assert numbers == list(range(1, 15))


def test_group_titles_name_the_limit_and_the_way_out() -> None:
    titles = [group.title for group in groups(answers.advice(), answers.gpus())]
    assert titles == [
        "Finish within 24 hours, by the best estimate",
        "Later than 24 hours",
        "Too little memory for a batch of 64; the largest batch among them is 12",
    ]


def test_a_long_group_shows_the_first_offer_of_each_card_and_every_pick() -> None:
    advice = answers.advice()
    last = advice.picks[2].candidate
    same_card = [replace(advice.ranking[0], pareto=False)] * 30
    ranking = (*advice.ranking[:1], *same_card, *advice.ranking[1:])
    first = groups(replace(advice, ranking=ranking), answers.gpus())[0]
    shown = [row for row in first.rows if row.shown]
    assert first.folded == 32  # 30 copies, and the on-demand offers of two cards that lead already
    assert sum(row.name == "A100 SXM4 80 GB" for row in shown) == 1
    assert any(row.name.startswith("8 ×") and row.titles == ("fastest",) for row in shown)
    assert last.count == 8


def test_a_range_across_the_deadline_is_said() -> None:
    first = groups(answers.advice(), answers.gpus())[0]
    warned = {row.name for row in first.rows if row.hours.warning == "may miss 24 h"}
    assert warned == {"L40S"}


def test_a_row_that_fits_by_recomputing_says_so() -> None:
    again = Rematerialisation(
        need_bytes=20.1 * GIB, held_bytes=13.3 * GIB, limit_bytes=11.9 * GIB, limit_met=False,
        instruction_count=45,
    )  # fmt: skip
    advice = answers.advice()
    first = advice.ranking[0]
    told = replace(first, estimate=replace(first.estimate, rematerialisation=again, fits="yes"))
    row = groups(replace(advice, ranking=(told,), picks=()), answers.gpus())[0].rows[0]
    assert row.memory.warning == (
        "needs 20.1 GiB; XLA recomputes to hold it in 13.3 GiB, short of the 11.9 GiB that it "
        "aims at"
    )


def test_cards_that_do_not_fit_say_what_they_lack_and_the_way_out() -> None:
    row = groups(answers.advice(), answers.gpus())[2].rows[0]
    assert row.refusal == "Needs 5.6 GiB and has 2.0; a batch of 12 would fit."


def test_cards_that_cannot_run_say_why() -> None:
    advice = answers.advice()
    one = replace(
        advice.ranking[0],
        verdict="cannot run",
        tensorflow="cannot: no kernels for 3.0 in the wheel",
    )
    row = groups(replace(advice, ranking=(one,), picks=()), answers.gpus())[0].rows[0]
    assert row.refusal == "No kernels for 3.0 in the wheel."


@pytest.mark.parametrize(
    ("priced_on", "words"),
    [
        ("2026-05-02", ""),
        ("2025-11-30", ""),
        ("2025-11-01", "price of 2025-11"),
        ("2022-03", "price of 2022-03"),
        ("", ""),
        ("unknown", ""),
    ],
)
def test_a_price_older_than_twelve_months_is_stale(priced_on: str, words: str) -> None:
    one = answers.advice().ranking[0]
    assert one.offer
    aged: Candidate = replace(one, offer=replace(one.offer, priced_on=priced_on))
    assert stale(aged, "2026-11-21") == words


def test_the_axis_of_hours_covers_all_that_finish() -> None:
    advice = answers.advice()
    low, high = hours_axis(advice)
    fine = [one.hours for one in advice.ranking if one.verdict == "feasible"]
    assert low <= min(one.low for one in fine)
    assert high >= max(one.high for one in fine)
    assert (low, high) == (0.5, 50.0)


def test_an_old_price_is_a_sentence_and_a_fresh_one_is_nothing() -> None:
    pick = next(pick.candidate for pick in answers.advice().picks if pick.candidate.offer)
    assert pick.offer
    old = replace(pick, offer=replace(pick.offer, priced_on="2025-01"))
    assert old_price(old, "2026-11-21") == "Price of 2025-01; check it."
    assert old_price(old, "2025-06-01") == ""
