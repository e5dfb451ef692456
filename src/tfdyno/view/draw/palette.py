"""Colours by meaning: placeholders for drawing, CSS variables for the page, values for both themes.

A figure is drawn once with the placeholders; ``recolour`` puts CSS variables in their place, so
that one SVG serves light, dark and print.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Colour:
    """One CSS variable: its placeholder in drawings and its value in each theme."""

    variable: str
    placeholder: str
    light: str
    dark: str
    print: str


def _colour(index: int, variable: str, light: str, dark: str, print_: str = "") -> Colour:
    placeholder = f"#0a0b{index:02x}"
    return Colour(
        variable=variable,
        placeholder=placeholder,
        light=light,
        dark=dark,
        print=print_ or light,
    )


# c1-c5 were chosen by measurement: under normal, deutan, protan and tritan sight no pair is nearer
# than 18.6 (light) and 22.6 (dark) in CIE76, and each has at least 4.5:1 on its ground.
COLOURS = (
    _colour(1, "bg", "#ffffff", "#11151a"),
    _colour(2, "ink", "#14181d", "#e8edf2", "#000000"),
    _colour(3, "muted", "#56606b", "#a5afbb", "#444b53"),
    _colour(4, "grid", "#e3e7ec", "#2b323b", "#d5dae0"),
    _colour(5, "track", "#edf0f4", "#232a32", "#e8ebef"),
    _colour(6, "tint", "#f1f6fd", "#17202a", "#ffffff"),
    _colour(7, "c1", "#1a5fc9", "#a9d0ff"),
    _colour(8, "c2", "#a8480f", "#e9803f"),
    _colour(9, "c3", "#0a5645", "#5fe3bd"),
    _colour(10, "c4", "#9a2f95", "#c768d8"),
    _colour(11, "c5", "#6b7686", "#7f8a98"),
    _colour(12, "bad", "#b3261e", "#ff8a80"),
)
BY_NAME = {colour.variable: colour for colour in COLOURS}

_PAINT = re.compile(r' (fill|stroke)="(#0a0b[0-9a-f]{2})"')
_VARIABLE = {colour.placeholder: colour.variable for colour in COLOURS}


def paint(variable: str) -> str:
    """Return the placeholder to draw with for a CSS ``variable``; ``KeyError`` if unknown."""
    return BY_NAME[variable].placeholder


def recolour(svg: str) -> str:
    """Replace placeholder paints by CSS variables, in classes of one or two letters.

    ``fill="#0a0b07"`` becomes ``class="f-c1"``; an element with both paints gets both classes.
    """

    def tag(match: re.Match[str]) -> str:
        text = match.group(0)
        names = [
            f"{'f' if kind == 'fill' else 's'}-{_VARIABLE[value]}"
            for kind, value in _PAINT.findall(text)
        ]
        if not names:
            return text
        bare = _PAINT.sub("", text)
        return re.sub(r"^(<\w+)", rf'\1 class="{" ".join(names)}"', bare)

    return re.sub(r"<\w+[^>]*>", tag, svg)


def variables(theme: str) -> str:
    """Write CSS declarations of all colours for ``light``, ``dark`` or ``print``."""
    return "".join(f"--{colour.variable}:{getattr(colour, theme)};" for colour in COLOURS)


def paint_rules() -> str:
    """Return the CSS classes that ``recolour`` refers to."""
    return "".join(
        f".f-{colour.variable}{{fill:var(--{colour.variable})}}"
        f".s-{colour.variable}{{stroke:var(--{colour.variable})}}"
        for colour in COLOURS
    )
