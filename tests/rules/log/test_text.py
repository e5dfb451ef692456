"""Blocks of whole lines, and a line as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.rules.log.text import (
    LONGEST_LINE_BYTES,
    SAME_LINE,
    blocks,
    lines_with,
    paragraph,
    readable,
)

if TYPE_CHECKING:
    import pytest


@given(st.text("ab\n", max_size=400), st.integers(1, 30), st.integers(60, 200))
def test_blocks_put_together_are_the_log(text: str, step: int, block_bytes: int) -> None:
    data = text.encode()
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    assert b"".join(blocks(pieces)) == data


def test_a_block_ends_where_a_line_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdyno.rules.log.text.BLOCK_BYTES", 10)
    assert list(blocks(["one\ntwo\nthr", "ee\nfour"])) == [b"one\ntwo\n", b"three\n", b"four"]


def test_a_block_does_not_end_within_what_a_terminal_wrapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tfdyno.rules.log.text.BLOCK_BYTES", 100)
    first, rest = "Epoch 1\n", "ImportError: " + "x" * 67 + "\n"
    assert list(blocks([first + rest + "y" * 20, "y" * 20 + "\nm", "ore"])) == [
        first.encode(),
        (rest + "y" * 40 + "\n").encode(),
        b"more",
    ]


def test_carriage_returns_part_lines_that_stay_one() -> None:
    assert list(blocks(["a\r\nb\rc\n"])) == [b"a\nb\n" + SAME_LINE + b"c\n"]


def test_an_over_long_line_is_cut_into_parts_of_one_line() -> None:
    (block,) = blocks(["x" * (LONGEST_LINE_BYTES + 5) + "\nend"])
    assert block == b"x" * LONGEST_LINE_BYTES + b"\n" + SAME_LINE + b"xxxxx\nend"


def test_colours_are_taken_out_though_json_escaped_them() -> None:
    (block,) = blocks(["\x1b[31mred\x1b[0m and " + r"\u001b[1mbold\u001b[0m"])
    assert block == b"red and bold"


def test_a_line_of_json_is_read_as_its_lines() -> None:
    line = rb'{"log": "one\ntwo \"quoted\" \u4e2d"}'
    assert readable(line) == ('{"log": "one', 'two "quoted" 中"}')
    assert readable(rb"C:\new\table") == (r"C:\new\table",)  # a path, not an escape


def test_quoting_and_ends_of_lines_are_no_part_of_a_text() -> None:
    assert readable(b"\r> # said  \x00") == ("said",)
    assert readable(b"") == ("",)


def test_lines_with_a_word_come_once_and_in_order() -> None:
    block = b"size 1\nnone\nsize of shape\nshape"
    assert list(lines_with(block, [b"shape", b"size"])) == [b"size 1", b"size of shape", b"shape"]


def test_a_paragraph_is_glued_without_and_with_a_space() -> None:
    lines = [b"Epoch 1", b"ImportError: " + b"x" * 50, b"yy", b"Traceback (most recent call last)"]
    glued = ("ImportError: " + "x" * 50 + "yy", "ImportError: " + "x" * 50 + " yy")
    assert paragraph(lines, 1) == paragraph(lines, 2) == glued
    assert paragraph(lines, 0) == paragraph(lines, 3) == ()


def test_records_of_json_are_no_paragraph() -> None:
    lines = [b'{"time": 1, "log": "' + b"x" * 50 + b'"}', b'{"log": "yy"}']
    assert paragraph(lines, 0) == paragraph(lines, 1) == ()


def test_lines_that_begin_alike_are_no_paragraph() -> None:
    assert paragraph([b"step 100 of epoch " + b"1" * 40, b"step 100 of epoch 2"], 0) == ()
