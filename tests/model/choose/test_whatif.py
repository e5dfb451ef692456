from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import candidate, estimate, offer

from tfdyno.model.choose.whatif import (
    batch_limits,
    flip_price,
    round_deadline_h,
    within_hours,
    without_budget,
    without_deadline,
    without_spot,
)

H100 = candidate("H100", 6.7, 5.37)
SPOT = replace(H100, offer=offer("h100", 0.8, spot=True))
RTX = candidate("RTX 5090", 13.0, 6.26)


@pytest.mark.parametrize(("hours", "deadline"), [(6.7, 3.0), (12.0, 6.0), (0.5, 0.2), (90.0, 40.0)])
def test_a_round_deadline_is_about_half(hours: float, deadline: float) -> None:
    assert round_deadline_h(hours) == pytest.approx(deadline)


@given(hours=st.floats(1e-3, 1e5))
def test_a_round_deadline_is_sooner_but_within_reach(hours: float) -> None:
    assert 0.24 * hours <= round_deadline_h(hours) <= 0.5 * hours


def test_the_price_flips_where_another_card_costs_the_same() -> None:
    # by hand: $6.26 / 6.7 h = $0.934/h
    price, other = flip_price([H100, RTX], H100) or (0.0, None)
    assert price == pytest.approx(6.26 / 6.7)
    assert other is RTX


def test_no_price_flips_without_a_dearer_card_or_an_hourly_price() -> None:
    assert flip_price([H100, replace(RTX, gpu="h100")], H100) is None
    assert flip_price([RTX], replace(H100, offer=offer("h100", 0.0, provider="owned"))) is None


def test_without_spot_the_best_of_what_stays_is_named() -> None:
    assert without_spot([SPOT, RTX]) is RTX
    assert without_spot([SPOT]) is None


def test_limits_name_what_they_keep_out() -> None:
    late = replace(candidate("T4", 68.0, 4.3), verdict="too late")
    dear = replace(candidate("B200", 1.0, 50.0), verdict="too dear")
    assert without_deadline([H100, late]) is late
    assert without_deadline([H100, replace(late, cost_usd=RTX.cost_usd)]) is None
    assert without_budget([H100, dear]) is dear
    assert without_budget([candidate("Quick", 0.5, 1.0), dear]) is None


def test_a_sooner_deadline_is_met_at_the_lowest_cost() -> None:
    quick, quicker = candidate("Quick", 2.0, 14.0), candidate("Quicker", 1.0, 30.0)
    assert within_hours([H100, quick, quicker], 3.0) is quick
    assert within_hours([H100, quick, quicker], 0.5) is None


def test_batch_limits_come_smallest_first_and_leave_out_what_is_too_small_already() -> None:
    cards = [
        replace(candidate(name, 1.0, 1.0), estimate=estimate(max_batch_size=limit))
        for name, limit in (("Large", 900), ("Small", 150), ("Tiny", 80), ("Small", 120))
    ]
    assert batch_limits(cards, 100) == [(150, "Small"), (900, "Large")]
