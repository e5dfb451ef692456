"""``tfdyno offers`` prints what the price lists hold, or says that nothing matches."""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.offers import COLUMNS
from tfdyno.cli.main import main
from tfdyno.jobs.lookup.offers import list_offers

if TYPE_CHECKING:
    from pathlib import Path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = main(["offers", *words])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(printed(capsys, *words, "--json"))["offers"]
    return found


def test_only_what_was_asked_for_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, "--gpu", "t4", "--spot")
    assert found
    assert {one["offer"]["gpu_slug"] for one in found} == {"t4"}  # type: ignore[index]
    assert {one["offer"]["spot"] for one in found} == {True}  # type: ignore[index]


def test_prices_are_per_gpu_and_rise(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, "--gpu", "h100-sxm5-80gb", "--on-demand")
    prices = [one["usd_per_gpu_h"] for one in found]
    assert len(prices) > 1
    assert prices == sorted(prices)  # type: ignore[type-var]
    for one in found:
        offer: dict[str, float] = one["offer"]  # type: ignore[assignment]
        cards = offer["gpu_count"] * offer["gpu_fraction"]
        assert one["usd_per_gpu_h"] == pytest.approx(offer["usd_per_h"] / cards)


def test_sorting_by_machine_puts_the_cheapest_machine_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = rows(capsys, "--gpu", "h100-sxm5-80gb", "--sort", "machine")
    prices = [one["offer"]["usd_per_h"] for one in found]  # type: ignore[index]
    assert prices == sorted(prices)


def test_the_list_has_a_price_a_date_and_an_age(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "--gpu", "t4")
    (first, *_) = rows(capsys, "--gpu", "t4")
    offer: dict[str, str] = first["offer"]  # type: ignore[assignment]
    assert offer["region"] in out
    assert offer["priced_on"] in out
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", ""], "--gpu is empty"),
        (["--gpu", "zzz"], "there is no GPU 'zzz'"),
        (["--provider", "zzz"], "there is no offer of provider 'zzz'; choose from "),
        (["--sort", "prise"], "order 'prise' is not one of price, machine, age, gpu, provider"),
        (["--gpu", "gtx-1050"], "no offer matches; 'tfdyno offers' lists all"),
        (["--offers", "none.csv"], "none.csv does not exist"),
    ],
)
def test_what_cannot_be_listed_is_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["offers", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_the_history_is_printed_and_a_damaged_one_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    history = tmp_path / "price_history.csv"
    row = "lambda,gpu_1x_a10,a10,1,30,200,all-regions,2.58,,2025-01,old page,day"
    history.write_text(f"{','.join(COLUMNS)}\n{row}\n")
    assert "−50%" in printed(capsys, "--gpu", "a10", "--history")
    found = json.loads(printed(capsys, "--gpu", "a10", "--history", "--json"))
    course = found["histories"]["lambda/gpu_1x_a10/all-regions/on_demand"]
    assert (course["low_usd_per_h"], course["high_usd_per_h"]) == (1.29, 2.58)
    history.write_bytes(b"\xff")
    assert printed(capsys, "--history").startswith("The price history is damaged: ")


def test_a_clock_before_the_shipped_prices_is_told_and_they_are_still_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tfdyno.core.base.clock.today", lambda: datetime.date(2019, 1, 1))
    with pytest.warns(UserWarning, match="clock says 2019-01-01, but prices of 2026-05-07 came"):
        assert list_offers(gpu="t4")


def test_prices_newer_than_today_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    row = "cloud,small,t4,1,4,16,here,0.5,0.2,2099-01-01,price page,day"
    (tmp_path / "offers.csv").write_text(f"{','.join(COLUMNS)}\n{row}\n")
    with pytest.warns(UserWarning, match=r"1 rows of .*, dated up to 2099-01-01, are left out"):
        list_offers(gpu="t4")
