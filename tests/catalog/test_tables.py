from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.tables import read_table
from tfdyno.core.base.errors import ToolError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,size,source\na,1,x\n", ""),
        ("id,size\na,1\n", "line 1: the column source is missing"),
        ("id,size,source,colour\na,1,x,red\n", "line 1: the column 'colour' is not known"),
        ("id,size,source\na,1\n", "line 2: it has 2 cells, the header has 3"),
        ("id,size,source\na,1,x\na,2,x\n", "line 3: 'a' stands on line 2 already"),
        ("id,size,source\nb,1,x\na,2,x\n", "line 3: 'a' is out of order"),
        ("id,size,source\na,1,\n", "line 2: it has no source"),
        ("id,size,source\n,1,x\n", "line 2: id is empty"),
        ('id,size,source\na,"1,x\n', "not readable as CSV"),
        ("", "line 1: the column id is missing"),
    ],
)
def test_a_table_is_sound_or_says_what_is_wrong_where(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    if not message:
        assert len(read_table(path, ("id", "size", "source"), key=("id",))) == 1
        return
    for shipped, kind in ((True, ToolError), (False, UsageError)):
        with pytest.raises(kind, match=message):
            read_table(path, ("id", "size", "source"), key=("id",), shipped=shipped)


def test_a_missing_or_binary_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        read_table(tmp_path / "no.csv", ("id",), key=("id",), shipped=False)
    (tmp_path / "b.csv").write_bytes(b"id\n\xff\xfe\x00")
    with pytest.raises(UsageError, match="not readable"):
        read_table(tmp_path / "b.csv", ("id",), key=("id",), shipped=False)
