"""One line of a block as a person would read it, made no sooner than a rule asks for it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tfdyno.rules.log.text import SAME_LINE, paragraph, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOSE = b"\0\r\t >#"
"""What a line may lose when it is made readable or glued to its neighbour."""


class View:
    """One line of a block as text, and glued to what a terminal parted from it.

    >>> lines = [b"ImportError: libcublas.so.11: cannot open shared ob", b"> ject file", b"done"]
    >>> view = View(lines, position=0, number=7)
    >>> view.holds("shared object"), view.touches(loose(b"shared object"))
    (False, True)
    >>> view.glued[0][0]
    'ImportError: libcublas.so.11: cannot open shared object file'
    """

    def __init__(self, lines: list[bytes], position: int, number: int) -> None:
        """Take the lines of the block, which of them it is, and its number in the log."""
        self._lines, self._position, self.number = lines, position, number

    @functools.cached_property
    def texts(self) -> list[tuple[str, str]]:
        """Each text with its lower-case form."""
        return [(text, text.lower()) for text in readable(self._lines[self._position])]

    @functools.cached_property
    def glued(self) -> list[tuple[str, str]]:
        """As ``texts``; empty where the line looks whole."""
        return [(text, text.lower()) for text in paragraph(self._lines, self._position)]

    def holds(self, needle: str) -> bool:
        """Return whether the needle stands in the line itself."""
        if self._raw:  # most lines are decided here
            return needle.encode() in self._raw
        return any(needle in lowered for _, lowered in self.texts)

    def touches(self, needle: bytes) -> bool:
        """Return whether the ``loose`` needle stands in the line or across one of its ends."""
        before, own, after = (self._loose(self._position + step) for step in (-1, 0, 1))
        reach = len(needle) - 1
        return needle in before[max(0, len(before) - reach) :] + own + after[:reach]

    @functools.cached_property
    def _raw(self) -> bytes:
        """The line in lower case; empty where bytes and text differ."""
        line = self._lines[self._position]
        return b"" if b"\\" in line or 0 in line else line.lower()

    def _loose(self, position: int) -> bytes:
        return loose(self._lines[position]) if 0 <= position < len(self._lines) else b""


class Views(dict[int, View]):
    """Lines of a block by position, each made when first asked for."""

    def __init__(self, lines: list[bytes], numbers: Sequence[int]) -> None:
        """Take the lines of the block and their numbers in the log."""
        super().__init__()
        self._lines, self._numbers = lines, numbers

    def __missing__(self, position: int) -> View:
        """Make it."""
        self[position] = view = View(self._lines, position, self._numbers[position])
        return view


def loose(text: bytes) -> bytes:
    """Return the text in lower case without what gluing may take away or add."""
    return text.lower().translate(None, _LOOSE)


def line_numbers(lines: list[bytes], before: int, has_parts: bool) -> Sequence[int]:
    """Return the number in the log of each line of a block.

    Args:
        lines: Of the block.
        before: Lines of the log before it.
        has_parts: Whether some begin with ``SAME_LINE`` and so have the number of the one before.
    """
    if not has_parts:
        return range(before + 1, before + 1 + len(lines))
    numbers, number = [], before
    for line in lines:
        number += not line.startswith(SAME_LINE)
        numbers.append(max(1, number))
    return numbers
