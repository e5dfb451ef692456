from __future__ import annotations

from dataclasses import replace

import pytest

from tfdyno.catalog.offer_rules import Listing
from tfdyno.catalog.price_history import by_machine
from tfdyno.catalog.price_ranges import price_record
from tfdyno.core.choose.hardware import UNKNOWN_PRICE_RANGE, Offer, PriceRange

NOW = Offer(
    slug="cloud/small/here/on_demand", provider="cloud", instance="small", region="here",
    gpu_slug="t4", gpu_count=1, gpu_fraction=1.0, vcpus=4, ram_bytes=0.0, usd_per_h=0.4, spot=False,
    priced_on="2026-11-27", date_precision="day", source="test",
)  # fmt: skip
THERE = replace(NOW, region="there", usd_per_h=0.5)
ROW = Listing(
    provider="cloud", instance="small", region="here", gpu_slug="t4", gpus=1, vcpus=4, ram_gb=16,
    usd_per_h=0.6, spot_usd_per_h=0.2, date="2026-10-01", date_precision="day",
    gpu_memory_total_gb=0, source="test",
)  # fmt: skip


def test_the_history_of_the_very_offer_goes_before_other_regions() -> None:
    low = replace(ROW, date="2026-11-02", usd_per_h=0.2)
    found = price_record(
        [NOW, THERE],
        by_machine(
            (
                ROW,
                low,
            )
        ),
    ).range_of(NOW)
    assert found.basis == "history"
    assert found.low_ratio == pytest.approx(0.5)
    assert found.high_ratio == pytest.approx(1.5)
    assert found.since == "2026-10-01"


def test_without_a_history_other_regions_of_the_provider_make_the_range() -> None:
    found = price_record([NOW, THERE], {}).range_of(NOW)
    assert found == PriceRange(basis="regions", high_ratio=1.25, regions=2)
    assert price_record([NOW, THERE], {}).range_of(THERE).low_ratio == pytest.approx(0.8)


@pytest.mark.parametrize(
    "other",
    [
        replace(THERE, usd_per_h=0.4),  # one price everywhere says nothing of days
        replace(THERE, provider="else"),
        replace(THERE, instance="large"),
        replace(THERE, gpu_slug="l4"),
        replace(THERE, spot=True),
        replace(THERE, priced_on="2026-08"),  # 118 days before
        replace(THERE, terms="contract"),
    ],
)
def test_what_is_not_comparable_makes_no_range_and_none_is_pretended(other: Offer) -> None:
    assert price_record([NOW, other], {}).range_of(NOW) == UNKNOWN_PRICE_RANGE


@pytest.mark.parametrize(
    ("row", "basis"),
    [
        (replace(ROW, date="2026-11-26"), "history"),  # it moved in a day
        (replace(ROW, date="2026-11-20", usd_per_h=0.4), "history"),  # it stood still for a week
        (replace(ROW, date="2026-11-21", usd_per_h=0.4), "unknown"),  # for six days
        (replace(ROW, date="2025-11-27"), "history"),  # 365 days before
        (replace(ROW, date="2025-11-26"), "unknown"),
        (replace(ROW, date="1970-01-01"), "unknown"),  # by a clock years off
        (replace(ROW, date="2036-11-26"), "unknown"),
        (replace(ROW, usd_per_h=0.0), "unknown"),
        (replace(ROW, usd_per_h=0.0001), "unknown"),
        (replace(ROW, usd_per_h=4000.0), "unknown"),
        (replace(ROW, gpu_slug="l4"), "unknown"),
        (replace(ROW, region="there"), "unknown"),
    ],
)
def test_a_history_counts_where_it_is_recent_and_believable(row: Listing, basis: str) -> None:
    assert price_record([NOW], by_machine((row,))).range_of(NOW).basis == basis


def test_spot_has_a_range_of_its_own() -> None:
    spot = replace(NOW, spot=True, usd_per_h=0.1)
    found = price_record([spot], by_machine((ROW,))).range_of(spot)
    assert found.low_ratio == 1.0
    assert found.high_ratio == pytest.approx(2.0)


def test_several_machines_range_as_one_does() -> None:
    four = replace(NOW, instance="4 x small", gpu_count=4, usd_per_h=1.6, nodes=4)
    record = price_record([NOW, THERE], by_machine((ROW,)))
    assert record.range_of(four) == record.range_of(NOW)


@pytest.mark.parametrize(
    ("offer", "basis"),
    [
        (replace(NOW, terms="contract"), "own price"),
        (replace(NOW, terms="reserved"), "own price"),
        (replace(NOW, terms="owned"), "own price"),
        (replace(NOW, terms="owned", provider="owned", usd_per_h=0.0, priced_on=""), "electricity"),
    ],
)
def test_the_users_own_price_is_exact(offer: Offer, basis: str) -> None:
    found = price_record([NOW, THERE], by_machine((ROW,))).range_of(offer)
    assert (found.basis, found.low_ratio, found.high_ratio) == (basis, 1.0, 1.0)
