"""A line as text: what may be glued to it, and quick answers on what it can hold."""

from __future__ import annotations

from tfdyno.rules.log.text import SAME_LINE
from tfdyno.rules.log.view import View, Views, line_numbers, loose

FIRST = b"ImportError: libcublas.so.11: cannot open shared ob"
LINES = [FIRST, b"> ject file: No such file or directory", b"done"]


def test_a_needle_across_a_line_end_touches_both_lines_and_no_third() -> None:
    views = [View(LINES, position, position + 1) for position in range(3)]
    needle = loose(b"shared object file")
    assert [view.touches(needle) for view in views] == [True, True, False]
    assert [view.holds("shared object file") for view in views] == [False, False, False]


def test_a_needle_in_the_next_line_alone_does_not_touch() -> None:
    assert not View(LINES, 1, 2).touches(b"done")
    assert not View([b"done", b"x"], 1, 2).touches(b"done")


def test_a_needle_may_stand_in_what_json_escaped() -> None:
    line = rb'{"log": "two\nlines \"quoted\" here"}'
    assert View([line], 0, 1).holds('"quoted" here')
    assert not View([line], 0, 1).holds("two lines")


def test_parts_of_a_line_have_its_number() -> None:
    lines = [b"one", SAME_LINE + b"still one", b"two"]
    assert list(line_numbers(lines, 10, has_parts=True)) == [11, 11, 12]
    assert list(line_numbers(lines, 10, has_parts=False)) == [11, 12, 13]


def test_a_view_is_made_once() -> None:
    views = Views([b"a", b"b"], [5, 6])
    assert views[1] is views[1]
    assert views[1].number == 6
