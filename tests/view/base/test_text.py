from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.view.base import text


def test_columns_align_whatever_the_colour() -> None:
    plain = text.table(("a", "n"), [("x", "1"), ("long", "22")], align="<>")
    assert plain.splitlines() == ["a      n", "x      1", "long  22"]
    red = text.paint("x", "red", colour=True)
    coloured = text.table(("a", "n"), [(red, "1"), ("long", "22")], align="<>")
    assert text.shown_width(coloured.splitlines()[1]) == 8


def test_the_elastic_column_gives_way() -> None:
    table = text.table(("name", "n"), [("x" * 100, "1")], width=30, elastic=0)
    line = table.splitlines()[1]
    assert len(line) == 30
    assert line.endswith("…  1")


def test_spare_columns_go_before_two_names_read_the_same() -> None:
    rows = [("A100 SXM4 40 GB", "1", "one"), ("A100 SXM4 80 GB", "2", "two")]
    wide = text.table(("name", "n", "word"), rows, width=26, elastic=0, spare=(2,))
    assert wide.splitlines()[1] == "A100 SXM4 40 GB  1  one"
    narrow = text.table(("name", "n", "word"), rows, width=19, elastic=0, spare=(2, 1))
    assert narrow.splitlines()[1:] == ["A100 SXM4 40 GB  1", "A100 SXM4 80 GB  2"]


@given(st.sets(st.text("abcdef ", min_size=1, max_size=30), min_size=1, max_size=6))
def test_the_telling_width_tells_cells_apart(cells: set[str]) -> None:
    width = text.telling_width(sorted(cells))
    assert len({text.shorten(cell, width) for cell in cells}) == len(cells)


def test_values_stand_below_names_that_leave_no_room_beside() -> None:
    shown = text.pairs([("a condition of many words", "and what follows from it")], width=30)
    assert shown.splitlines() == ["  a condition of many words", "    and what follows from it"]


def test_pairs_leave_out_what_is_empty_and_wrap_the_rest() -> None:
    shown = text.pairs([("one", "word " * 30), ("two", ""), ("three", "x")], width=40)
    assert "two" not in shown
    assert max(map(len, shown.splitlines())) <= 40
    assert shown.splitlines()[-1] == "  three  x"


def test_slices_stay_apart_when_their_names_are_cut() -> None:
    name = "A100 SXM4 80 GB MIG 3g.40gb"
    assert text.shorten(name, 16) == "A100 SX… 3g.40gb"
    assert text.shorten(name, 40) == name
    assert text.shorten("A100 SXM4 80 GB", 8) == "A100 SX…"
    assert all(len(text.shorten(name, width)) <= width for width in range(1, 30))


CHINESE = (
    "原因：已安装的 tensorflow-cpu 2.21.0（不含 CUDA），因此看不到 GPU；"
    "请卸载它，然后安装 tensorflow[and-cuda]。"
)
STOPS = "，。；：、！？）"


@pytest.mark.parametrize(
    ("shown", "columns"),
    [("fix", 3), ("解决", 4), ("CUDA：正常", 10), ("–", 1), ("\x1b[31m错误\x1b[0m", 4), ("", 0)],
)
def test_a_chinese_character_takes_two_columns(shown: str, columns: int) -> None:
    assert text.shown_width(shown) == columns


def test_chinese_breaks_between_characters_and_keeps_words_whole() -> None:
    # "显存不足：" takes 10 columns, "batch" 5, a blank 1: 16 fill the first line.
    assert text.wrapped("显存不足：batch 太大", width=16) == "显存不足：batch\n太大"
    assert text.wrapped("显存不足：batch 太大", width=15) == "显存不足：batch\n太大"
    assert text.wrapped("显存不足：batch 太大", width=14) == "显存不足：\nbatch 太大"


def test_first_and_rest_begin_the_lines_of_chinese_too() -> None:
    shown = text.wrapped("显存不足", width=8, first="- ", rest="  ")
    assert shown == "- 显存不\n  足"


@given(st.text("显存不足CUDA 12，。：）", min_size=1, max_size=60), st.integers(16, 40))
def test_no_line_of_chinese_is_too_wide_and_nothing_is_lost(words: str, width: int) -> None:
    longest = max(map(text.shown_width, words.split()), default=0)
    lines = text.wrapped(words, width=width).splitlines()
    assert "".join("".join(lines).split()) == "".join(words.split())
    if not any(stop in words for stop in STOPS) and longest <= width:
        assert all(text.shown_width(line) <= width for line in lines)


@pytest.mark.parametrize("width", range(24, 80))
def test_no_line_begins_with_a_stop(width: int) -> None:
    lines = text.wrapped(CHINESE, width=width).splitlines()
    assert [line for line in lines[1:] if line[0] in STOPS] == []
    assert max(map(text.shown_width, lines)) <= width


def test_two_stops_stay_with_what_they_end() -> None:
    # Where a line is full after "CUDA", its bracket and stop take it along to the next one.
    for width in range(12, 24):
        lines = text.wrapped("看不到显卡（未装驱动和 CUDA）。请安装", width=width).splitlines()
        assert not any(line[0] in STOPS or line[-1] == "（" for line in lines)


def test_colour_codes_survive_the_wrapping_of_chinese() -> None:
    red = text.paint("错误", "red", colour=True)
    assert text.wrapped(f"{red} 显存不足", width=40) == f"{red} 显存不足"


def test_text_stands_beside_its_label_which_alone_is_painted() -> None:
    told = text.block("proof", "it is faster", 20, style="green", colour=True)
    assert told == f"  {text.paint('proof', 'green', colour=True)}     it is\n{' ' * 12}faster"
    assert (
        text.block("", "it is faster", 80, style="green", colour=True) == " " * 12 + "it is faster"
    )
