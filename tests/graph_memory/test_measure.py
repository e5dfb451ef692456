"""The table of cases and what was measured belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graph_memory.measure import CASES, COLUMNS, KEY, MEASURED, rows, write

if TYPE_CHECKING:
    from pathlib import Path


def key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in (*KEY, "part"))


def test_every_case_was_measured_and_says_how() -> None:
    measured = rows(MEASURED)
    assert [key(row) for row in measured] == [key(row) for row in rows(CASES)]
    assert all(row["source"] and row["tensorflow"] and row["allocator"] for row in measured)


def test_at_least_20_models_and_no_held_out_one_was_tuned_on() -> None:
    cases = rows(CASES)
    assert len({case["model"] for case in cases}) >= 20
    held_out = {case["model"] for case in cases if case["part"] == "held out"}
    assert len(held_out) >= 6
    assert held_out.isdisjoint(case["model"] for case in cases if case["part"] != "held out")


def test_no_measured_peak_is_below_the_one_it_contains() -> None:
    names = ("resident", "tensor_peak", "requested_peak", "rounded_peak", "in_use_peak")
    for row in rows(MEASURED):
        sizes = [int(row[f"{name}_bytes"]) for name in (*names, "footprint")]
        assert sizes[:5] == sorted(sizes[:5]), row["model"]


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    row = dict.fromkeys(COLUMNS, "1") | {"source": 'a "quoted", text'}
    write(tmp_path / "rows.csv", COLUMNS, [row])
    assert rows(tmp_path / "rows.csv") == [row]
    assert rows(tmp_path / "none.csv") == []
