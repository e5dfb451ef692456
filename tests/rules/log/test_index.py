"""A shape is learnt once; lines of a known shape cost no look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.log.index import COARSE, FINE, ShapeIndex, indices, shape

if TYPE_CHECKING:
    import pytest


def shapes(block: bytes, letters: bytes = COARSE) -> list[bytes]:
    return shape(block, letters).split(b"\n")


def test_time_stamps_numbers_and_addresses_leave_no_trace() -> None:
    first = b"2024-05-05 10:33:01.127918: I tsl/x.cc:64] Step 0x7f3a of 'run' 12.5"
    other = b'1999-12-31 23:59:59.000001: I tsl/x.cc:7] step 0xdead of "run" 0'
    assert shape(first) == shape(other) == b"itslxstpxorun"
    assert shape("显存 cuda".encode(), FINE) == "显存cuda".encode()


def test_a_needle_of_few_letters_goes_to_the_fine_index() -> None:
    coarse, fine = indices(["could not load", ".so.", "nan"])
    assert (coarse.letters, fine.letters) == (COARSE, FINE)
    assert not coarse.candidates([b"so"], b".so.\n").lines
    assert [needles for *_, needles in fine.candidates([b".so."], b".so.\n").lines] == [(1,)]


def test_lines_of_a_known_shape_are_candidates_only_if_it_can_hold_a_needle() -> None:
    index = ShapeIndex({3: "not found"}, COARSE)
    block = b"step 1\nlib 1 not found\nstep 2\nlib 2 not found"
    found = index.candidates(shapes(block), block)
    assert [(line, needles) for line, _, needles in found.lines] == [(1, (3,)), (3, (3,))]
    assert index.fresh(shapes(b"step 9\nlib 9 not found\nstop")) == {b"stop"}


def test_a_needle_parted_by_a_line_end_is_told_apart() -> None:
    index = ShapeIndex({0: "not found"}, COARSE)
    block = b"library not fo\nund here"
    found = index.candidates(shapes(block), block)
    assert found.across == {0: {0}}


def test_a_needle_of_digits_is_looked_for_as_it_stands() -> None:
    index = ShapeIndex({0: "137"}, COARSE)
    block = b"code 136\ncode 137 137\n\n137"
    found = index.candidates(shapes(block), block)
    assert [line for line, *_ in found.lines] == [1, 3]


def test_a_settled_shape_is_counted_and_not_read() -> None:
    index = ShapeIndex({0: "not found"}, COARSE)
    block = b"one not found\none not found\ntwo"
    (_, one, _), _ = index.candidates(shapes(block), block).lines
    index.settle(one, 0, [7])
    found = index.candidates(shapes(block), block)
    assert (found.lines, found.counts) == ([], {7: 2})


def test_a_closed_needle_makes_no_candidates() -> None:
    index = ShapeIndex({0: "not found", 1: "137"}, COARSE)
    index.candidates(shapes(b"not found"), b"not found")
    for needle in (0, 1):
        index.close(needle)
    block = b"not found 137\nzz not found"
    assert not index.candidates(shapes(block), block).lines


def test_what_is_forgotten_in_a_full_memory_is_learnt_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tfdyno.rules.log.index.REMEMBERED_BYTES", 100)
    index = ShapeIndex({0: "not found"}, COARSE)
    for _ in range(5):
        block = b"lib not found\nkkk\njjj"
        assert [line for line, *_ in index.candidates(shapes(block), block).lines] == [0]
