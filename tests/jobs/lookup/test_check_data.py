"""The state of every table: rows counted, dates and sources as the files have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.tables import DATA
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.lookup.check_data import check_data, show_data

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    return tmp_path


def test_a_table_of_the_user_is_counted_beside_the_shipped_ones(own: Path) -> None:
    (own / "mine.csv").write_text(
        "slug,date,source\na,2026-05-02,page\nb,,page\nc,2025-09,\nd,2026-01-01,other\n"
    )
    found = show_data()
    assert [one.path for one in found[:-1]] == [str(path) for path in sorted(DATA.glob("*.csv"))]
    mine = found[-1]
    assert (mine.file, mine.rows, mine.sources) == ("mine.csv", 4, 2)
    assert (mine.oldest, mine.newest) == ("2025-09", "2026-05-02")


def test_a_file_that_is_no_table_is_told(own: Path) -> None:
    (own / "mine.csv").write_bytes(b"slug\n\xff\xfe\n")
    with pytest.raises(UsageError, match=r"mine\.csv, line 1: it is not readable as CSV"):
        show_data()


@pytest.mark.usefixtures("own")
def test_the_shipped_tables_are_sound_and_every_rejected_price_has_a_reason() -> None:
    report = check_data()
    assert report.tables == show_data()
    assert all(one.reasons for one in report.rejected)
