"""Read a CSV table of the catalogue row by row; every fault names the file and the line."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table; reads its cells as text or numbers, or says what is wrong and where."""

    path: Path
    line: int
    values: dict[str, str]
    shipped: bool
    """True for the tables that come with tfdyno, False for a file of the user."""

    def fault(self, what: str) -> TfdynoError:
        """Make the error to raise for this row: exit code 3 for shipped data, 2 for a user's."""
        return _fault(self.path, self.line, what, shipped=self.shipped)

    def text(self, column: str) -> str:
        """Return a cell as it stands; empty where the table is."""
        return self.values.get(column, "")

    def number(self, column: str, *, default: float | None = None) -> float:
        """Return a cell as a finite number of at least 0; ``default`` for an empty cell.

        Raises:
            TfdynoError: The cell is no such number, or empty without a default.
        """
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            raise self.fault(f"{column} is '{text}', not a number") from None
        if not math.isfinite(value) or value < 0:
            raise self.fault(f"{column} is {text}, not a finite number of at least 0")
        return value

    def whole(self, column: str, *, default: int | None = None) -> int:
        """Return a cell as a whole number; raises as ``number`` does."""
        value = self.number(column, default=default)
        if value != int(value):
            raise self.fault(f"{column} is {value}, not a whole number")
        return int(value)

    def yes(self, column: str) -> bool:
        """Read a cell that says yes or no; raises ``TfdynoError`` for anything else."""
        text = self.text(column)
        if text not in {"yes", "no"}:
            raise self.fault(f"{column} is '{text}', not yes or no")
        return text == "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulty:
    """A line of a user's table that cannot be read, as it stands there."""

    line: int
    values: dict[str, str]
    reason: str
    """What is wrong, with the number of the line."""


def read_table(
    path: Path,
    columns: Iterable[str],
    *,
    key: Iterable[str],
    optional: Iterable[str] = (),
    shipped: bool = True,
    ordered: bool = True,
) -> tuple[Row, ...]:
    """Read a table and check its header, its keys, its order and that every row has a source.

    Args:
        path: A CSV file in UTF-8 with a header line.
        columns: Columns that must be there.
        key: Columns that together name a row; no two rows may share them.
        optional: Columns that may be there; any other one is refused.
        shipped: Whether a fault is the tool's (exit code 3) or the user's (2).
        ordered: Whether rows must be sorted by their key.

    Raises:
        ToolError: A shipped table is missing or corrupt; names the file and the line.
        UsageError: The same for a file of the user.
    """
    columns, key = tuple(columns), tuple(key)
    header, lines = _read_lines(path, shipped=shipped)
    _check_header(path, header, columns, optional, shipped=shipped)
    rows = tuple(_row(path, header, line, cells, shipped) for line, cells in lines)
    _check_keys(rows, key, ordered=ordered)
    for row in rows:
        _check_source(row)
    return rows


def sift_table(
    path: Path,
    columns: Iterable[str],
    *,
    key: Iterable[str],
    optional: Iterable[str],
    read: Callable[[Row], T],
) -> tuple[tuple[T, ...], tuple[Faulty, ...]]:
    """Read a user's table as ``read_table`` does, and set apart the lines with a fault.

    Args:
        path: As for ``read_table``.
        columns: As for ``read_table``.
        key: Columns that together name a row; of two sound rows with one name the first stays.
        optional: As for ``read_table``.
        read: Makes something of a row; what it raises by ``Row.fault`` is the line's fault.

    Raises:
        UsageError: The file is no such table: it cannot be read, or its header is another.
    """
    columns, key = tuple(columns), tuple(key)
    header, lines = _read_lines(path, shipped=False)
    _check_header(path, header, columns, optional, shipped=False)
    made: list[T] = []
    faulty: list[Faulty] = []
    seen: dict[tuple[str, ...], int] = {}
    for line, cells in lines:
        try:
            row = _row(path, header, line, cells, shipped=False)
            name = _checked_key(row, key, seen)
            _check_source(row)
            made.append(read(row))
            seen[name] = line
        except UsageError as error:
            values = dict(zip(header, cells, strict=False))
            reason = error.what.removeprefix(f"{path}, ")
            faulty.append(Faulty(line=line, values=values, reason=reason))
    return tuple(made), tuple(faulty)


def raw_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of any CSV file as dictionaries, nothing checked but that it can be read.

    Raises:
        UsageError: It cannot be read as CSV.
    """
    header, lines = _read_lines(path, shipped=False)
    return [dict(zip(header, cells, strict=False)) for _, cells in lines]


def _fault(path: Path, line: int, what: str, *, shipped: bool) -> TfdynoError:
    remedy = "install tfdyno again" if shipped else "correct that line"
    kind: Callable[..., TfdynoError] = ToolError if shipped else UsageError
    where = path.name if shipped else str(path)
    return kind(f"{where}, line {line}: {what}", remedy=remedy)


def _read_lines(path: Path, *, shipped: bool) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        # Spreadsheets put a byte order mark in front, which must not become part of the header.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except FileNotFoundError:
        kind: Callable[..., TfdynoError] = ToolError if shipped else UsageError
        raise kind(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _fault(path, 1, f"it is not readable as CSV ({error})", shipped=shipped) from None
    return header, lines


def _check_header(
    path: Path,
    header: list[str],
    columns: tuple[str, ...],
    optional: Iterable[str],
    *,
    shipped: bool,
) -> None:
    if len(header) == 1 and ";" in header[0]:
        what = "its columns are separated by semicolons, commas are expected"
        raise _fault(path, 1, what, shipped=shipped)
    missing = [name for name in columns if name not in header]
    if missing:
        raise _fault(path, 1, f"the column {missing[0]} is missing", shipped=shipped)
    known = {*columns, *optional}
    unknown = [name for name in header if name not in known]
    if unknown:
        raise _fault(path, 1, f"the column '{unknown[0]}' is not known", shipped=shipped)


def _row(path: Path, header: list[str], line: int, cells: list[str], shipped: bool) -> Row:
    if len(cells) != len(header):
        what = f"it has {len(cells)} cells, the header has {len(header)}"
        raise _fault(path, line, what, shipped=shipped)
    values = dict(zip(header, (cell.strip() for cell in cells), strict=True))
    return Row(path=path, line=line, values=values, shipped=shipped)


def _check_keys(rows: tuple[Row, ...], key: tuple[str, ...], *, ordered: bool) -> None:
    seen: dict[tuple[str, ...], int] = {}
    last: tuple[str, ...] = ()
    for row in rows:
        name = _checked_key(row, key, seen)
        if ordered and name < last:
            label = " ".join(name)
            raise row.fault(f"'{label}' is out of order (rows are sorted by {', '.join(key)})")
        seen[name] = row.line
        last = name


def _checked_key(
    row: Row, key: tuple[str, ...], seen: dict[tuple[str, ...], int]
) -> tuple[str, ...]:
    name = tuple(row.text(column) for column in key)
    if not name[0]:
        raise row.fault(f"{key[0]} is empty")
    if name in seen:
        raise row.fault(f"'{' '.join(name)}' stands on line {seen[name]} already")
    return name


def _check_source(row: Row) -> None:
    if "source" in row.values and not row.text("source"):
        raise row.fault("it has no source")
