"""One rule's needle and expression, and the lines it keeps."""

from __future__ import annotations

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.rules.log.slot import LONGEST_TEXT, MOST_WINDOWS, REACH, Slot, windows
from tfdyno.rules.log.view import View

LINES = [
    b"2024-05-05 10:33:01: W tsl/dso_loader.cc:64] Could not lo",
    b"ad dynamic library 'libcudnn.so.8'; dlerror: no such file",
    b"Epoch 1",
]


def slot(needle: str, match: str = "", cap: int = 2) -> Slot:
    return Slot(needle=needle, match=match, cap=cap, counted=True)


def test_a_line_is_whole_or_glued_or_nothing() -> None:
    first, second = View(LINES, 0, 1), View(LINES, 1, 2)
    assert slot("dlerror", r"libcublas").take(second) == ""
    assert slot("libcudnn", r"libcudnn\.so\.(?P<n>\d)").take(second) == "whole"
    wrapped = slot("could not load", r"load .*'libcudnn\.so\.(?P<n>\d)")
    assert wrapped.take(first) == "glued"
    assert wrapped.lines[0].values == {"n": "8"}
    assert wrapped.take(second) == ""  # the same message, told already


def test_lines_beyond_the_cap_are_counted() -> None:
    one = slot("epoch", r"epoch (?P<n>\d+)", cap=2)
    for number in range(1, 6):
        one.take(View([f"Epoch {number}".encode()], 0, number))
    assert [line.values["n"] for line in one.lines] == ["1", "2"]
    assert (one.count, one.is_full, one.is_done) == (5, True, False)


def test_of_a_very_long_line_the_places_of_the_needle_are_looked_at() -> None:
    text = "x" * 5000 + "needle" + "y" * 5000
    (window,) = windows(text, text, "needle")
    assert len(window) == 2 * REACH + len("needle")
    assert len(windows("needle " * 9000, "needle " * 9000, "needle")) == MOST_WINDOWS


def test_a_kept_text_is_short_and_holds_the_needle() -> None:
    one = slot("needle")
    one.take(View([b"x " * 3000 + b"needle" + b" y" * 3000], 0, 1))
    assert "needle" in one.lines[0].text
    assert len(one.lines[0].text) == LONGEST_TEXT + len("……")


def test_a_rule_that_is_no_expression_is_named() -> None:
    with pytest.raises(ToolError, match=r"'\(' is no regular expression"):
        slot("x", "(").take(View([b"x"], 0, 1))
