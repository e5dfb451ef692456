"""What the cells of one column have in common: whole numbers, numbers, or text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.deploy.dataset import DType

WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
"""Not 007: what begins so is a code, which a number would not keep."""
NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?(nan|inf|infinity)", re.I)
FLOAT32_MAX = 3.4028234663852886e38
FLOAT32_WHOLE = 2**24
"""Up to here float32 has every whole number."""
_INT64 = range(-(2**63), 2**63)
_MOST_DIGITS = 20
"""The most digits of an int64, its sign among them."""
_WHOLE, _NUMBER, _TEXT = range(3)
_SHOWN_CHARACTERS = 40


@dataclass(slots=True, kw_only=True)
class ColumnFacts:
    """The cells that were seen so far."""

    name: str
    kind: int = _WHOLE
    seen: int = 0
    """Cells that are not empty."""
    empty: int = 0
    first_empty: int = 0
    """Its line."""
    largest: int = 0
    """Whole number, without its sign."""
    too_large: tuple[int, str] | None = None
    """Line and cell of a number that float32 does not have."""
    text: tuple[int, str] | None = None
    """Line and cell that make a column of numbers text."""

    def add(self, cell: str, line: int) -> None:
        """Take one cell."""
        if self.kind == _TEXT:
            return
        cell = cell.strip()
        if not cell:
            self.empty += 1
            self.first_empty = self.first_empty or line
            return
        if self.kind == _WHOLE:
            self.kind = self._first_kind(cell)
        if self.kind == _NUMBER:
            if NUMBER.fullmatch(cell):
                self.too_large = self.too_large or self._beyond(cell, line)
            elif not NOT_FINITE.fullmatch(cell):
                self.kind = _TEXT
        if self.kind == _TEXT and self.seen:
            self.text = (line, cell)
        self.seen += 1

    def is_number(self, cell: str) -> bool:
        """Return whether a cell would be read as a number."""
        text = cell.strip()
        return bool(NUMBER.fullmatch(text) or NOT_FINITE.fullmatch(text))

    def dtype(self, path: Path) -> DType:
        """Return how the column is stored.

        Raises:
            UsageError: Its numbers would lose digits; the sentence names the line.
        """
        if self.kind == _TEXT or not self.seen:
            return "string"
        if self.kind == _WHOLE and not self.empty:
            return "int64"
        if self.too_large:
            line, cell = self.too_large
            raise UsageError(f"{path}, line {line}: {_shown(cell)} is more than a float32 holds",
                             why=f"the column '{self.name}'")  # fmt: skip
        if self.kind == _WHOLE and self.largest > FLOAT32_WHOLE:
            raise UsageError(
                f"the column '{self.name}' of {path} has empty cells and whole numbers above "
                f"{FLOAT32_WHOLE:,}",
                why="empty cells make it float32, which would change such numbers",
                remedy=f"fill the empty cells, of which the first is in line {self.first_empty}",
            )
        return "float32"

    def notes(self) -> list[str]:
        """Return what is told of it: why numbers became text, or whole numbers others."""
        if self.text:
            line, cell = self.text
            return [f"The column '{self.name}' is text because of '{_shown(cell)}' in line {line}."]
        if self.empty and self.seen and self.kind != _TEXT:
            cells = (
                "1 empty cell becomes" if self.empty == 1 else f"{self.empty:,} empty cells become"
            )
            return [f"In the column '{self.name}' {cells} NaN; the first is in line "
                    f"{self.first_empty}."]  # fmt: skip
        return []

    def _first_kind(self, cell: str) -> int:
        """Tell a cell below whole numbers; one that no int64 holds is a code, and stays so."""
        if not WHOLE.fullmatch(cell):
            return _NUMBER
        if len(cell) > _MOST_DIGITS:  # Python reads no number of thousands of digits
            return _TEXT
        value = int(cell)
        self.largest = max(self.largest, abs(value))
        return _WHOLE if value in _INT64 else _TEXT

    def _beyond(self, cell: str, line: int) -> tuple[int, str] | None:
        return (line, cell) if abs(float(cell)) > FLOAT32_MAX else None


def _shown(cell: str) -> str:
    return cell if len(cell) <= _SHOWN_CHARACTERS else f"{cell[:_SHOWN_CHARACTERS]}…"
