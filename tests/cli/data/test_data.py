"""``tfdyno data`` says what the catalogue rests on, and writes prices only when told to."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tfdyno.catalog.offers import COLUMNS
from tfdyno.catalog.tables import DATA
from tfdyno.cli.main import main

NEW = "lambda,gpu_1x_a10,a10,1,30,200,all-regions,0.99,,2026-11-20,price page,day"
BAD = "lambda,gpu_1x_a10,a10,x,30,200,elsewhere,0.99,,2026-11-20,price page,day"


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the user's own, empty."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("TFDYNO_DATA", str(folder))
    return folder


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["data", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_every_shipped_table_is_shown_with_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    tables = answer(capsys, "show")["tables"]
    assert {one["file"] for one in tables} == {path.name for path in DATA.glob("*.csv")}
    for one in tables:
        with Path(one["path"]).open(encoding="utf-8", newline="") as file:
            assert one["rows"] == sum(1 for _ in csv.reader(file)) - 1


def test_the_tables_are_shown_under_their_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(DATA)
    assert any(line.split()[0] == "gpus.csv" for line in lines if line.strip())


def test_every_table_is_sound_and_rejected_prices_have_reasons(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = answer(capsys, "check")
    rows = sum(one["rows"] for one in report["tables"])
    assert all(one["reasons"] for one in report["rejected"])
    assert main(["data", "check"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == f"{len(report['tables'])} tables with {rows:,} rows are sound."


def price_list(folder: Path, *rows: str) -> str:
    path = folder / "new.csv"
    path.write_text("\n".join((",".join(COLUMNS), *rows)) + "\n")
    return str(path)


def test_nothing_is_written_without_a_yes(
    tmp_path: Path, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = price_list(tmp_path, NEW)
    assert main(["data", "refresh", "--offers", file]) == 2  # no terminal to ask on
    out, err = capsys.readouterr()
    assert out.startswith("1 row: 0 new, 1 changed, 0 unchanged, 0 older than what is known")
    assert err == "tfdyno: nothing was written; add --yes to write the merged list.\n"
    assert list(own.iterdir()) == []


def test_a_yes_writes_the_price_and_sets_the_broken_row_apart(
    tmp_path: Path, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = price_list(tmp_path, NEW, BAD)
    assert main(["data", "refresh", "--offers", file, "--yes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        f"Wrote 1 price to {own / 'offers.csv'}.",
        f"1 row with reasons in {own / 'quarantine.csv'}.",
    ]
    assert any("gpu_count is 'x', not a number" in line for line in lines)
    assert "0.99" in (own / "offers.csv").read_text()


def test_a_list_without_news_claims_to_have_written_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = price_list(tmp_path, NEW.replace("2026-11-20", "2019-01-01"))
    assert main(["data", "refresh", "--offers", file, "--yes"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No price was new: nothing was added."


def test_a_damaged_history_is_shown_as_such_and_stops_nothing(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "price_history.csv").write_bytes(b"\x00\xff")
    (shown,) = (one for one in answer(capsys, "show")["tables"] if one["path"].startswith(str(own)))
    assert (shown["file"], shown["rows"]) == ("price_history.csv", 0)
    assert "not readable as CSV" in shown["fault"]
    assert main(["data", "show"]) == 0
    assert "Not readable, and left aside: " in capsys.readouterr().out
    assert main(["data", "check"]) == 0
