"""Lines that are like no other are looked through, and learnt when they come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.log.index import FINE, shape
from tfdyno.rules.log.unlike import UnlikeLines

if TYPE_CHECKING:
    import pytest

NEEDLES = ("cudnn", ".so.", "not found")


def shapes(*lines: str) -> list[bytes]:
    return [shape(line.encode(), FINE) for line in lines]


def test_needles_are_told_by_line_and_those_across_a_line_end_apart() -> None:
    unlike = UnlikeLines(NEEDLES)
    inside, across = unlike.needles(
        shapes("lib.so.8 was not", "found in cud", "nn 8", "x"), [0, 1, 2, 3]
    )
    assert inside == {0: {1}}
    assert across == {0: {2}, 1: {0}}


def test_lines_that_are_not_wanted_are_left_out() -> None:
    inside, across = UnlikeLines(NEEDLES).needles(shapes("cudnn", "x", "y", "cudnn"), [3])
    assert (inside, across) == ({3: {0}}, {})


def test_a_few_new_lines_are_left_to_be_learnt() -> None:
    unlike = UnlikeLines(NEEDLES)
    assert unlike.first_met({b"a", b"b"}, line_count=10) == set()
    assert unlike.first_met({b"a", b"b", b"c"}, line_count=10) == {b"a", b"b", b"c"}


def test_a_shape_that_comes_again_is_left_to_be_learnt() -> None:
    unlike = UnlikeLines(NEEDLES)
    assert unlike.first_met({b"a", b"b"}, line_count=2) == {b"a", b"b"}
    assert unlike.first_met({b"a", b"c"}, line_count=2) == {b"c"}


def test_what_was_met_is_forgotten_in_a_full_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdyno.rules.log.unlike.REMEMBERED_BYTES", 100)
    unlike = UnlikeLines(NEEDLES)
    assert unlike.first_met({b"a", b"b"}, line_count=2) == {b"a", b"b"}  # holds 2 x 61 bytes
    assert unlike.first_met({b"c", b"d"}, line_count=2) == {b"c", b"d"}
    assert unlike.first_met({b"a", b"b"}, line_count=2) == {b"a", b"b"}


def test_a_closed_needle_is_found_no_more() -> None:
    unlike = UnlikeLines(NEEDLES)
    unlike.close(0)
    assert unlike.needles(shapes("cudnn.so.8"), [0]) == ({0: {1}}, {})
