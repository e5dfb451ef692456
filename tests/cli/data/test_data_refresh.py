"""``tfdyno data refresh`` without a file fetches, says what failed, and keeps what it replaces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.price_server import (
    PriceServer,
    gpuhunt_row,
    gpuhunt_zip,
    serving,
    skypilot_list,
    skypilot_row,
)

from tfdyno.cli.main import main
from tfdyno.jobs.lookup.offers import list_offers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AWS = "/gpuhunt/aws/1/catalog.zip"
L4 = gpuhunt_row("g6.xlarge", "L4", 1, 24.0, 0.8)
SMALL = gpuhunt_row("g6.2xlarge", "L4", 1, 24.0, 0.98)


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("TFDYNO_DATA", str(folder))
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PriceServer]:
    with serving() as one:
        monkeypatch.setenv("TFDYNO_PRICES_GPUHUNT", f"{one.url}/gpuhunt")
        monkeypatch.setenv("TFDYNO_PRICES_SKYPILOT", f"{one.url}/skypilot")
        monkeypatch.setenv("TFDYNO_PRICES_LIUM", f"{one.url}/lium")
        monkeypatch.setenv("TFDYNO_PRICES_VAST", f"{one.url}/vast")
        one.answers["/gpuhunt/aws/version"] = b"1"
        one.answers[AWS] = gpuhunt_zip("aws", L4, SMALL)
        one.answers["/skypilot/hyperstack/vms.csv"] = skypilot_list(
            skypilot_row("n3-L40x1", "L40", 1, 1.0, memory_mib=49152),
            skypilot_row("n3-X1", "X1", 1, 1.0, memory_mib=49152),
        )
        yield one


def _refresh(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["data", "refresh", "--yes", "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def _offers(capsys: pytest.CaptureFixture[str], provider: str) -> dict[str, float]:
    assert main(["offers", "--provider", provider, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["offers"]
    return {one["offer"]["slug"]: one["offer"]["usd_per_h"] for one in found}


def test_prices_of_today_are_fetched_and_what_is_down_is_told_in_one_line(
    server: PriceServer, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "refresh", "--yes"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("Prices of 20")
    assert [line.split()[:3] for line in lines[2:4]] == [
        ["aws", "2", "gpuhunt"], ["hyperstack", "1", "skypilot"],
    ]  # fmt: skip
    assert "X1 48 GB of hyperstack (1 row)" in " ".join(out.split())
    assert lines[-2].startswith("3 rows: ")
    assert lines[-1] == f"Wrote 3 prices to {own / 'offers.csv'}."
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("tfdyno: no prices of today of 12 providers: azure, cudo, gcp, ")
    assert "(skypilot: the server says 404 Not Found)" in err
    assert _offers(capsys, "aws")["aws/g6.xlarge/us-east-1/on_demand"] == 0.8


def test_all_down_leaves_the_table_at_hand_and_ends_with_3(
    server: PriceServer, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers.clear()
    assert main(["data", "refresh", "--yes"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "tfdyno: no price list could be fetched, of 14 providers: the server says 404 Not Found; "
        "the prices at hand stay; 'tfdyno offers' shows their age.\n"
    )
    assert list(own.iterdir()) == []
    assert _offers(capsys, "aws")  # the shipped table answers


def test_the_json_has_all_that_was_fetched_failed_and_merged(
    server: PriceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _refresh(capsys, "--provider", "aws,hyperstack,cudo")
    assert [one["provider"] for one in found["today"]["fetched"]] == ["aws", "hyperstack"]
    assert [one["provider"] for one in found["today"]["failed"]] == ["cudo"]
    assert found["today"]["unknown"][0]["card"] == "X1"
    assert found["warnings"] == [
        "no prices of today of 1 provider: cudo (skypilot: the server says 404 Not Found)"
    ]
    assert (found["merged"]["rows"], found["merged"]["written"]) == (3, True)


def test_a_source_alone_is_asked(server: PriceServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.answers["/skypilot/aws/vms.csv"] = skypilot_list(skypilot_row("g6.xlarge", "L4", 1, 0.9))
    found = _refresh(capsys, "--source", "skypilot", "--provider", "aws")
    assert found["today"]["fetched"][0]["source"] == "skypilot"
    assert not any(path.startswith("/gpuhunt") for path in server.asked)


def test_every_fetches_only_what_is_older(
    server: PriceServer, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--provider", "aws,hyperstack", "--every", "24h"]
    assert _refresh(capsys, *words)["fresh"] is False
    asked = len(server.asked)
    again = _refresh(capsys, *words)
    assert (again["fresh"], set(again["fetched_at"])) == (True, {"aws", "hyperstack"})
    assert main(["data", "refresh", *words]) == 0
    assert capsys.readouterr().out.startswith("Nothing was fetched: prices of 2 providers are")
    assert len(server.asked) == asked
    times = json.loads((own / "fetched.json").read_text())
    (own / "fetched.json").write_text(json.dumps(times | {"aws": "2019-01-01T00:00:00Z"}))
    assert [one["provider"] for one in _refresh(capsys, *words)["today"]["fetched"]] == ["aws"]


def test_every_is_no_failure_where_only_what_is_always_down_fails_again(
    server: PriceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--provider", "aws,vast", "--every", "24h"]
    _refresh(capsys, *words)
    assert main(["data", "refresh", "--yes", *words]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Nothing was fetched: prices of 1 provider are young enough")
    assert "no price list could be fetched" in err


def test_a_changed_price_and_a_machine_that_is_gone_become_history(
    server: PriceServer, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--provider", "aws")
    _refresh(capsys, *words)
    _age(own / "offers.csv")
    server.answers[AWS] = gpuhunt_zip("aws", L4.replace("0.8", "0.7"))
    merged = _refresh(capsys, *words)["merged"]
    assert (merged["changed"], merged["gone"]) == (1, 1)
    prices = _offers(capsys, "aws")
    assert prices["aws/g6.xlarge/us-east-1/on_demand"] == 0.7
    assert "aws/g6.2xlarge/us-east-1/on_demand" not in prices
    history = (own / "price_history.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1] for line in history] == ["g6.2xlarge", "g6.xlarge"]
    assert all(",2026-01-01," in line for line in history)


def _age(offers: Path) -> None:
    """Let what was fetched today be of a day long ago."""
    lines = [line.split(",") for line in offers.read_text().splitlines()]
    day = lines[0].index("date")
    aged = [[*cells[:day], "2026-01-01", *cells[day + 1 :]] for cells in lines[1:]]
    offers.write_text("\n".join(",".join(cells) for cells in (lines[0], *aged)) + "\n")


def test_a_damaged_history_is_told_set_aside_and_no_failure(
    server: PriceServer, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _refresh(capsys, "--provider", "aws")
    _age(own / "offers.csv")
    (own / "price_history.csv").write_bytes(b"\x00\xffnot a table")
    server.answers[AWS] = gpuhunt_zip("aws", L4.replace("0.8", "0.7"))
    assert main(["data", "refresh", "--yes", "--provider", "aws"]) == 0
    err = capsys.readouterr().err
    assert "the price history was damaged" in err
    assert (own / "price_history.damaged-1.csv").read_bytes() == b"\x00\xffnot a table"
    assert len((own / "price_history.csv").read_text().splitlines()) == 3


def test_an_absurd_price_is_quarantined_and_hides_no_good_one(
    server: PriceServer, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _refresh(capsys, "--provider", "aws")
    server.answers[AWS] = gpuhunt_zip("aws", L4.replace("0.8", "80000"), SMALL)
    for _ in range(2):  # the second time adds nothing
        merged = _refresh(capsys, "--provider", "aws")["merged"]
        assert [one["reasons"] for one in merged["quarantined"]] == [
            ["8e+04 USD/h per GPU cannot be"]
        ]
    assert _offers(capsys, "aws")["aws/g6.xlarge/us-east-1/on_demand"] == 0.8
    assert len((own / "quarantine.csv").read_text().splitlines()) == 2


def test_a_provider_with_all_prices_in_cents_does_not_set_the_level(
    server: PriceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [L4.replace("g6.xlarge", f"g6.{size}").replace("0.8", "80") for size in range(500)]
    server.answers[AWS] = gpuhunt_zip("aws", *wrong)
    server.answers["/skypilot/seeweb/vms.csv"] = skypilot_list(skypilot_row("E", "L4", 1, 0.38))
    merged = _refresh(capsys, "--provider", "aws,seeweb")["merged"]
    assert (merged["added"], len(merged["quarantined"])) == (1, 500)


def test_a_wrong_clock_is_told(server: PriceServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.ahead_s = -900 * 86400.0
    found = _refresh(capsys, "--provider", "aws")
    assert "clock is 900 days ahead of those of the price lists" in found["warnings"][0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--json"], "nothing was written; add --yes"),
        (["--provider", "awz", "--yes"], "no price list has provider 'awz'"),
        (["--source", "skypilt", "--yes"], "did you mean skypilot?"),
        (["--every", "daily", "--yes"], "--every daily cannot be read"),
        (["--every", "24h", "--offers", "x.csv"], "--every is for prices that are fetched"),
        (["--timeout", "0", "--yes"], "timeout 0 is not possible"),
    ],
)
def test_wrong_use_is_one_sentence_and_asks_nobody(
    words: list[str], message: str, server: PriceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "refresh", *words]) == 2
    assert message in capsys.readouterr().err
    assert server.asked == []


def test_without_a_terminal_nothing_is_written_without_a_yes(
    server: PriceServer, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "refresh", "--provider", "aws"]) == 2
    out, err = capsys.readouterr()
    assert "2 rows: 1 new, 1 changed" in out or "2 rows: 2 new" in out
    assert "add --yes" in err
    assert list(own.iterdir()) == []


def test_behind_a_wrong_clock_what_was_fetched_counts_and_the_clock_is_told(
    server: PriceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.ahead_s = 800 * 86400.0  # this machine's clock is years behind
    merged = _refresh(capsys, "--provider", "aws")["merged"]
    assert merged["quarantined"] == []
    with pytest.warns(UserWarning, match="but prices of 20.* were fetched: their age counts as"):
        assert list_offers(provider="aws")[0].age_days >= 0


def test_a_dear_provider_with_most_of_the_rows_puts_no_cheap_one_out(
    server: PriceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    dear = [gpuhunt_row(f"p5.{size}", "H100", 8, 80.0, 88.0) for size in range(300)]  # 11 a GPU
    server.answers[AWS] = gpuhunt_zip("aws", *dear)
    offer = {
        "cpu_cores": 8, "cpu_cores_effective": 8, "cpu_ram": 64000, "dph_base": 1.9,
        "geolocation": "Texas, US", "gpu_name": "H100 SXM", "gpu_ram": 81559, "num_gpus": 1,
    }  # fmt: skip
    server.answers["/vast"] = json.dumps({"offers": [offer]}).encode()
    assert _refresh(capsys, "--provider", "aws,vast")["merged"]["quarantined"] == []
    assert _offers(capsys, "vast")["vast/1x-H100_SXM/US/on_demand"] == 1.9
    assert len([one for one in _offers(capsys, "aws") if "/p5." in one]) >= 300
