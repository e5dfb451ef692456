"""CSV tables with one dataclass a row: its fields are the columns."""

from __future__ import annotations

import csv
import dataclasses
import io
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Noun = TypeVar("Noun")


def read(path: Path, kind: type[Noun]) -> tuple[Noun, ...]:
    """The rows in the order of the file, numbers as numbers; nothing without a file.

    Raises:
        UsageError: A column is missing, or a cell is no number where one is needed.
    """
    if not path.exists():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        raw = list(csv.DictReader(file))
    try:
        return msgspec.convert(raw, tuple[kind, ...], strict=False)  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} has a wrong row", why=str(error)) from None


def write(path: Path, rows: Iterable[object], kind: type[object]) -> None:
    """Write the rows, atomically."""
    columns = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([getattr(row, column) for column in columns] for row in rows)
    write_atomic(path, out.getvalue().encode())
