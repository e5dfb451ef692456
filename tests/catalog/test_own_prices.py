from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.own_prices import read_own_offers
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.hardware import OWNED

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.hardware import Offer

TODAY = datetime.date(2026, 11, 27)
EURO = 'currency = "eur"\nusd_per_unit = 1.25\nrate_date = 2026-11-20\n'
RACK = {"name": '"rack-3"', "terms": '"contract"', "gpu": '"a100-sxm4-80gb"', "gpus": "8",
        "per_hour": "12.0", "date": "2026-10-01"}  # fmt: skip


def _toml(**changes: str) -> str:
    machine = {**RACK, **changes}
    return "[[machine]]\n" + "".join(f"{k} = {v}\n" for k, v in machine.items() if v) + "\n"


def _read(folder: Path, text: str) -> tuple[Offer, ...]:
    path = folder / "prices.toml"
    path.write_text(text)
    return read_own_offers(path, TODAY)


def test_no_file_and_an_empty_one_are_no_machines(tmp_path: Path) -> None:
    assert read_own_offers(tmp_path / "prices.toml", TODAY) == ()
    assert _read(tmp_path, "") == ()


def test_a_contract_in_another_currency_is_a_price_in_usd_with_its_rate(tmp_path: Path) -> None:
    (one,) = _read(tmp_path, EURO + _toml(provider='"Hoster"', region='"fra"', vcpus="96"))
    assert one.usd_per_h == pytest.approx(15.0)  # 12 EUR at 1.25
    assert (one.provider, one.instance, one.region, one.gpu_count) == ("hoster", "rack-3", "fra", 8)
    assert (one.terms, one.way, one.spot, one.priced_on) == ("contract", "contract", False,
                                                             "2026-10-01")  # fmt: skip
    assert one.source == "your own prices.toml, 1 EUR = 1.25 USD of 2026-11-20"
    assert one.vcpus == 96


def test_an_owned_machine_costs_its_electricity_or_what_it_is_said_to(tmp_path: Path) -> None:
    text = _toml(terms='"owned"', per_hour="") + _toml(terms='"owned"', name='"b"')
    bare, priced = _read(tmp_path, text)
    assert (bare.provider, bare.usd_per_h, bare.priced_on) == (OWNED, 0.0, "")
    assert (priced.provider, priced.usd_per_h, priced.way) == ("own", 12.0, "owned")


def test_a_card_goes_by_any_of_its_names_and_a_price_by_the_day_of_the_file(
    tmp_path: Path,
) -> None:
    (one,) = _read(tmp_path, _toml(gpu='"RTX 4090"', gpus="", date=""))
    assert (one.gpu_slug, one.gpu_count) == ("rtx-4090", 1)
    assert one.priced_on == min(TODAY, datetime.datetime.now(tz=datetime.UTC).date()).isoformat()
    assert one.date_precision == "day when the file was changed"


def test_what_has_ended_is_told_and_left_out(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"machine rack-3 ended on 2026-11-26 and is left out"):
        assert _read(tmp_path, _toml(until="2026-11-26")) == ()
    assert len(_read(tmp_path, _toml(until="2026-11-27"))) == 1


def test_an_old_rate_is_told(tmp_path: Path) -> None:
    text = EURO.replace("2026-11-20", "2026-01-01")
    with pytest.warns(UserWarning, match="the rate of EUR in .* is of 2026-01-01, 330 days ago"):
        _read(tmp_path, text + _toml())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[machine]\n", "is not valid TOML"),
        ("machine = 3\n", "begin each machine with"),
        ('curency = "EUR"\n', "did you mean currency?"),
        ('currency = "EUR"\n', "prices in EUR need usd_per_unit"),
        ('currency = "EUR"\nusd_per_unit = 1.1\n', "prices in EUR need rate_date"),
        (EURO.replace("1.25", "0"), "usd_per_unit 0 is not possible"),
        (EURO.replace("2026-11-20", '"soon"'), "rate_date is 'soon', no day"),
        (EURO.replace("2026-11-20", "2031-01-01"), "rate_date 2031-01-01 is in the future"),
        ("usd_per_unit = 1.1\n", "usd_per_unit is for another currency than USD"),
        (_toml(perhour="3"), "did you mean per_hour?"),
        (_toml(terms='"contrct"'), "did you mean contract?"),
        (_toml(gpu='"RTX 4900"'), "did you mean"),
        (_toml(gpu='"A100"'), "'A100' means 4 GPUs"),
        (_toml(gpu=""), "machine rack-3 has no gpu"),
        (_toml(name=""), "machine 1 has no name"),
        (_toml(per_hour=""), "has no per_hour"),
        (_toml(per_hour="0"), "per_hour 0 is not possible"),
        (_toml(per_hour="nan"), "per_hour nan is not possible"),
        (_toml(gpus="1.5"), "gpus 1.5 is not possible"),
        (_toml(gpus="64"), "give at most 16"),
        (_toml(until='"never"'), "until is 'never', no day"),
        (_toml() + _toml(), "machine rack-3 is there twice"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_the_machine_and_the_key(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"prices\.toml") as caught:
        _read(tmp_path, text)
    assert message in str(caught.value)
