"""A CSV file read once: its columns and their types, and where each row begins."""

from __future__ import annotations

import csv
import hashlib
from array import array
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.base.settings import did_you_mean
from tfdyno.core.deploy.dataset import Feature, Skipped
from tfdyno.probe.files.csv_column import ColumnFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Value

BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
LONGEST_FIELD = 2**27
MOST_CLASSES = 65_536
TELL_ROWS = 200_000
"""Between two lines of progress: about a second."""
_NUMBERS_BYTES = 16
"""About the bytes of one value of an ``Example`` beside its name and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFile:
    """What a data set is made of."""

    features: tuple[Feature, ...]
    """The features by column."""
    classes: tuple[str, ...]
    """The classes of a label that is text; else empty."""
    offsets: array[int]
    """Where each row begins, in bytes from the start of the file."""
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    """What is not as somebody who looks at the file may expect."""
    size_bytes: int
    modified_ns: int
    name: str

    @property
    def records(self) -> int:
        """Rows with values."""
        return len(self.offsets)

    @property
    def converted_bytes(self) -> int:
        """About so many will be written, without compression."""
        row = sum(len(one.name.encode()) + _NUMBERS_BYTES for one in self.features)
        return self.size_bytes + row * self.records

    @property
    def sha256(self) -> str:
        """The digest of name, size and time of change."""
        return _fingerprint(self.name, self.size_bytes, self.modified_ns)


@dataclass(slots=True, kw_only=True)
class _Lines:
    """The lines of a file as text, and how far it was read."""

    file: BufferedReader
    path: Path
    position: int = 0
    number: int = 0

    def __iter__(self) -> Iterator[str]:
        while raw := self.file.readline():
            self.number += 1
            self.position += len(raw)
            try:
                yield raw.removeprefix(BOM if self.number == 1 else b"").decode()
            except UnicodeDecodeError:
                is_utf16 = self.number == 1 and raw.startswith(UTF16_BOMS)
                encoding = "UTF-16" if is_utf16 else "LATIN1"
                raise UsageError(
                    f"{self.path}, line {self.number} is no UTF-8 text",
                    remedy=f"convert it: iconv -f {encoding} -t UTF-8 {self.path.name}",
                ) from None


@dataclass(slots=True, kw_only=True)
class _Rows:
    """What is gathered row by row."""

    columns: list[ColumnFacts]
    label: int
    """Place of the label's column; -1: there is none."""
    skip_bad: bool
    path: Path
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    labels: set[str] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)

    def add(self, row: list[str], offset: int, line: int) -> None:
        """Take one row; raises ``UsageError`` where it does not fit."""
        if not row:  # an empty line
            return
        if why := self._fault(row):
            if not self.skip_bad:
                raise UsageError(
                    f"{self.path}, line {line} {why}",
                    remedy="mend it, or leave such rows out with --skip-bad",
                )
            self.skipped.append(Skipped(where=f"line {line}", why=why))
            return
        for column, cell in zip(self.columns, row, strict=True):
            column.add(cell, line)
        if self.label >= 0 and len(self.labels) <= MOST_CLASSES:
            self.labels.add(row[self.label])
        self.offsets.append(offset)

    def _fault(self, row: list[str]) -> str:
        if len(row) != len(self.columns):
            fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
            return f"has {fields} instead of {len(self.columns)}"
        if self.label >= 0 and not row[self.label].strip():
            return f"has no value in the label column '{self.columns[self.label].name}'"
        return ""


def csv_file(
    path: Path,
    *,
    label: str = "",
    delimiter: str = ",",
    skip_bad: bool = False,
    progress: Callable[[str], None],
) -> CsvFile:
    """Read a CSV file with a line of column names, UTF-8, quoted as in RFC 4180.

    Args:
        path: Of the file.
        label: Column that is learned; empty: none.
        delimiter: Between two fields.
        skip_bad: Leave rows out that do not fit, instead of refusing the file.
        progress: Called now and then with how far it is.

    Raises:
        UsageError: A row, the header or the label does not fit; the sentence names the line.
    """
    csv.field_size_limit(LONGEST_FIELD)
    with OSErrorsAs(UsageError, f"cannot read {path}"), path.open("rb") as file:
        before = path.stat()
        lines = _Lines(file=file, path=path)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        names = _header(path, reader, delimiter)
        rows = _Rows(
            columns=[ColumnFacts(name=name) for name in names],
            label=_place(path, names, label),
            skip_bad=skip_bad,
            path=path,
        )
        _read(rows, reader, lines, before.st_size, progress)
    if not rows.offsets:
        raise UsageError(f"{path} has no rows", why="there is nothing below its column names")
    features, classes = _features(rows)
    return CsvFile(
        features=features,
        classes=classes,
        offsets=rows.offsets,
        skipped=tuple(rows.skipped),
        notes=(*(note for one in rows.columns for note in one.notes()), *_alike(classes)),
        size_bytes=before.st_size,
        modified_ns=before.st_mtime_ns,
        name=path.name,
    )


def csv_sha256(path: Path) -> str:
    """Return ``CsvFile.sha256`` of a file that is not read for it.

    Raises:
        UsageError: It cannot be looked at.
    """
    with OSErrorsAs(UsageError, f"cannot read {path}"):
        found = path.stat()
    return _fingerprint(path.name, found.st_size, found.st_mtime_ns)


def _fingerprint(name: str, size_bytes: int, modified_ns: int) -> str:
    text = f"{name}\0{size_bytes}\0{modified_ns}"
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _read(
    rows: _Rows,
    reader: Value,
    lines: _Lines,
    size_bytes: int,
    progress: Callable[[str], None],
) -> None:
    while True:
        offset, line = lines.position, lines.number + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise UsageError(f"{rows.path}, line {line} is no CSV", why=str(error)) from None
        if row is None:
            return
        rows.add(row, offset, line)
        if line % TELL_ROWS == 0:
            progress(f"looking through {rows.path.name}: {100 * offset // size_bytes} %")


def _header(path: Path, reader: Value, delimiter: str) -> list[str]:
    """Return the names of the columns."""
    try:
        names: list[str] = next(reader, [])
    except csv.Error as error:
        raise UsageError(f"{path}, line 1 is no CSV", why=str(error)) from None
    if not any(name.strip() for name in names):
        raise UsageError(f"{path} has no column names", why="its first line is empty")
    if all(ColumnFacts(name="").is_number(name) for name in names):
        raise UsageError(f"{path} has no column names", why="its first line has numbers only",
                         remedy="put a line with names in front")  # fmt: skip
    for place, name in enumerate(names, start=1):
        if not name.strip():
            remedy = "name it in the first line"
            if place == 1:
                remedy += ", or write the table without its index: to_csv(index=False) of pandas"
            raise UsageError(f"column {place} of {path} has no name", remedy=remedy)
        if name in names[: place - 1]:
            raise UsageError(f"{path} has two columns named '{name}'", remedy="rename one of them")
    if len(names) == 1:
        other = next((sign for sign in ";\t|" if sign in names[0] and sign != delimiter), "")
        if other:
            shown = "'\\t'" if other == "\t" else f"'{other}'"
            raise UsageError(
                f"{path} has a single column '{names[0]:.60}'",
                why=f"its fields are probably separated by {shown}",
                remedy=f"add --delimiter {shown}",
            )
    return names


def _place(path: Path, names: list[str], label: str) -> int:
    if not label:
        return -1
    if label in names:
        return names.index(label)
    few = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    remedy = did_you_mean(label, names, otherwise=f"it has {few}")
    raise UsageError(f"{path} has no column '{label}'", remedy=remedy)


def _features(rows: _Rows) -> tuple[tuple[Feature, ...], tuple[str, ...]]:
    features = []
    classes: tuple[str, ...] = ()
    for place, column in enumerate(rows.columns):
        dtype, is_label = column.dtype(rows.path), place == rows.label
        if is_label and dtype == "string":
            classes = tuple(sorted(rows.labels))
            _check_classes(rows, column.name)
            features.append(Feature(name=column.name, dtype="int64", role="class"))
        else:
            role = "label" if is_label else "column"
            features.append(Feature(name=column.name, dtype=dtype, role=role))  # type: ignore[arg-type]
    return tuple(features), classes


def _check_classes(rows: _Rows, name: str) -> None:
    if len(rows.labels) > MOST_CLASSES:
        raise UsageError(
            f"the label column '{name}' has more than {MOST_CLASSES:,} different texts",
            why="each would be a class",
            remedy="name another column",
        )


def _alike(classes: tuple[str, ...]) -> Iterator[str]:
    """Say that some texts are most likely meant to be the same class."""
    seen: dict[str, str] = {}
    for name in classes:
        other = seen.setdefault(name.strip().casefold(), name)
        if other != name:
            yield (f"'{other}' and '{name}' are two classes: they differ by case or blanks alone. "
                   "Write them alike if they are the same.")  # fmt: skip
            return
