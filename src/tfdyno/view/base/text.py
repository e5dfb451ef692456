"""Terminal primitives: aligned tables, key-value blocks, wrapped sentences, colour where wanted."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import textwrap
from typing import TYPE_CHECKING, Literal, TextIO

from tfdyno.core.base.wide_text import shown_width as shown_width
from tfdyno.core.base.wide_text import wide_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 80
COLUMN = 12
"""Where the text behind a label begins."""
_PROFILE = re.compile(r" (\d+g\.\d+gb\S*)$")
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
Align = Literal["<", ">"]


def colour_wanted(stream: TextIO | None = None) -> bool:
    """Return whether to colour: a terminal, not dumb; NO_COLOR and FORCE_COLOR decide first."""
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
    """Return columns to fill: the terminal's, 80 at least where it is unknown, 120 at most."""
    told = os.environ.get("COLUMNS", "")
    columns = int(told) if told.isascii() and told.isdecimal() and len(told) < 9 else 0
    if not columns:  # not by shutil: its import takes longer than this command's answer
        with contextlib.suppress(AttributeError, ValueError, OSError):
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    return min(120, max(40, columns or WIDTH))


def padded(text: str, width: int, side: str = "<") -> str:
    """Fill text with blanks to so many columns; on the left where its ``side`` is ``>``."""
    blanks = " " * max(0, width - shown_width(text))
    return blanks + text if side == ">" else text + blanks


def shorten(text: str, width: int) -> str:
    """Cut plain text to ``width`` columns with an ellipsis.

    A MIG profile at the end (``3g.40gb``) stays where there is room: it tells slices apart.
    """
    if shown_width(text) <= width:
        return text
    profile = _PROFILE.search(text)
    kept = f" {profile[1]}" if profile and len(profile[1]) + 4 <= width else ""
    while shown_width(text) > max(0, width - 1 - len(kept)):
        text = text[:-1]
    return f"{text.rstrip()}…{kept}"


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    align: str = "",
    width: int = WIDTH,
    elastic: int | None = None,
    spare: Sequence[int] = (),
    colour: bool = False,
) -> str:
    """Align columns, two blanks apart, header dimmed, lines within ``width`` if it can be.

    Columns of ``spare`` go, first to last, where the table would otherwise be too wide, or the
    elastic one so narrow that two of its cells would read the same.

    Args:
        headers: One per column.
        rows: Cells as text; a cell may hold colour codes.
        align: ``<`` or ``>`` per column; missing ones are left-aligned.
        width: Columns of the screen.
        elastic: The column that is cut with an ellipsis when the table is too wide.
        spare: Columns that may be left out, the first to go first.
        colour: Whether to dim the header.
    """
    sides: list[Align] = [">" if mark == ">" else "<" for mark in align.ljust(len(headers), "<")]
    widths = [
        max(shown_width(line[column]) for line in (headers, *rows))
        for column in range(len(headers))
    ]
    if elastic is not None:
        least = max(shown_width(headers[elastic]), telling_width([row[elastic] for row in rows]))
        full = widths[elastic]
        widths[elastic] = min(full, least)
    kept = _kept(widths, spare, width)
    if elastic is not None:
        room = width - sum(widths[c] for c in kept if c != elastic) - 2 * (len(kept) - 1)
        widths[elastic] = min(full, max(widths[elastic], room))
        rows = [
            [shorten(cell, widths[elastic]) if i == elastic else cell for i, cell in enumerate(row)]
            for row in rows
        ]
    lines = [
        _line([line[c] for c in kept], [widths[c] for c in kept], [sides[c] for c in kept])
        for line in (headers, *rows)
    ]
    return "\n".join([paint(lines[0], "dim", colour=colour), *lines[1:]])


def telling_width(cells: Sequence[str]) -> int:
    """Return the narrowest column, 8 at least, in which different cells still read differently."""
    different = set(cells)
    full = max(map(shown_width, different), default=0)
    return next(
        (w for w in range(min(8, full), full) if len({shorten(c, w) for c in different})
         == len(different)), full,
    )  # fmt: skip


def _kept(widths: Sequence[int], spare: Sequence[int], width: int) -> list[int]:
    """Return the columns that stay so that a table is no wider than ``width``."""
    kept = list(range(len(widths)))
    for column in spare:
        if sum(widths[c] for c in kept) + 2 * (len(kept) - 1) <= width:
            break
        kept.remove(column)
    return kept


def pairs(entries: Sequence[tuple[str, str]], *, width: int = WIDTH, indent: int = 2) -> str:
    """Write ``name  value`` lines, values aligned and wrapped; empty entries are left out."""
    entries = [(name, value) for name, value in entries if value]
    column = indent + max((shown_width(name) for name, _ in entries), default=0) + 2
    lines = []
    if column > width // 2:  # beside so long a name a value would stand word by word
        return "\n".join(
            f"{' ' * indent}{name}\n"
            + wrapped(value, width=width, first=" " * (indent + 2), rest=" " * (indent + 2))
            for name, value in entries
        )
    for name, value in entries:
        head = padded(f"{' ' * indent}{name}", column)
        lines.append(wrapped(value, width=width, first=head, rest=" " * column))
    return "\n".join(lines)


def wrapped(text: str, *, width: int = WIDTH, first: str = "", rest: str = "") -> str:
    """Return a paragraph filled to ``width``; ``first`` and ``rest`` begin its lines."""
    if shown_width(first + text) > len(first + text):
        return "\n".join(wide_lines(text, width, first, rest))
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def block(label: str, text: str, width: int, *, style: str = "", colour: bool = False) -> str:
    """Return text filled beside a label, which is painted where a style is named."""
    head = padded(f"  {label}", COLUMN)
    filled = wrapped(text, width=width, first=head, rest=" " * COLUMN)
    if not (style and label):
        return filled
    return filled.replace(label, paint(label, style, colour=colour), 1)


def _line(cells: Sequence[str], widths: Sequence[int], sides: Sequence[Align]) -> str:
    return "  ".join(map(padded, cells, widths, sides)).rstrip()
