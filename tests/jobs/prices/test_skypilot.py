from __future__ import annotations

import pytest
from tests.price_server import skypilot_list, skypilot_row

from tfdyno.catalog.price_sources import PriceList, price_sources
from tfdyno.jobs.prices.fetch import SourceError
from tfdyno.jobs.prices.skypilot import read_list

SKYPILOT = next(one for one in price_sources() if one.name == "skypilot")
PLAIN = PriceList(provider="cloud")
GCP_HEADER = (
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,"
    "AvailabilityZone,Price,SpotPrice"
)


def test_machines_without_gpus_are_passed_over() -> None:
    body = skypilot_list(
        skypilot_row("cpu", "", 0, 0.1), skypilot_row("gpu", "T4", 2, 1.5, 0.5, memory_mib=16384)
    )
    (row,) = read_list(body, PLAIN).rows
    assert (row.instance, row.card, row.gpus, row.memory_gb) == ("gpu", "T4", 2.0, 16.0)
    assert (row.usd_per_h, row.spot_usd_per_h, row.vcpus, row.ram_gb) == (1.5, 0.5, 8.0, 32.0)


@pytest.mark.parametrize(
    ("name", "count", "mib", "memory_gb"),
    [
        ("vast", 2, 2 * 24564, 24564 / 1024),  # of the machine
        ("runpod", 2, 80, 80),  # GB, where MiB is written
        ("lambda", 8, 16384, 16),
    ],
)
def test_memory_is_that_of_one_card_whatever_the_list_means(
    name: str, count: int, mib: float, memory_gb: float
) -> None:
    row = skypilot_row("8x-any-1-2", "H100", count, 9.0, memory_mib=mib)
    (found,) = read_list(skypilot_list(row), SKYPILOT.lists[name]).rows
    assert found.memory_gb == pytest.approx(memory_gb)


def test_a_renamed_card_is_known_by_the_name_of_its_machine() -> None:
    row = skypilot_row("1x-RTX_4060_Ti-32-65536", "RTX4060", 1, 0.13, "0.00", memory_mib=16380)
    (found,) = read_list(skypilot_list(row), SKYPILOT.lists["vast"]).rows
    assert (found.card, found.spot_usd_per_h) == ("RTX_4060_Ti", 0.0)


def test_a_number_that_is_none_is_counted_and_stops_nothing() -> None:
    body = skypilot_list(
        skypilot_row("a", "T4", 1, "€ 0.5"), skypilot_row("b", "T4", 1, "nan"),
        skypilot_row("c", "T4", 1, 0.5),
    )  # fmt: skip
    found = read_list(body, PLAIN)
    assert ([row.instance for row in found.rows], found.unreadable) == (["c"], 2)


def _gcp(*rows: str) -> tuple[list[tuple[str, float, float]], int]:
    body = skypilot_list(*rows, header=GCP_HEADER)
    found = read_list(body, SKYPILOT.lists["gcp"])
    return [(one.card, one.usd_per_h, one.spot_usd_per_h) for one in found.rows], found.left_out


def test_host_and_gpus_of_a_zone_are_added_up() -> None:
    rows, left_out = _gcp(
        "a2-highgpu-2g,24,170,,,,us-central1,us-central1-a,1.5,0.75",
        "n2-standard-4,4,16,,,,us-central1,us-central1-a,0.2,0.1",
        ",,,A100,2,A100,us-central1,us-central1-a,5.75,2.75",
        ",,,A100,2,A100,us-west4,us-west4-b,9,1",
    )
    assert rows == [("A100", 7.25, 3.5)]
    assert left_out == 0


def test_without_its_gpus_or_with_a_spot_price_above_theirs_a_host_is_left_out() -> None:
    host = "a2-ultragpu-1g,12,170,,,,us-central1,us-central1-a,1.0996,0.5498"
    assert _gcp(host) == ([], 1)
    # As seen in v8: 1.846 on demand is a discounted rate, below the spot price of 1.964.
    assert _gcp(host, ",,,A100-80GB,1,A,us-central1,us-central1-a,1.846,1.964") == ([], 1)
    assert _gcp(host, ",,,A100-80GB,1,A,us-central1,us-central1-a,0,0") == ([], 1)


def test_another_table_is_no_list() -> None:
    with pytest.raises(SourceError, match="no column InstanceType"):
        read_list(b"a,b\n1,2\n", PLAIN)
