"""Terminal primitives: aligned tables, key-value blocks, wrapped sentences, colour where wanted."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 80
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PROFILE = re.compile(r" (\d+g\.\d+gb\S*)$")
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
Align = Literal["<", ">"]


def colour_wanted(stream: TextIO | None = None) -> bool:
    """Whether to colour: a terminal that is not dumb; NO_COLOR and FORCE_COLOR decide first."""
    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, style: str, *, colour: bool) -> str:
    """Wrap text in a style: bold, dim, red, green, yellow, cyan; unchanged without colour."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if colour and text else text


def terminal_width() -> int:
    """Columns to fill: the terminal's, 80 at least where it is unknown, 120 at most."""
    return min(120, max(40, shutil.get_terminal_size((WIDTH, 24)).columns))


def shown_width(text: str) -> int:
    """Columns that text takes on screen, colour codes not counted."""
    return len(_ANSI.sub("", text))


def shorten(text: str, width: int) -> str:
    """Cut plain text to ``width`` columns with an ellipsis.

    A MIG profile at the end (``3g.40gb``) stays where there is room: it tells slices apart.
    """
    if len(text) <= width:
        return text
    profile = _PROFILE.search(text)
    kept = f" {profile[1]}" if profile and len(profile[1]) + 4 <= width else ""
    return f"{text[: max(0, width - 1 - len(kept))].rstrip()}…{kept}"


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    align: str = "",
    width: int = WIDTH,
    elastic: int | None = None,
    colour: bool = False,
) -> str:
    """Aligned columns, two blanks apart, header dimmed, no line longer than ``width`` if it can be.

    Args:
        headers: One per column.
        rows: Cells as text; a cell may hold colour codes.
        align: ``<`` or ``>`` per column; missing ones are left-aligned.
        width: Columns of the screen.
        elastic: The column that is cut with an ellipsis when the table is too wide.
        colour: Whether to dim the header.
    """
    sides: list[Align] = [">" if mark == ">" else "<" for mark in align.ljust(len(headers), "<")]
    widths = [
        max(shown_width(line[column]) for line in (headers, *rows))
        for column in range(len(headers))
    ]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    if elastic is not None and excess > 0:
        widths[elastic] = max(shown_width(headers[elastic]), widths[elastic] - excess, 8)
        rows = [
            [shorten(cell, widths[elastic]) if i == elastic else cell for i, cell in enumerate(row)]
            for row in rows
        ]
    lines = [paint(_line(headers, widths, sides), "dim", colour=colour)]
    return "\n".join([*lines, *(_line(row, widths, sides) for row in rows)])


def pairs(entries: Sequence[tuple[str, str]], *, width: int = WIDTH, indent: int = 2) -> str:
    """``name  value`` lines with values aligned and wrapped; entries without value are left out."""
    entries = [(name, value) for name, value in entries if value]
    column = indent + max((len(name) for name, _ in entries), default=0) + 2
    lines = []
    for name, value in entries:
        head = f"{' ' * indent}{name}".ljust(column)
        lines.append(wrapped(value, width=width, first=head, rest=" " * column))
    return "\n".join(lines)


def wrapped(text: str, *, width: int = WIDTH, first: str = "", rest: str = "") -> str:
    """A paragraph filled to ``width``; ``first`` and ``rest`` begin its lines."""
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _line(cells: Sequence[str], widths: Sequence[int], sides: Sequence[Align]) -> str:
    padded = []
    for cell, width, side in zip(cells, widths, sides, strict=True):
        blanks = " " * max(0, width - shown_width(cell))
        padded.append(blanks + cell if side == ">" else cell + blanks)
    return "  ".join(padded).rstrip()
