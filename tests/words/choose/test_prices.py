from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.advice import candidate, offer

from tfdyno.core.choose.hardware import PriceRange
from tfdyno.words.choose.advice import price_words
from tfdyno.words.choose.prices import decided_words, price_line, tie_words

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Decider, Doubt

ONE = candidate("A100", 10.0, 8.0)  # $0.80/h in 2026-10
HISTORY = PriceRange(basis="history", low_ratio=0.75, high_ratio=1.5, since="2026-09-01")
REGIONS = PriceRange(basis="regions", high_ratio=1.5, regions=4)
assert ONE.offer
FREE = replace(ONE, offer=replace(ONE.offer, available=3, priced_on="2026-11-27"))


def test_an_unknown_range_and_supply_are_called_unknown() -> None:
    told = "The price is of 2026-10; how it moves and what is free is not known."
    assert price_line(ONE, [ONE]) == told
    assert price_words(ONE) == "$0.80/h"


def test_a_range_says_what_it_rests_on() -> None:
    past, wide = replace(ONE, price_range=HISTORY), replace(FREE, price_range=REGIONS)
    assert price_words(past) == "$0.60–1.20/h"
    assert price_line(past, []) == (
        "These are its prices since 2026-09-01, the last one $0.80/h; what is free is not known."
    )
    assert price_line(wide, []) == (
        "These are its prices in 4 regions in 2026-11, here $0.80/h; "
        "3 machines were free on 2026-11-27."
    )
    assert price_line(FREE, []).endswith("is not known; 3 machines were free on 2026-11-27.")


def test_what_all_offers_of_the_card_ask_is_told_beside() -> None:
    others = [candidate("A100", 10.0, usd) for usd in (8.0, 20.0, 44.0)]
    several = replace(candidate("A100", 5.0, 300.0), count=8)
    assert price_line(ONE, [*others, several, candidate("T4", 10.0, 1.0)]).endswith(
        " The 3 offers of an A100 ask $0.80–4.40/h."
    )


@pytest.mark.parametrize("basis", ["electricity", "own price"])
def test_of_ones_own_price_nothing_has_to_be_said(basis: str) -> None:
    own = replace(ONE, price_range=PriceRange(basis=basis))  # type: ignore[arg-type]
    assert price_line(own, [ONE]) == ""
    owned = replace(own, offer=offer("a100", 0.0, provider="owned", terms="owned"))
    assert price_words(owned) == ""
    assert price_words(candidate("A100", 10.0, None)) == ""


@pytest.mark.parametrize(
    ("ties", "doubts", "words"),
    [
        ([], [], ""),
        (["A"], [""], "in cost a tie with A"),
        (["A", "B", "C"], ["time"], "in cost a tie with A, B and C, as far as times are known"),
        (
            ["A", "B", "C", "D"],
            ["price", ""],
            "in cost a tie with A, B and 2 more, as far as prices move",
        ),
        (
            ["A"],
            ["time and price"],
            "in cost a tie with A, as far as times are known and prices move",
        ),
    ],
)
def test_a_tie_names_two_and_says_why_it_is_one(
    ties: list[str], doubts: list[Doubt], words: str
) -> None:
    assert tie_words("cost", ties, doubts) == words


@pytest.mark.parametrize(
    ("decider", "words"),
    [
        ("price", "price, not speed, puts it before L40S"),
        ("speed", "speed, not price, puts it before L40S"),
        ("price and speed", "price and speed put it before L40S"),
        ("", ""),
    ],
)
def test_what_decides_is_named(decider: Decider, words: str) -> None:
    assert decided_words(decider, "L40S") == words
