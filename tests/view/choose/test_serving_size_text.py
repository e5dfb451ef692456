"""The terminal text."""

from __future__ import annotations

from tests.services import LATE, size

from tfdyno.view.choose.serving_size_text import size_text


def test_the_answer_comes_first_and_all_fits() -> None:
    lines = size_text(size()).splitlines()
    assert lines[0] == "Rent 2 x Cheap."
    assert "Left out: not in time: 1." in lines
    assert max(map(len, lines)) <= 80


def test_all_shows_what_was_left_out_with_its_reason() -> None:
    shown = size_text(size(), show_all=True)
    assert "Not in time (1)" in shown
    assert "a batch of one request takes up to 90 ms" in " ".join(shown.split())


def test_without_a_feasible_one_the_reasons_are_shown() -> None:
    shown = size_text(size(ranking=(LATE,), picks=(), autoscaling=None))
    assert "Not in time (1)" in shown


def test_files_that_were_written_are_named() -> None:
    shown = size_text(size(), report="a.html", output="b.json")
    assert "Report: a.html" in shown
    assert "Sizes: b.json" in shown
