"""probe/csv_column: whole numbers, numbers and text are told apart without losing a digit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.probe.files.csv_column import ColumnFacts

FILE = Path("table.csv")


def column(*cells: str) -> ColumnFacts:
    found = ColumnFacts(name="age")
    for line, cell in enumerate(cells, start=2):
        found.add(cell, line)
    return found


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (("1", "-20", "+3", " 4 "), "int64"),
        (("9223372036854775807", "-9223372036854775808"), "int64"),
        (("9223372036854775808",), "string"),  # no int64: a code
        (("1" * 5000,), "string"),  # more digits than Python reads
        (("2.5", "1" * 30), "float32"),
        (("1", "2.5"), "float32"),
        (("1.", ".5", "1e-3", "-2E5", "nan", "inf", "-Infinity"), "float32"),
        (("1", ""), "float32"),  # an empty cell is NaN
        (("007", "1"), "string"),  # a code
        (("0", "-0", "0.5"), "float32"),
        (("1", "NA"), "string"),
        (("1_000",), "string"),  # what Python would take
        (("١",), "string"),  # a digit, and none that TensorFlow reads
        (("", ""), "string"),
        ((), "string"),
        (("yes", "1"), "string"),
    ],
)
def test_the_type_is_the_narrowest_that_holds_every_cell(
    cells: tuple[str, ...], dtype: str
) -> None:
    assert column(*cells).dtype(FILE) == dtype


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_whole_numbers_stay_whole_numbers(values: list[int]) -> None:
    assert column(*map(str, values)).dtype(FILE) == "int64"


def test_text_among_numbers_is_told_with_its_line() -> None:
    assert column("1", "2", "n/a", "?").notes() == [
        "The column 'age' is text because of 'n/a' in line 4."
    ]
    assert column("n/a", "1").notes() == []  # it never looked like numbers
    long = column("1", "x" * 60).notes()[0]
    assert "'" + "x" * 40 + "…'" in long


def test_empty_cells_are_told_with_the_first_line() -> None:
    assert column("1", "", "3", "").notes() == [
        "In the column 'age' 2 empty cells become NaN; the first is in line 3."
    ]
    assert column("1.5", "").notes() == [
        "In the column 'age' 1 empty cell becomes NaN; the first is in line 3."
    ]
    assert column("a", "").notes() == []


def test_a_number_that_float32_does_not_hold_is_refused() -> None:
    with pytest.raises(UsageError, match=r"line 3: 1e39 is more than a float32 holds: .*'age'"):
        column("1.5", "1e39").dtype(FILE)
    assert column("3.4028234663852886e38", "inf").dtype(FILE) == "float32"
    with pytest.raises(UsageError, match=r"line 3: 1{40}… is more than a float32 holds"):
        column("1.5", "1" * 5000).dtype(FILE)


def test_whole_numbers_that_empty_cells_would_change_are_refused() -> None:
    assert column("16777216", "").dtype(FILE) == "float32"
    with pytest.raises(UsageError, match=r"above 16,777,216: .*fill the empty cells.*line 3\."):
        column("-16777217", "").dtype(FILE)
