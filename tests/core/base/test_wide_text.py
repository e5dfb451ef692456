"""Chinese takes two columns a character, and its lines may break between any two."""

from __future__ import annotations

from tfdyno.core.base.wide_text import shown_width, wide_lines


def test_a_wide_character_takes_two_columns_and_a_colour_none() -> None:
    assert (shown_width("abc"), shown_width("批大小"), shown_width("\x1b[1m批\x1b[0m")) == (3, 6, 2)


def test_no_line_is_wider_and_none_begins_with_a_stop() -> None:
    text = "每个设备每步的样本数；0：脚本自带。TensorFlow（按需）占用。"
    for width in range(12, 40):
        lines = wide_lines(text, width, first="# ", rest="  ")
        assert max(map(shown_width, lines)) <= width
        assert "".join(line[2:] for line in lines) == text
        assert not any(line[2:].startswith(("；", "：", "。", "）")) for line in lines)


def test_no_line_ends_within_a_unit_or_a_range() -> None:
    text = "一步为 412 µs，半数在 77.3–82.2 之间"
    for width in range(14, 40):
        said = "".join(f"{line}|" for line in wide_lines(text, width))
        assert "µs" in said
        assert "77.3–82.2" in said
