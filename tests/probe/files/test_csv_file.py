"""probe/csv_file: rows are found where they begin, and what does not fit is told by line."""

from __future__ import annotations

import csv
import io
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.dataset import Feature, Skipped
from tfdyno.jobs.child.worker import silent
from tfdyno.probe.files.csv_file import CsvFile, csv_file, csv_sha256

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path, *, label: str = "", delimiter: str = ",", skip_bad: bool = False) -> CsvFile:
    return csv_file(path, label=label, delimiter=delimiter, skip_bad=skip_bad, progress=silent)


def rows_at(path: Path, found: CsvFile) -> list[list[str]]:
    """The row that begins at each offset."""
    data = path.read_bytes()
    return [next(csv.reader(io.StringIO(data[at:].decode(), newline=""))) for at in found.offsets]


def test_columns_classes_and_places_of_a_table(tmp_path: Path) -> None:
    path = write(tmp_path, 'age,city,kind\n30,Köln,yes\n,"Paris, FR",no\n\n31,"a\nb",yes\n')
    found = read(path, label="kind")
    assert found.features == (
        Feature(name="age", dtype="float32", role="column"),
        Feature(name="city", dtype="string", role="column"),
        Feature(name="kind", dtype="int64", role="class"),
    )
    assert found.classes == ("no", "yes")
    # 14 bytes of names; "30,Köln,yes\n" has 13; ',"Paris, FR",no\n' 16; the empty line 1
    assert list(found.offsets) == [14, 27, 44]
    assert found.notes == ("In the column 'age' 1 empty cell becomes NaN; the first is in line 3.",)
    assert rows_at(path, found)[2] == ["31", "a\nb", "yes"]


def test_a_label_of_numbers_stays_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "x,y\n1,0.5\n2,3\n")
    assert read(path, label="y").features[1] == Feature(name="y", dtype="float32", role="label")
    assert read(path, label="x").features[0] == Feature(name="x", dtype="int64", role="label")
    assert read(path).classes == ()


def test_a_mark_of_utf8_and_lines_of_windows_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbfa,b\r\n1,2\r\n3,4")
    found = read(path)
    assert [one.name for one in found.features] == ["a", "b"]
    assert rows_at(path, found) == [["1", "2"], ["3", "4"]]


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1), end=st.sampled_from(["\n", "\r\n"]))
def test_every_row_is_found_whatever_is_in_its_cells(
    rows: list[tuple[str, str]], end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second"), *rows])
    path = write(tmp_path_factory.mktemp("table"), text.getvalue())
    assert rows_at(path, read(path)) == [list(row) for row in rows]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no column names: its first line is empty"),
        ("a,b\n", "has no rows"),
        ("1,2\n3,4\n", "no column names: its first line has numbers only; put a line"),
        ("a,,c\n1,2,3\n", r"column 2 of .*table\.csv has no name"),
        ("a,b,a\n1,2,3\n", "two columns named 'a'"),
        ("a;b\n1;2\n", r"single column 'a;b'.*add --delimiter ';'"),
        ("a,b\n1,2\n3\n", r"table\.csv, line 3 has 1 field instead of 2; mend it, or leave"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields instead of 2"),
        ('a,b\n"x\ny",2\n"x"y,3\n', "line 4 is no CSV: ',' expected after"),
        ('a,b\n1,"2\n3,4\n', "line 2 is no CSV: unexpected end of data"),
        (b"a,b\n1,\xff\n", r"line 2 is no UTF-8 text; convert it: iconv -f LATIN1 .* table\.csv"),
        ("a,b\n1,2\n".encode("utf-16"), r"line 1 is no UTF-8 text; .* iconv -f UTF-16 -t UTF-8 "),
        (",a\n0,1\n", r"column 1 of .* has no name; .*without its index: to_csv\(index=False\)"),
    ],
)
def test_what_is_no_table_is_refused_by_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read(write(tmp_path, text))


def test_a_label_that_is_not_there_is_told_with_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path, "age,kind\n1,a\n")
    with pytest.raises(UsageError, match=r"no column 'knd'; did you mean kind\?"):
        read(path, label="knd")
    with pytest.raises(UsageError, match="no column 'zzz'; it has age, kind"):
        read(path, label="zzz")


def test_rows_that_do_not_fit_are_left_out_when_asked(tmp_path: Path) -> None:
    path = write(tmp_path, "x,kind\n1,a\n2\n3,\n4,b\n")
    with pytest.raises(UsageError, match="line 3 has 1 field"):
        read(path, label="kind")
    found = read(path, label="kind", skip_bad=True)
    assert rows_at(path, found) == [["1", "a"], ["4", "b"]]
    assert found.classes == ("a", "b")
    assert found.skipped == (
        Skipped(where="line 3", why="has 1 field instead of 2"),
        Skipped(where="line 4", why="has no value in the label column 'kind'"),
    )


def test_classes_that_are_most_likely_one_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, "x,kind\n1,Cat\n2,dog\n3,cat \n4,Dog\n")
    found = read(path, label="kind")
    assert found.classes == ("Cat", "Dog", "cat ", "dog")
    assert found.notes == (
        "'Cat' and 'cat ' are two classes: they differ by case or blanks alone. Write them alike "
        "if they are the same.",
    )
    assert read(path).notes == ()


def test_a_label_of_too_many_texts_is_refused(tmp_path: Path) -> None:
    names = "\n".join(f"1,name{number}" for number in range(65_537))
    with pytest.raises(UsageError, match="more than 65,536 different texts"):
        read(write(tmp_path, f"x,name\n{names}\n"), label="name")


def test_the_fingerprint_is_of_name_size_and_time(tmp_path: Path) -> None:
    path = write(tmp_path, "a\n1\n")
    first = read(path).sha256
    assert csv_sha256(path) == first
    os.utime(path, ns=(5, 5))
    second = read(path).sha256
    path.write_text("a\n12\n")
    os.utime(path, ns=(5, 5))
    assert len({first, second, read(path).sha256}) == 3


def test_another_delimiter(tmp_path: Path) -> None:
    found = read(write(tmp_path, "a\tb\n1\tx,y\n"), delimiter="\t")
    assert [one.dtype for one in found.features] == ["int64", "string"]
