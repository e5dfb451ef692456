from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import GIB, candidate, estimate, exactly, run

from tfdyno.model.choose.choose import eligible, picks_of, ranked, verdict_of
from tfdyno.model.choose.cost import cost_of

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate

A100 = candidate("A100", 11.6, 5.24)
H100 = candidate("H100", 6.7, 5.37)
EIGHT_SPOT = candidate("8H100 spot", 1.4, 13.51)
EIGHT = candidate("8H100", 1.3, 29.53)
T4 = candidate("T4", 63.0, 33.14)


def test_balanced_pays_a_percent_only_for_a_percent_of_time() -> None:
    # by hand, cost/5.24 + hours/11.6: A100 2.00, H100 1.025 + 0.578 = 1.60,
    # eight on spot 2.578 + 0.121 = 2.70, eight 5.64 + 0.11 = 5.75, T4 6.3 + 5.4
    picks = picks_of([T4, EIGHT, EIGHT_SPOT, H100, A100])
    assert picks == {"cheapest": A100, "fastest": EIGHT, "balanced": H100}


def test_nothing_feasible_has_no_picks() -> None:
    assert picks_of([replace(A100, verdict="too late")]) == {}


def test_a_card_at_the_brink_of_its_memory_is_never_picked() -> None:
    brink = replace(A100, estimate=estimate(fits="may not"))
    assert eligible([brink, H100]) == (H100,)


def test_free_cards_are_the_cheapest_and_stay_balanced_against_money() -> None:
    free = candidate("Own", 10.0, 0.0)
    paid = candidate("Paid", 5.0, 1.0)  # by hand: 2 + 0.5 > 1 + 1
    assert picks_of([paid, free])["balanced"] is free


@pytest.mark.parametrize(
    ("changes", "deadline_h", "budget_usd", "verdict"),
    [
        ({}, 0.0, 0.0, "feasible"),
        ({}, 10.0, 20.0, "feasible"),  # at the limit is within it
        ({}, 9.0, 0.0, "too late"),
        ({}, 0.0, 19.0, "too dear"),
        ({}, 9.0, 19.0, "too late"),
        ({"fits": "no"}, 9.0, 0.0, "does not fit"),
        ({"fits": "unverified", "device_memory_bytes": exactly(81 * GIB)}, 0, 0, "does not fit"),
        ({"fits": "unverified"}, 0.0, 0.0, "feasible"),
    ],
)
def test_verdict_names_the_first_obstacle(
    changes: dict[str, object], deadline_h: float, budget_usd: float, verdict: str
) -> None:
    found = verdict_of(
        run(deadline_h=deadline_h, budget_usd=budget_usd),
        estimate(**changes),
        hours=exactly(10.0),
        cost_usd=exactly(20.0),
        runs=True,
    )
    assert found == verdict


def test_a_card_that_tensorflow_cannot_run_or_nobody_prices_says_so() -> None:
    hours = exactly(1.0)
    assert verdict_of(run(), estimate(), hours=hours, cost_usd=None, runs=False) == "cannot run"
    assert verdict_of(run(), estimate(), hours=hours, cost_usd=None, runs=True) == "no offer"


def test_ranking_puts_feasible_first_then_cost_then_hours_and_marks_the_front() -> None:
    late = replace(candidate("Late", 99.0, 1.0), verdict="too late")
    order = ranked([late, T4, EIGHT, H100, A100])
    assert [one.gpu_name for one in order] == ["A100", "H100", "8H100", "T4", "Late"]
    assert [one.pareto for one in order] == [True, True, True, False, False]


def test_a_few_percent_less_time_make_no_fastest_pick_of_their_own() -> None:
    # by hand: 10.0 h are 0.4 % over 9.96 h, which costs 110 times as much
    cheap, dear = candidate("Cheap", 10.0, 1.0), candidate("Dear", 9.96, 110.0)
    assert picks_of([cheap, dear])["fastest"] is cheap
    quick = candidate("Quick", 5.0, 110.0)
    assert picks_of([cheap, dear, quick])["fastest"] is quick
    level = candidate("Level", 5.1, 60.0)
    assert picks_of([cheap, quick, level])["fastest"] is level


ROUNDED = 1.0 + 1e-12


@st.composite
def feasible(draw: st.DrawFn) -> list[Candidate]:
    pairs = draw(
        st.lists(st.tuples(st.floats(0.1, 100.0), st.floats(0.01, 1000.0)), min_size=1, max_size=12)
    )
    return [candidate(f"Card {i}", hours, usd) for i, (hours, usd) in enumerate(pairs)]


@given(candidates=feasible())
def test_picks_are_extremes_and_the_balanced_one_lies_between(candidates: list[Candidate]) -> None:
    picks = picks_of(candidates)
    assert cost_of(picks["cheapest"]) == min(map(cost_of, candidates))
    assert picks["fastest"].hours.best <= 1.03 * min(c.hours.best for c in candidates)
    assert cost_of(picks["balanced"]) >= cost_of(picks["cheapest"])
    # of two that take as long but for rounding, either may be named
    fastest, balanced, cheapest = (
        picks[name].hours.best for name in ("fastest", "balanced", "cheapest")
    )
    assert fastest <= balanced * ROUNDED
    assert balanced <= cheapest * ROUNDED
