"""Which prices are believed: every rule with the row that just passes and the one that does not."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.catalog import gpus, offer_rules
from tfdyno.catalog.offer_rules import Listing

TODAY = datetime.date(2026, 11, 21)
CARDS = {slug: gpus.find(slug) for slug in ("t4", "a100-sxm4-80gb")}
GOOD = Listing(
    provider="cloud", instance="small", region="here", gpu_slug="t4", gpus=1, vcpus=4, ram_gb=16,
    usd_per_h=0.5, spot_usd_per_h=0.2, date="2026-11-20", date_precision="day",
    gpu_memory_total_gb=0, source="price page",
)  # fmt: skip


def reasons(row: Listing, *peers: Listing) -> tuple[str, ...]:
    (found,) = offer_rules.judge([row], [row, *peers], CARDS, today=TODAY)
    return found


def peers(*usd_per_h: float) -> list[Listing]:
    return [replace(GOOD, region=str(i), usd_per_h=usd) for i, usd in enumerate(usd_per_h)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gpus": 0.125},
        {"gpus": 16},
        {"spot_usd_per_h": 0.5},  # spot as dear as on-demand
        {"spot_usd_per_h": 0.0},  # none
        {"gpu_memory_total_gb": 15},  # 16 - 6.25 %
        {"date": "2026-11-22"},  # it is tomorrow somewhere
        {"date": "2026-11"},
    ],
)
def test_a_possible_row_is_believed(changes: dict[str, Any]) -> None:
    assert reasons(replace(GOOD, **changes)) == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu_slug": "t40"}, "there is no GPU 't40'"),
        ({"usd_per_h": 0.0}, "the on-demand price is not above 0"),
        ({"spot_usd_per_h": 0.6}, "spot 0.6 is above on-demand 0.5 USD/h"),
        ({"gpus": 7}, "no machine has 7 GPUs"),
        ({"gpus": 0}, "no machine has 0 GPUs"),
        ({"gpu_memory_total_gb": 24}, "24 GB of GPU memory stated, 16 GB expected"),
        ({"instance": "T4 (GPU part only)"}, "the price is of the GPU without its host"),
        ({"source": ""}, "source or date precision is missing"),
        ({"date_precision": ""}, "source or date precision is missing"),
        ({"date": "2026-11-23"}, "its date 2026-11-23 is in the future"),
        ({"date": "2026-12"}, "its date 2026-12 is in the future"),
    ],
)
def test_a_row_that_breaks_a_rule_is_told_why(changes: dict[str, Any], reason: str) -> None:
    assert reasons(replace(GOOD, **changes)) == (reason,)


def test_every_broken_rule_is_told() -> None:
    assert len(reasons(replace(GOOD, gpu_slug="x", gpus=7, source=""))) == 3


@pytest.mark.parametrize(
    ("usd_per_h", "believed"), [(0.25, True), (0.24, False), (4.0, True), (4.01, False)]
)
def test_a_price_is_believed_within_a_factor_of_4_of_the_median(
    usd_per_h: float, believed: bool
) -> None:
    row = replace(GOOD, usd_per_h=usd_per_h, spot_usd_per_h=0.0)
    found = reasons(row, *peers(1.0, 1.0, 1.0))
    assert found == () if believed else found[0].endswith("a factor 4 from the median 1.00")


def test_the_median_is_per_gpu_and_needs_three_rows() -> None:
    machines = [replace(one, gpus=8, usd_per_h=8 * one.usd_per_h) for one in peers(1.0, 2.0, 6.0)]
    assert offer_rules.median_usd_per_gpu_h(machines) == {"t4": 2.0}
    assert offer_rules.median_usd_per_gpu_h(machines[:2]) == {}


def test_a_price_of_a_part_does_not_move_the_median() -> None:
    part = replace(GOOD, instance="T4 (GPU part only)", usd_per_h=0.01)
    assert offer_rules.median_usd_per_gpu_h([*peers(1.0, 1.0), part]) == {}


def test_a_row_that_stands_twice_counts_once() -> None:
    assert offer_rules.median_usd_per_gpu_h([GOOD, GOOD, GOOD]) == {}


@given(st.sampled_from([2, 4, 8]), st.floats(0.05, 20))
def test_a_price_is_judged_per_gpu(gpus_: int, usd_per_h: float) -> None:
    one = replace(GOOD, usd_per_h=usd_per_h)
    many = replace(GOOD, usd_per_h=usd_per_h * gpus_, gpus=gpus_)
    said = [offer_rules.price_far_off(row, {"t4": 1.0}) for row in (one, many)]
    assert said[0] == said[1]
    assert (said[0] == "") is (0.25 <= usd_per_h <= 4.0)
