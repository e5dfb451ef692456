from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog import offers
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.lookup.refresh import refresh

if TYPE_CHECKING:
    from pathlib import Path

HEADER = ",".join(offers.COLUMNS)
NEW = "lambda,gpu_1x_a10,a10,1,30,200,all-regions,0.99,,2026-11-20,price page,day"
OLD = "lambda,gpu_1x_a10,a10,1,30,200,all-regions,1.1,,2019-01-01,old page,day"
FRESH = "cloud,small,t4,1,4,16,here,0.5,0.2,2026-11-20,price page,day"
BAD = "lambda,gpu_1x_a10,a10,1,30,200,all-regions,99,,2026-11-21,typing error,day"


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path / "own"))
    return tmp_path / "own"


def _file(folder: Path, *rows: str) -> Path:
    path = folder / "new.csv"
    path.write_text("\n".join((HEADER, *rows)) + "\n")
    return path


def _price(slug: str) -> float:
    return next(offer.usd_per_h for offer in offers.all_offers() if offer.slug == slug)


A10 = "lambda/gpu_1x_a10/all-regions/on_demand"


def test_newer_prices_replace_older_ones_and_are_counted(tmp_path: Path, own: Path) -> None:
    own.mkdir()  # a folder that is named and not there is warned of
    assert _price(A10) == 1.29
    done = refresh(_file(tmp_path, NEW, FRESH), write=True)
    assert (done.rows, done.added, done.changed, done.quarantined) == (2, 1, 1, ())
    assert _price(A10) == 0.99
    assert _price("cloud/small/here/spot") == 0.2


def test_what_is_free_is_kept_with_the_price(tmp_path: Path, own: Path) -> None:
    own.mkdir()
    path = _file(tmp_path, f"{FRESH},3", f"{NEW},")
    path.write_text(path.read_text().replace(HEADER, f"{HEADER},available"))
    refresh(path, write=True)
    found = {one.slug: one.available for one in offers.all_offers()}
    assert (found["cloud/small/here/on_demand"], found["cloud/small/here/spot"]) == (3, 3)
    assert found[A10] is None


def test_looking_writes_nothing(tmp_path: Path, own: Path) -> None:
    assert refresh(_file(tmp_path, NEW, BAD.replace("a10,a10", "x,a10")), write=False).changed == 1
    assert not own.exists()


def test_twice_is_the_same_as_once(tmp_path: Path, own: Path) -> None:
    path = _file(tmp_path, NEW, FRESH, "cloud,big,t4,7,4,16,here,3.5,,2026-11-20,page,day")
    refresh(path, write=True)
    first = {file.name: file.read_bytes() for file in own.iterdir()}
    again = refresh(path, write=True)
    assert (again.added, again.changed, again.unchanged) == (0, 0, 2)
    assert {file.name: file.read_bytes() for file in own.iterdir()} == first


def test_an_older_row_never_replaces_a_newer_one(tmp_path: Path) -> None:
    refresh(_file(tmp_path, NEW), write=True)
    assert refresh(_file(tmp_path, OLD), write=True).older == 1
    assert _price(A10) == 0.99


def test_a_failing_row_is_quarantined_and_hides_no_good_one(tmp_path: Path, own: Path) -> None:
    refresh(_file(tmp_path, NEW), write=True)
    done = refresh(_file(tmp_path, BAD), write=True)
    assert len(done.quarantined) == 1
    assert _price(A10) == 0.99
    with (own / "quarantine.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1
    assert "factor 4" in rows[0]["reasons"]
    assert rows[0]["source"] == "typing error"


FAULTY = (
    ("cloud,odd,t4,1,4,16,here,cheap,,2026-11-20,page,day", "price_per_hour_usd is 'cheap'"),
    ("cloud,odd,t4,1,4,16,here,0.5,,yesterday,page,day", "date is 'yesterday'"),
    ("cloud,odd,t4,1,4", "it has 5 cells, the header has 12"),
    ("cloud,odd,t4,1,4,16,here,0.5,,2026-11-20,,day", "it has no source"),
    (FRESH.replace("0.5", "0.6"), "'cloud small here' stands on line 2 already"),
)


@pytest.mark.parametrize(("line", "reason"), FAULTY)
def test_a_line_that_cannot_be_read_is_quarantined_and_stops_nothing(
    line: str, reason: str, tmp_path: Path, own: Path
) -> None:
    path = _file(tmp_path, FRESH, line, NEW)
    done = refresh(path, write=True)
    assert (done.rows, done.added, done.changed) == (3, 1, 1)
    (faulty,) = done.malformed
    assert faulty.line == 3
    assert faulty.reason.startswith(f"line 3: {reason}")
    assert _price("cloud/small/here/on_demand") == 0.5
    assert _price(A10) == 0.99
    first = (own / "quarantine.csv").read_bytes()
    with (own / "quarantine.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["reasons"] == faulty.reason
    assert row["provider"] == "cloud"
    refresh(path, write=True)
    assert (own / "quarantine.csv").read_bytes() == first


def test_a_good_row_is_no_repetition_of_one_that_cannot_be_read(tmp_path: Path) -> None:
    done = refresh(_file(tmp_path, FRESH.replace("0.5", "cheap"), FRESH), write=True)
    assert (done.added, len(done.malformed)) == (1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("provider,instance\na,b\n", "line 1: the column gpu_slug is missing"),
        (f'{HEADER}\n"never closed\n', "not readable as CSV"),
    ],
)
def test_another_header_or_a_broken_file_changes_nothing(
    text: str, message: str, tmp_path: Path, own: Path
) -> None:
    path = tmp_path / "new.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        refresh(path, write=True)
    assert not own.exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path / "file" / "own"))
    with pytest.raises(UsageError, match="set TFDYNO_DATA"):
        refresh(_file(tmp_path, NEW), write=True)


def test_killed_at_any_moment_the_list_stays_whole(tmp_path: Path, own: Path) -> None:
    refresh(_file(tmp_path, NEW), write=True)
    before = (own / "offers.csv").read_bytes()
    many = [f"cloud,m{i},t4,1,4,16,here,0.5,0.2,2026-11-20,page,day" for i in range(800)]
    path = _file(tmp_path, *many)
    script = (
        "from pathlib import Path; import sys; from tfdyno.jobs.lookup.refresh import refresh\n"
        "print('go', flush=True)\nrefresh(Path(sys.argv[1]), write=True)"
    )
    sizes = set()
    for wait_s in (0.0, 0.005, 0.01, 0.02, 0.04):
        (own / "offers.csv").write_bytes(before)
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=os.environ.copy()
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(wait_s)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        sizes.add(len(offers.read_listings(own / "offers.csv")))
    assert sizes <= {1, 801}
