"""rules/tables: a damaged table is told by name, never half read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.rules import tables

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "content", [b"", b"name,source\n", b"name,other\na,b\n", b"name,source\na,b,c\n", b"\xff\xfe,"]
)
def test_a_damaged_table_is_told_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(tables, "DATA", tmp_path)
    (tmp_path / "known.csv").write_bytes(content)
    with pytest.raises(ToolError, match=r"known\.csv is corrupt"):
        tables.read_rows("known.csv", ("name", "source"))


def test_every_row_has_all_columns() -> None:
    columns = ("name", "needle", "match", "cap", "source")
    rows = tables.read_rows("watches.csv", columns)
    assert all(row["name"] and row["needle"] and row["source"] for row in rows)
    assert all(tuple(row) == columns for row in rows)
