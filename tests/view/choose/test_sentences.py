"""Each heading follows from its numbers; every branch is reached by an answer that has it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view import answers
from tests.view.answers import altered, balanced, judged, with_best

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.advice import HoursPart
from tfdyno.view.choose import sentences
from tfdyno.view.choose.cards import recommended
from tfdyno.view.choose.figure_cost import frontier

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Advice, Run


@pytest.fixture(scope="module")
def advice() -> Advice:
    return answers.advice()


# The answer


def test_the_answer_gives_range_fit_and_pace(advice: Advice) -> None:
    text = sentences.answer(advice)
    assert text.startswith("Nine times in ten it takes 4.7–6.9 h and costs $3.70–5.60 at $0.80/h.")
    assert "It fits with room to spare (5.6 of 78.4 GiB)." in text
    assert text.endswith("Memory traffic, not arithmetic, sets its pace (68% of a step).")


def test_the_answer_says_how_much_of_it_is_validation(advice: Advice) -> None:
    best = recommended(advice)
    assert best
    part = HoursPart(kind="validation", hours=best.hours.times(0.1))
    tenth = replace(best, hours_parts=(part,))
    ranking = tuple(tenth if one is best else one for one in advice.ranking)
    picks = tuple(
        replace(one, candidate=tenth) if one.candidate is best else one for one in advice.picks
    )
    text = sentences.answer(replace(advice, ranking=ranking, picks=picks))
    assert " and costs $3.70–5.60 at $0.80/h. Of that: validation " in text
    assert " (10%). The price is of 2026-05; how it moves and what is free is not known. " in text


@pytest.mark.parametrize(
    ("fits", "words"),
    [
        ("no", "It does not fit: it needs 5.6 of 78.4 GiB."),
        ("may not", "It may not fit"),
        ("unverified", "the compiler has not confirmed it"),
    ],
)
def test_the_answer_says_when_memory_is_in_doubt(advice: Advice, fits: str, words: str) -> None:
    assert words in sentences.answer(with_best(advice, fits=fits))


def test_the_answer_says_when_its_very_batch_was_compiled(advice: Advice) -> None:
    proven = sentences.answer(with_best(advice, fits_verified=True))
    assert "It fits with room to spare (5.6 of 78.4 GiB, compiled at this very batch)." in proven


def test_what_is_too_large_by_the_quick_route_probably_does_not_fit(advice: Advice) -> None:
    small = with_best(advice, fits="unverified", usable_memory_bytes=5.0 * answers.GIB)
    said = sentences.answer(small)
    assert "Probably does not fit (memory not compiled): it needs about 5.6 of 5.0 GiB." in said
    assert "it fits" not in said


def test_the_answer_says_that_its_price_is_old(advice: Advice) -> None:
    assert "check it" not in sentences.answer(advice)
    assert sentences.answer(replace(advice, made_on="2027-11-21")).endswith(
        "Price of 2026-05; check it."
    )


def test_a_tight_fit_is_called_tight(advice: Advice) -> None:
    assert "It fits tightly" in sentences.answer(with_best(advice, usable_memory_bytes=6.5e9))


def test_waiting_for_input_is_said_in_plain_words(advice: Advice) -> None:
    terms = {"compute": 0.2, "memory": 0.2, "input": 0.6}
    text = sentences.answer(with_best(advice, terms_s=terms, bound_by="input"))
    assert text.endswith("Waiting for input sets its pace (60% of a step).")


def test_without_a_feasible_candidate_the_nearest_is_named(advice: Advice) -> None:
    text = sentences.answer(judged(advice, "too late"))
    assert text.startswith("Nearest to it comes one A100 SXM4 80 GB: 7.7–11 h, too late.")


def test_without_any_candidate_the_answer_says_so(advice: Advice) -> None:
    assert "No card" in sentences.answer(replace(advice, ranking=(), picks=()))


# Cost and time


def test_the_price_of_an_hour_saved_is_worked_out_from_the_knee(advice: Advice) -> None:
    front = frontier(advice)
    finding = sentences.cost(advice, front)
    # One H100 on spot: $4.55 in 5.69 h; eight on demand: $19.43 in 0.823 h. (19.43-4.55)/4.87 h
    assert finding.heading == "Past one H100 SXM, each hour saved costs about $3.10"
    assert finding.lead.startswith("8 × H100 SXM saves 4.9 hours for $15 more.")


def test_one_offer_that_beats_all_is_named(advice: Advice) -> None:
    finding = sentences.cost(advice, [balanced(advice)])
    assert finding.heading == "One H100 SXM on spot is both the cheapest and the fastest"


def test_a_pick_that_is_the_fastest_is_set_against_the_cheapest(advice: Advice) -> None:
    cheap = next(pick.candidate for pick in advice.picks if pick.title == "cheapest")
    finding = sentences.cost(advice, [balanced(advice), cheap])
    assert finding.heading == (
        "The fastest offer costs $0.34 more than the cheapest and saves 3.7 hours"
    )


def test_limits_that_nothing_keeps_are_told_from_missing_prices(advice: Advice) -> None:
    late = judged(advice, "too late")
    assert sentences.cost(late, []).heading == "No offer finishes within the limits"
    free = tuple(replace(one, cost_usd=None, offer=None) for one in advice.ranking)
    bare = replace(advice, ranking=free, picks=())
    assert sentences.cost(bare, []).heading == "No candidate has a price"


# Ranking


def test_the_ranking_counts_those_in_time(advice: Advice) -> None:
    assert sentences.ranking(advice).heading == "10 of 14 candidates finish within a day"


def limited(advice: Advice, **changes: object) -> Advice:
    run: Run = replace(advice.run, **changes)  # type: ignore[arg-type]
    return replace(advice, run=run)


def test_the_ranking_names_the_limits_that_were_set(advice: Advice) -> None:
    both = limited(advice, deadline_h=30.0, budget_usd=50.0)
    assert sentences.ranking(both).heading.endswith("finish within 30 h for at most $50")
    none = limited(advice, deadline_h=0.0)
    assert sentences.ranking(none).heading == "10 of 14 candidates can do the run"


def test_all_none_and_nothing_have_sentences_of_their_own(advice: Advice) -> None:
    assert sentences.ranking(judged(advice, "feasible")).heading == (
        "All 14 candidates finish within a day"
    )
    assert sentences.ranking(judged(advice, "too late")).heading == (
        "None of 14 candidates finishes within a day"
    )
    empty = replace(advice, ranking=(), picks=())
    assert sentences.ranking(empty).heading == "There is nothing to rank"


# How sure


def test_the_reach_of_the_range_makes_the_heading(advice: Advice) -> None:
    finding = sentences.sure(advice, balanced(advice))
    assert finding.heading == "A step’s time is known to within −18 to +22%, nine times in ten"
    assert finding.lead.startswith("Memory is the plan of the compiler itself")
    assert finding.lead.endswith("their order is surer than the hours.")
    tied = tuple(one.slug for one in advice.ranking if one.gpu in ("a100-sxm4-80gb", "rtx-5090"))
    picks = tuple(replace(one, ties=tied) for one in advice.picks)
    finding = sentences.sure(replace(advice, picks=picks), balanced(advice))
    assert finding.lead.endswith("the pick is a tie with A100 SXM4 80 GB and RTX 5090.")


def test_memory_that_was_not_compiled_is_said_to_be_so(advice: Advice) -> None:
    quick = altered(balanced(advice), made_by={"time": "quick", "memory": "quick"})
    assert "was not compiled" in sentences.sure(advice, quick).lead


@given(st.floats(1e-4, 1e4), st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_no_interval_makes_a_heading_without_numbers(best: float, down: float, up: float) -> None:
    reach = Interval(low=best / down, best=best, high=best * up)
    one = altered(answers.candidate("t4", run=answers.run()), step_s=reach)
    heading = sentences.sure(answers.advice(), one).heading
    assert "nan" not in heading
    assert any(char.isdigit() for char in heading)
