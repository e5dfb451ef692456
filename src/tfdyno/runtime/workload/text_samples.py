"""A file of text as samples: lines, or the rows of a table, with their classes where it has any."""

from __future__ import annotations

import csv
import json
import sys
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any, TextIO

TEXT_NAMES = ("text", "sentence", "review", "content", "comment", "body")
"""Columns that hold the text; the first of these that is there."""
CLASS_NAMES = ("label", "labels", "class", "target", "category", "sentiment")
"""Columns that hold the class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSamples:
    """Texts, and what class each is of."""

    texts: tuple[str, ...]
    labels: tuple[int, ...] = ()
    """Places in ``classes``; empty: the file has no column of classes."""
    classes: tuple[str, ...] = ()
    """As written in the file, numbers by size, names by alphabet."""


def read_samples(path: Path) -> TextSamples:
    """Read ``.txt`` (a line is a sample), ``.csv``, ``.tsv`` or ``.jsonl``, less empty texts.

    Raises:
        UsageError: It is missing, empty, no text, or has no column of it.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in _rows(path, file) if row[0].strip()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        what = f"{path} cannot be read"
        raise UsageError(what, why=getattr(error, "strerror", None) or str(error)) from None
    if not rows:
        raise UsageError(f"{path} holds no text", remedy="give a file with a sample in each line")
    texts, named = tuple(row[0] for row in rows), [row[1] for row in rows]
    if all(name is None for name in named):
        return TextSamples(texts=texts)
    classes = sorted({str(name) for name in named}, key=_by_size)
    place = {name: number for number, name in enumerate(classes)}
    labels = tuple(place[str(name)] for name in named)
    return TextSamples(texts=texts, labels=labels, classes=tuple(classes))


def _rows(path: Path, file: TextIO) -> Iterator[tuple[str, str | None]]:
    """Yield the text and the class of each row; None where there is no column of classes."""
    if path.suffix == ".txt":
        yield from ((line.rstrip("\r\n"), None) for line in file)
        return
    table = _objects(path, file) if path.suffix == ".jsonl" else _table(path, file)
    columns: tuple[str, str | None] | None = None
    for number, row in table:
        columns = columns or _columns(path, row)
        text, label = (None if name is None else row.get(name) for name in columns)
        if not isinstance(text, str) or (columns[1] is not None and label in (None, "")):
            missing = columns[0] if not isinstance(text, str) else columns[1]
            raise UsageError(f"line {number} of {path} has no {missing}")
        yield text, None if columns[1] is None else str(label).strip()


def _table(path: Path, file: TextIO) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(sys.maxsize)  # a text may be longer than 128 KiB
    reader = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
    for row in reader:
        yield reader.line_num, {str(name).strip(): value for name, value in row.items()}


def _objects(path: Path, file: TextIO) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UsageError(f"line {number} of {path} is not JSON", why=str(error)) from None
        if not isinstance(row, dict):
            raise UsageError(f"line {number} of {path} holds no object of JSON")
        yield number, row


def _columns(path: Path, row: dict[str, Any]) -> tuple[str, str | None]:
    """Return the names of the columns of text and of classes."""
    by_lower = {name.lower(): name for name in row}
    text = next((by_lower[name] for name in TEXT_NAMES if name in by_lower), None)
    label = next((by_lower[name] for name in CLASS_NAMES if name in by_lower), None)
    if text is None and len(row) == 1:
        text, label = next(iter(row)), None
    if text is None:
        why = f"its columns are {', '.join(row)}"
        remedy = "call the one with the text 'text', and that with the class 'label'"
        raise UsageError(f"{path} has no column of text", why=why, remedy=remedy)
    return text, label


def _by_size(name: str) -> tuple[float, str]:
    try:
        return float(name), name
    except ValueError:
        return float("inf"), name
