"""The CSV tables of the rules: read strictly, because a row that is lost is a wrong answer."""

from __future__ import annotations

import csv
from pathlib import Path

from tfdyno.core.base.errors import ToolError

DATA = Path(__file__).parent / "data"


def read_rows(name: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of ``rules/data/NAME``, which has just these columns.

    Raises:
        ToolError: The file is missing, damaged, or has other columns.
    """
    try:
        with (DATA / name).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise ToolError(f"{name} is corrupt", why=str(error)) from None
    if not rows or tuple(rows[0]) != columns or any(None in row.values() for row in rows):
        raise ToolError(f"{name} is corrupt", why=f"expected the columns {', '.join(columns)}")
    return rows
