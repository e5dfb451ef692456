"""From a Vega-Lite specification to a bare SVG that the page can colour, or to nothing.

vl-convert is an optional package: without it ``draw`` gives an empty string and the page shows the
tables that stand behind the figures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tfdyno.view.draw.palette import paint, recolour

WIDE_PX = 936
NARROW_PX = 328
FONT_PX = 12
_GEOMETRY = re.compile(r' (?:d|transform|x[12]?|y[12]?|width|height)="[^"]*"')

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Numbers behind a figure: headings, and rows whose first cell names the row."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: frozenset[int] = frozenset((0,))
    """Columns that are words and stand left; all others are numbers and stand right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A word above a figure that names a colour."""

    text: str
    variable: str
    mark: str = "box"
    """``box``: a coloured square; ``band``: a pale one; ``line``: a rule; ``dash``: a broken one;
    ``none``: the words alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One idea as a drawing in two layouts, with the sentence and the numbers that equal it."""

    label: str
    """A full sentence for those who do not see the drawing."""
    wide: str
    narrow: str
    key: tuple[Key, ...] = ()
    table: Table
    caption: str = ""


def framed(
    width_px: float, height_px: float, padding: tuple[float, float, float, float],
    layers: list[Spec],
) -> Spec:  # fmt: skip
    """Return a drawing of layers with the padding left of its data, above, right and below."""
    sides = dict(zip(("left", "top", "right", "bottom"), padding, strict=True))
    return {"width": width_px, "height": height_px, "padding": sides, "layer": layers}


def available() -> bool:
    """Return whether figures can be drawn here."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


def draw(spec: Spec) -> str:
    """Draw ``spec`` and return the SVG with CSS classes for colours; empty without vl-convert."""
    try:
        import vl_convert
    except ImportError:
        return ""
    return clean(vl_convert.vegalite_to_svg(_base() | spec))


def clean(svg: str) -> str:
    """Strip fonts, roles and invisible parts; turn descriptions of marks into ``data-tip``."""
    svg = re.sub(r' (class|font-family|role|aria-roledescription|aria-hidden)="[^"]*"', "", svg)
    svg = re.sub(r' (xmlns:xlink|version|pointer-events|opacity)="(?:[^"]*)"', _keep, svg)
    svg = re.sub(r'<path[^>]* d=""[^>]*/>|<path[^>]*d="M0,0h0v0h0Z"[^>]*/>', "", svg)
    svg = re.sub(r'(<g[^>]*) aria-label="[^"]*"', r"\1", svg)
    svg = svg.replace(' aria-label="', ' data-tip="')
    svg = _GEOMETRY.sub(lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match.group(0)), svg)
    svg = re.sub(r"<text[^>]*/>", "", svg)
    for _ in range(6):  # groups that hold nothing, from the inside out
        svg = re.sub(r"<g[^>]*></g>|<g>\s*</g>", "", svg)
    return recolour(svg)


def _keep(match: re.Match[str]) -> str:
    """Keep an opacity that changes something; drop everything else that was found."""
    text = match.group(0)
    return text if match.group(1) == "opacity" and text != ' opacity="1"' else ""


def _base() -> Spec:
    ink, muted, grid = paint("ink"), paint("muted"), paint("grid")
    axis = {
        "domain": False,
        "ticks": False,
        "grid": True,
        "gridColor": grid,
        "labelColor": muted,
        "labelFontSize": FONT_PX,
        "labelPadding": 8,
        "title": None,
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": None,
        "padding": 0,
        "autosize": {"type": "none"},
        "config": {
            "view": {"stroke": None},
            "axis": axis,
            "text": {"fontSize": FONT_PX, "color": ink, "baseline": "middle", "align": "left"},
            "aria": True,
        },
    }
