from __future__ import annotations

from dataclasses import replace

from tfdyno.catalog.offers import split
from tfdyno.catalog.price_sources import PriceList, price_sources
from tfdyno.jobs.prices.listings import map_rows
from tfdyno.jobs.prices.rows import PriceRow

LISTS = {one.name: one.lists for one in price_sources()}
ROW = PriceRow(instance="g6.xlarge", region="us-east-1", card="L4", memory_gb=24, gpus=1, vcpus=4,
               ram_gb=16, usd_per_h=0.8)  # fmt: skip


def _map(of: PriceList, *rows: PriceRow) -> list[tuple[str, str, str, float, float, float]]:
    found = map_rows(rows, of, source="test", date="2026-11-27").listings
    return [(one.instance, one.region, one.gpu_slug, one.gpus, one.usd_per_h, one.spot_usd_per_h)
            for one in found]  # fmt: skip


def test_the_rows_of_a_machine_become_one_with_its_spot_price() -> None:
    spot = replace(ROW, usd_per_h=0.0, spot_usd_per_h=0.3)
    cheaper = replace(spot, spot_usd_per_h=0.2)
    aws = LISTS["gpuhunt"]["aws"]
    assert _map(aws, spot, ROW, cheaper) == [("g6.xlarge", "us-east-1", "l4", 1, 0.8, 0.2)]


def test_zones_are_joined_at_the_cheapest() -> None:
    zones = [replace(ROW, instance="g2-standard-4", region=f"us-central1-{zone}", usd_per_h=usd)
             for zone, usd in (("a", 0.9), ("b", 0.8), ("c", 0.85))]  # fmt: skip
    gcp = LISTS["gpuhunt"]["gcp"]
    assert _map(gcp, *zones) == [("g2-standard-4", "us-central1", "l4", 1, 0.8, 0)]


def test_one_price_in_all_regions_is_one_row() -> None:
    rows = [replace(ROW, instance="gpu_1x_a10", card="A10", region=r) for r in ("a", "b", "c")]
    here = LISTS["skypilot"]["lambda"]
    assert _map(here, *rows) == [("gpu_1x_a10", "all-regions", "a10", 1, 0.8, 0)]
    dearer = [*rows[:2], replace(rows[2], usd_per_h=0.9)]
    assert [one[1] for one in _map(here, *dearer)] == ["a", "b", "c"]


def test_the_count_goes_before_a_name_that_machines_share() -> None:
    rows = [replace(ROW, instance="NVIDIA L4", gpus=count, usd_per_h=count * 0.4)
            for count in (1, 2)]  # fmt: skip
    names = [one[0] for one in _map(LISTS["gpuhunt"]["runpod"], *rows)]
    assert names == ["1 x NVIDIA L4", "2 x NVIDIA L4"]


def test_a_count_that_is_known_to_be_wrong_is_put_right_and_stays_believed() -> None:
    azure = LISTS["skypilot"]["azure"]
    twelve = replace(ROW, instance="Standard_ND96isr_H100_v5", card="H100", memory_gb=80, gpus=12,
                     usd_per_h=98.32)  # fmt: skip
    third = replace(ROW, instance="Standard_NV12ads_A10_v5", card="A10", usd_per_h=0.908)
    found = map_rows((twelve, third), azure, source="test", date="2026-11-20").listings
    assert [(one.gpu_slug, one.gpus) for one in found] == [("h100-sxm5-80gb", 8), ("a10", 0.333)]
    assert split(found)[1] == ()


def test_a_name_that_no_row_has_is_listed_and_never_guessed() -> None:
    vast = LISTS["skypilot"]["vast"]
    modified = replace(ROW, instance="1x-RTX_4090-1-1", card="RTX_4090", memory_gb=48)
    new = replace(ROW, instance="1x-RTX_6090-1-1", card="RTX_6090", memory_gb=0)
    found = map_rows((modified, new, new), vast, source="test", date="2026-11-27")
    assert found.listings == ()
    told = {(one.card, one.memory_gb, one.instance, one.rows) for one in found.unknown}
    assert told == {("RTX_4090", 48, "1x-RTX_4090-1-1", 1), ("RTX_6090", 0, "1x-RTX_6090-1-1", 2)}


def test_another_makers_chip_is_no_miss() -> None:
    row = replace(ROW, card="MI300X")
    found = map_rows((row, replace(row, card="tpu-v6e-8")), LISTS["skypilot"]["runpod"],
                     source="test", date="2026-11-27")  # fmt: skip
    assert (found.listings, found.unknown) == ((), ())


def test_a_machine_without_an_on_demand_price_is_counted() -> None:
    row = replace(ROW, usd_per_h=0.0, spot_usd_per_h=0.2)
    found = map_rows((row,), LISTS["gpuhunt"]["aws"], source="test", date="2026-11-27")
    assert (found.listings, found.without_price) == ((), 1)


def test_rows_say_where_and_when_they_were_had() -> None:
    (one,) = map_rows((ROW,), LISTS["gpuhunt"]["aws"], source="gpuhunt aws 20261127",
                      date="2026-11-27").listings  # fmt: skip
    assert (one.provider, one.source, one.date) == ("aws", "gpuhunt aws 20261127", "2026-11-27")
    assert one.date_precision == "day when it was fetched"
    assert one.gpu_memory_total_gb == 24


def test_names_cannot_write_on_a_terminal() -> None:
    odd = replace(ROW, instance="g6\x1b[2J.xlarge", region="us\u202e\n-east-1")
    (one,) = map_rows((odd,), LISTS["gpuhunt"]["aws"], source="t", date="2026-11-27").listings
    assert (one.instance, one.region) == ("g6[2J.xlarge", "us-east-1")
