"""A drawing comes out bare: classes for colours, tips for marks, nothing else of the library."""

from __future__ import annotations

import re
import sys

import pytest

from tfdyno.view.draw import svg
from tfdyno.view.draw.palette import paint

BARS: svg.Spec = {
    "width": 100,
    "height": 40,
    "data": {"values": [{"x": 3, "tip": "weights: 3 GiB"}, {"x": 1, "tip": "inputs: 1 GiB"}]},
    "mark": {"type": "bar", "color": paint("c1")},
    "encoding": {
        "x": {"field": "x", "type": "quantitative"},
        "y": {"field": "tip", "type": "nominal", "axis": None},
        "description": {"field": "tip", "type": "nominal"},
    },
}


@pytest.fixture(scope="module")
def drawing() -> str:
    return svg.draw(BARS)


def test_marks_tell_what_they_are(drawing: str) -> None:
    assert sorted(re.findall(r'data-tip="([^"]*)"', drawing)) == [
        "inputs: 1 GiB",
        "weights: 3 GiB",
    ]


def test_colours_are_left_to_the_page(drawing: str) -> None:
    assert "#0a0b" not in drawing
    assert len(re.findall(r"<path[^>]*class=\"[^\"]*c1[^\"]*\"", drawing)) == 2


@pytest.mark.parametrize("word", ["font-family", "aria-", "role=", "xlink", "pointer-events"])
def test_nothing_of_the_library_is_left(drawing: str, word: str) -> None:
    assert word not in drawing


def test_geometry_has_two_decimals(drawing: str) -> None:
    assert not re.search(r' (?:d|transform|x|y|width|height)="[^"]*\.\d{3}', drawing)


def test_invisible_parts_go_and_what_shows_stays() -> None:
    raw = (
        '<svg version="1.1" class="marks"><g><g></g></g><text x="1"/>'
        '<path class="a" d=""/><g aria-label="axis"><rect opacity="1" x="1.23456" y="2"/></g>'
        '<path aria-label="one" opacity="0.5" d="M1.98765,2L3,4"/></svg>'
    )
    assert svg.clean(raw) == (
        '<svg><g><rect x="1.23" y="2"/></g>'
        '<path data-tip="one" opacity="0.5" d="M1.98,2L3,4"/></svg>'
    )


def test_without_the_library_there_is_no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert svg.available()
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # as if it were not installed
    assert not svg.available()
    assert svg.draw(BARS) == ""
