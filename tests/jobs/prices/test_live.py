from __future__ import annotations

import json
from typing import Any

import pytest

from tfdyno.catalog.price_sources import price_sources
from tfdyno.jobs.prices.fetch import SourceError
from tfdyno.jobs.prices.listings import map_rows
from tfdyno.jobs.prices.live import VAST_QUERY, read_lium, read_vast

LISTS = {name: one for source in price_sources() for name, one in source.lists.items()}
OFFER = {
    "id": 1, "cpu_cores": 32, "cpu_cores_effective": 8.0, "cpu_ram": 128000, "dph_base": 0.4,
    "min_bid": 0.2, "geolocation": "Bulgaria, BG", "gpu_name": "RTX 4090", "gpu_ram": 24564,
    "num_gpus": 1,
}  # fmt: skip
NODE = {
    "id": "a", "gpu_model": "H100 80GB HBM3", "gpu_count": 8, "available_gpu_count": 5,
    "price_per_gpu_hour": 2.0, "min_rentable_gpu_count": 2, "gpu_memory_gb": 80, "cpu_count": 192,
    "ram_gb": 2015, "country_code": "US",
}  # fmt: skip


def _vast(*offers: dict[str, Any]) -> bytes:
    return json.dumps({"offers": offers}).encode()


def test_all_that_can_be_rented_is_asked_for() -> None:
    asked = json.loads(VAST_QUERY)
    assert (asked["rentable"], asked["rented"]) == ({"eq": True}, {"eq": False})
    assert asked["limit"] == 3000


def test_an_offer_has_its_share_of_the_machine_and_a_spot_price() -> None:
    (row,) = read_vast(_vast(OFFER)).rows
    assert (row.instance, row.card, row.region) == ("1x-RTX_4090", "RTX_4090", "BG")
    assert (row.usd_per_h, row.spot_usd_per_h) == (0.4, 0.2)
    assert (row.vcpus, row.ram_gb) == (8.0, 32.0)  # a quarter of 128 GB
    assert row.memory_gb == pytest.approx(23.99, abs=0.01)


def test_of_like_offers_in_a_country_the_cheapest_stays_with_its_form_known() -> None:
    offers = [
        OFFER | {"dph_base": 0.5}, OFFER, OFFER | {"geolocation": None},
        OFFER | {"gpu_name": "A100 SXM4", "gpu_ram": 81920, "dph_base": 0.9},
        OFFER | {"gpu_name": "A100 PCIE", "gpu_ram": 40960, "dph_base": 0.7},
        OFFER | {"gpu_name": "H100 NVL", "gpu_ram": 95830, "dph_base": 2.0},
    ]  # fmt: skip
    rows = read_vast(_vast(*offers)).rows
    found = map_rows(rows, LISTS["vast"], source="test", date="2026-11-27")
    assert {(one.gpu_slug, one.region, one.usd_per_h) for one in found.listings} == {
        ("rtx-4090", "BG", 0.4), ("rtx-4090", "unknown", 0.4), ("a100-sxm4-80gb", "BG", 0.9),
        ("a100-pcie-40gb", "BG", 0.7), ("h100-nvl-94gb", "BG", 2.0),
    }  # fmt: skip
    assert found.unknown == ()
    free = {one.usd_per_h: one.available for one in found.listings if one.region == "BG"}
    assert free == {0.4: 2, 0.9: 1, 0.7: 1, 2.0: 1}  # two RTX 4090, at 0.4 and at 0.5


def test_a_node_is_let_in_every_count_from_the_least_to_what_is_free() -> None:
    rows = read_lium(json.dumps({"nodes": [NODE]}).encode()).rows
    assert [(row.instance, row.usd_per_h) for row in rows] == [
        ("2x-H100_80GB_HBM3", 4.0), ("3x-H100_80GB_HBM3", 6.0), ("4x-H100_80GB_HBM3", 8.0),
        ("5x-H100_80GB_HBM3", 10.0),
    ]  # fmt: skip
    assert [row.vcpus for row in rows] == [48, 72, 96, 120]
    assert [row.free for row in rows] == [2, 1, 1, 1]  # of 5 cards
    found = map_rows(rows, LISTS["lium"], source="test", date="2026-11-27")
    assert {one.gpu_slug for one in found.listings} == {"h100-sxm5-80gb"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_gpus": None}, {"num_gpus": 1.5}, {"num_gpus": True}, {"dph_base": "free"},
        {"dph_base": -1}, {"gpu_name": None}, {"gpu_ram": "much"},
    ],
)  # fmt: skip
def test_an_offer_that_cannot_be_read_is_counted_and_stops_nothing(wrong: dict[str, Any]) -> None:
    found = read_vast(_vast(OFFER | wrong, OFFER))
    assert (len(found.rows), found.unreadable) == (1, 1)


def test_no_offer_at_all_is_counted() -> None:
    assert read_vast(json.dumps({"offers": [3, None, []]}).encode()).unreadable == 3


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"",
        b"[1]",
        b'{"error": "rate limit"}',
        b'{"offers": {"a": 1}}',
        b"\xff",
        b"[" * 9,
    ],
)
def test_another_answer_is_told(body: bytes) -> None:
    for read in (read_vast, read_lium):
        with pytest.raises(SourceError, match=r"in place of a list|another form"):
            read(body.replace(b"offers", b"nodes") if read is read_lium else body)
