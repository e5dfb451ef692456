from __future__ import annotations

from dataclasses import replace

from tests.advice import candidate, estimate, offer

from tfdyno.catalog.gpus import find
from tfdyno.core.choose.advice import Change
from tfdyno.words.choose import changes as words

H100 = replace(candidate("H100", 6.7, 5.37), offer=offer("h100", 0.8, spot=True))
RTX = candidate("GeForce RTX 5090", 13.0, 6.26)


def test_a_change_names_the_other_choice_with_hours_and_dollars() -> None:
    consequence = "RTX 5090 on demand, 13 h, $6.30"
    assert words.freed("no spot instances", RTX) == Change(
        condition="no spot instances", consequence=consequence
    )
    assert words.sooner(3.0, RTX) == Change(condition="done in 3 h", consequence=consequence)


def test_a_price_flip_names_the_price_and_its_month() -> None:
    assert words.price_flip(0.934, H100, RTX) == Change(
        condition="H100 over $0.93/h",
        consequence="RTX 5090 on demand becomes cheaper (H100: $0.80/h in 2026-10)",
    )


def test_batch_limits_name_the_first_half_and_the_pick() -> None:
    pick = replace(H100, estimate=estimate(max_batch_size=2088))
    limits = [(352, "Tesla T4"), (384, "V100"), (552, "A10G"), (2088, "H100")]
    assert words.larger_batch(limits, pick) == Change(
        condition="batch above 352",
        consequence="T4 drops out; above 384 2 of 4 cards; above 2,088 H100 too",
    )


def test_batch_limits_of_the_pick_alone_are_said_once() -> None:
    pick = replace(H100, estimate=estimate(max_batch_size=2088))
    only = words.larger_batch([(2088, "H100")], pick)
    assert only == Change(condition="batch above 2,088", consequence="H100 drops out")
    assert words.larger_batch([], pick) is None


def test_a_card_that_holds_all_that_is_estimated_drops_out_at_no_batch() -> None:
    end = 1 << 20
    pick = replace(H100, estimate=estimate(max_batch_size=end))
    only = words.larger_batch([(352, "Tesla T4"), (end, "A10G"), (end, "H100")], pick)
    assert only == Change(
        condition="batch above 352", consequence="T4 drops out"
    )  # fmt: skip
    assert words.larger_batch([(end, "A10G"), (end, "H100")], pick) is None


def test_a_newer_tensorflow_names_or_counts_the_cards() -> None:
    assert words.newer_tensorflow(["GeForce RTX 5090"], "2.21") == Change(
        condition="TensorFlow 2.21 or newer", consequence="RTX 5090 joins the choice"
    )
    assert words.newer_tensorflow(["A", "B"], "2.21").consequence == "2 cards join the choice"


def test_buying_says_when_it_pays_and_what_the_card_asks_for() -> None:
    card = replace(
        find("rtx-4090"),
        launch_price_usd=1599.0,
        recommended_power_supply_w=850.0,
        ecc=False,
        continuous_duty="no",
    )
    assert words.buying(card, 4020.0, 0.4, 200.6) == Change(
        condition="buy RTX 4090",
        consequence="at $1,599 pays for itself after about 4,000 h of renting at $0.40/h, 200 runs "
        "like this one; needs a power supply of 850 W; no ECC memory; not sold for running around "
        "the clock",
    )
    other = words.buying(replace(card, ecc=True), 4020.0, 0.4, 0.0)
    assert "/h; needs a power supply of 850 W; not sold" in other.consequence
