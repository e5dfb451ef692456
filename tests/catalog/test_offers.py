from __future__ import annotations

import datetime
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog import gpus, offer_rules, offers
from tfdyno.catalog.offer_rules import Listing
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

TODAY = datetime.date(2026, 11, 21)
GPUS = {gpu.slug: gpu for gpu in gpus.all_gpus()}
LISTING = Listing(
    provider="cloud", instance="one", region="here", gpu_slug="t4", gpus=1, vcpus=4, ram_gb=16,
    usd_per_h=0.6, spot_usd_per_h=0.2, date="2026-11-20", date_precision="day",
    gpu_memory_total_gb=0, source="test",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def _reasons(**changes: object) -> str:
    one = replace(LISTING, **changes)  # type: ignore[arg-type]
    peers = [*offers.shipped_listings(), one]
    return "; ".join(offer_rules.judge([one], peers, GPUS, today=TODAY)[0])


def test_a_sound_row_has_no_reason_against_it() -> None:
    assert _reasons() == ""
    assert _reasons(spot_usd_per_h=0.0) == ""
    assert _reasons(spot_usd_per_h=0.6) == ""
    assert _reasons(gpus=0.5, usd_per_h=0.3, spot_usd_per_h=0) == ""
    assert _reasons(gpu_memory_total_gb=15) == ""  # 15 of 16: within 7 %
    assert _reasons(date="2026-11-22") == ""  # tomorrow here is today elsewhere


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu_slug": "T4"}, "no GPU 'T4'"),
        ({"spot_usd_per_h": 0.7}, "above on-demand"),
        ({"usd_per_h": 0.0}, "not above 0"),
        ({"gpus": 12, "usd_per_h": 7.2}, "no machine has 12 GPUs"),
        ({"usd_per_h": 0.05, "spot_usd_per_h": 0}, "factor 4"),
        ({"usd_per_h": 60.0}, "factor 4"),
        ({"gpu_memory_total_gb": 80}, "80 GB of GPU memory stated, 16 GB expected"),
        ({"instance": "T4 x1 (GPU part only; add n1 host)"}, "without its host"),
        ({"date_precision": ""}, "source or date precision"),
        ({"date": "2031-01"}, "its date 2031-01 is in the future"),
        ({"date": "2026-11-23"}, "its date 2026-11-23 is in the future"),
    ],
)
def test_each_rule_names_its_reason(changes: dict[str, object], reason: str) -> None:
    assert reason in _reasons(**changes)


def test_on_demand_and_spot_are_offers_of_their_own() -> None:
    found = {offer.slug: offer for offer in offers.all_offers()}
    demand = found["gcp/a2-highgpu-8g/us-central1/on_demand"]
    spot = found["gcp/a2-highgpu-8g/us-central1/spot"]
    assert (demand.usd_per_h, spot.usd_per_h) == (29.38708, 14.4308)
    assert (demand.spot, spot.spot, demand.gpu_count) == (False, True, 8)
    assert offers.usd_per_gpu_h(demand) == pytest.approx(29.38708 / 8)


def test_a_share_of_a_card_is_priced_as_a_whole_one() -> None:
    found = {offer.slug: offer for offer in offers.all_offers()}
    third = found["azure/Standard_NV12ads_A10_v5/eastus/on_demand"]
    assert (third.gpu_count, third.gpu_fraction) == (1, 0.333)
    assert offers.usd_per_gpu_h(third) == pytest.approx(0.908 / 0.333)


def test_shipped_rows_that_fail_stay_out() -> None:
    rejected = offers.rejected_offers()
    assert len(rejected) == 12
    slugs = " ".join(offer.slug for offer in offers.all_offers())
    assert "GPU part only" not in slugs
    assert "8x-Tesla_V100" not in slugs  # 0.11 USD/h: 1/29 of the median


def test_age_counts_from_the_first_day_of_a_month() -> None:
    offer = next(o for o in offers.all_offers() if o.priced_on == "2026-01")
    today = datetime.date(2026, 4, 2)
    assert offers.age_days(offer, today) == 91
    assert offers.staleness(offer, today) == "stale"
    assert offers.staleness(offer, datetime.date(2026, 4, 1)) == ""
    assert offers.staleness(offer, datetime.date(2027, 1, 2)) == "very old"


def test_rejected_rows_of_a_file_are_its_own_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    header = ",".join(offers.COLUMNS)
    path.write_text(
        f"{header}\nme,a,t44,1,4,16,x,0.5,,2026-11,me,day\nme,b,t4,1,4,16,x,0.5,,2026-11,me,day\n"
    )
    assert [one.reasons for one in offers.rejected_in(path)] == [("there is no GPU 't44'",)]


def test_a_file_of_the_user_goes_first(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    header = ",".join(offers.COLUMNS)
    path.write_text(f"{header}\nlambda,gpu_1x_a10,a10,1,30,200,all-regions,0.99,,2020-01,me,day\n")
    found = {offer.slug: offer for offer in offers.all_offers(path)}
    assert found["lambda/gpu_1x_a10/all-regions/on_demand"].usd_per_h == 0.99


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("c,i,t4,1,4,16,r,abc,,2026-01,me,day", "price_per_hour_usd is 'abc'"),
        ("c,i,t4,1,4,16,r,nan,,2026-01,me,day", "price_per_hour_usd is nan, not a finite"),
        ("c,i,t4,1,4,16,r,1,,yesterday,me,day", "date is 'yesterday'"),
        ("c,i,t4,1,4,16,r,1,,2026-01,,day", "it has no source"),
        ("c,i,t4,1", "it has 4 cells"),
    ],
)
def test_a_corrupt_file_of_the_user_names_the_line(row: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{','.join(offers.COLUMNS)}\n{row}\n")
    with pytest.raises(UsageError, match=rf"line 2: {message}"):
        offers.all_offers(path)


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    row = "me,b,t4,1,4,16,x,0.5,,2026-11,me,day"
    path.write_text(f"{','.join(offers.COLUMNS)}\n{row}\n", encoding="utf-8-sig")
    assert [one.instance for one in offers.read_listings(path)] == ["b"]


def test_semicolons_are_told_as_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(";".join(offers.COLUMNS))
    with pytest.raises(UsageError, match="separated by semicolons, commas are expected"):
        offers.read_listings(path)


def test_a_named_folder_that_is_missing_is_told(own_folder: Path) -> None:
    own_folder.rmdir()
    with pytest.warns(UserWarning, match="own, which is no folder: only the prices that come with"):
        assert offers.all_offers()


def test_a_list_is_read_once_until_it_is_written_anew(tmp_path: Path) -> None:
    """A page asks for the offers at each move of a control."""
    path = tmp_path / "mine.csv"
    header = ",".join(offers.COLUMNS)

    def priced(price: str) -> float:
        path.write_text(f"{header}\nme,a box,t4,1,4,16,r,{price},,2026-11,me,day\n")
        found = {offer.slug: offer for offer in offers.all_offers(path)}
        return found["me/a box/r/on_demand"].usd_per_h

    assert priced("0.40") == 0.4
    assert offers.all_offers(path) is offers.all_offers(path)
    assert priced("0.5") == 0.5


def test_own_prices_that_are_written_anew_are_read_again(own_folder: Path) -> None:
    assert offers.all_offers()[0].provider != "me"
    row = "me,b,t4,1,4,16,x,0.3,,2026-11,me,day"
    (own_folder / "offers.csv").write_text(f"{','.join(offers.COLUMNS)}\n{row}\n")
    assert "me" in {one.provider for one in offers.all_offers()}
    (own_folder / "offers.csv").unlink()
    assert "me" not in {one.provider for one in offers.all_offers()}
