"""Columns that text takes, and lines of Chinese: its characters are wide and need no blanks."""

from __future__ import annotations

import re
import unicodedata

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PIECES = r"（*(?:[\x1b\x21-\x7eµ–−×]+|[^\x00-\x7f])[，。；：、！？）]*|\s+"
"""What a line of Chinese may be broken between: no stop first, no opening bracket last; units and
ranges stay whole."""


def shown_width(text: str) -> int:
    """Return columns that text takes on screen: no colour codes, Chinese characters count twice."""
    plain = _ANSI.sub("", text)
    if plain.isascii():
        return len(plain)
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in plain)


def wide_lines(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Fill text without blanks between words: a line may end after every wide character.

    Args:
        text: A paragraph.
        width: Columns of a line.
        first: Begins the first line.
        rest: Begins the others.
    """
    lines, line = [], first
    for piece in re.findall(_PIECES, " ".join(text.split())):
        if shown_width(line + piece.rstrip()) > width and line.strip():
            lines.append(line.rstrip())
            line = rest
            piece = piece.lstrip()  # noqa: PLW2901  (the blank belongs to the broken line)
        line += piece
    return [*lines, line.rstrip()]
