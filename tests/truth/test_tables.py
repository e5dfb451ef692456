from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno_truth.tables import read, write

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    number: int
    share: float


def test_what_was_written_is_read_with_its_types(tmp_path: Path) -> None:
    rows = (Row(name="a, b", number=2, share=0.1), Row(name="1", number=-1, share=3.0))
    write(tmp_path / "x.csv", rows, Row)
    assert read(tmp_path / "x.csv", Row) == rows
    assert (tmp_path / "x.csv").read_text().splitlines()[:2] == [
        "name,number,share",
        '"a, b",2,0.1',
    ]


def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "x.csv", Row) == ()


@pytest.mark.parametrize("text", ["name,number\na,1\n", "name,number,share\na,b,0.1\n"])
def test_a_wrong_row_is_told_with_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(UsageError, match=r"x\.csv has a wrong row"):
        read(tmp_path / "x.csv", Row)
