from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.model.choose.whatif import break_even_h, paid_off_after_h

CARD = replace(find("rtx-4090"), launch_price_usd=1600.0, tdp_w=500.0)


def test_hours_are_the_price_over_what_an_hour_saves() -> None:
    # by hand: 0.50 rent - 0.5 kW x $0.20 = $0.40 saved an hour; 1600 / 0.40 = 4000 h
    hours = break_even_h(CARD, rent_usd_per_h=0.5, electricity_usd_per_kwh=0.2)
    assert hours == pytest.approx(4000.0)


def test_a_rent_below_the_electricity_never_pays() -> None:
    assert break_even_h(CARD, rent_usd_per_h=0.05, electricity_usd_per_kwh=0.2) == math.inf


@pytest.mark.parametrize(("price", "rent"), [(0.0, 1.0), (1600.0, 0.0)])
def test_unknown_prices_are_refused(price: float, rent: float) -> None:
    with pytest.raises(ValueError, match="need a price and a rent above 0"):
        break_even_h(
            replace(CARD, launch_price_usd=price), rent_usd_per_h=rent, electricity_usd_per_kwh=0.2
        )


@pytest.mark.parametrize(
    ("run_h", "hours"),
    [
        (0.05, 480.0 * 1000.0),  # by hand: 1000 h in runs of 3 min are 20,000 runs, each a day
        (4.0, 6000.0),  # 250 runs of 4 h, one a day
        (24.0, 1000.0),  # run after run
        (100.0, 1000.0),
        (0.0, 1000.0),
    ],
)
def test_a_card_pays_off_by_a_run_a_day_or_by_run_after_run(run_h: float, hours: float) -> None:
    assert paid_off_after_h(1000.0, run_h, run_every_h=24.0) == pytest.approx(hours)
