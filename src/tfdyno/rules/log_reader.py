"""Look through a log block by block for many texts at once; keep some lines, count the rest."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tfdyno.core.errors import ToolError
from tfdyno.rules.log_index import Candidates, ShapeIndex, indices, shape
from tfdyno.rules.log_literals import needed_words
from tfdyno.rules.log_text import SAME_LINE, paragraph, readable
from tfdyno.rules.log_unlike import UnlikeLines

LONGEST_TEXT = 400
"""Characters of a line that are kept as evidence."""
REACH = 1000
"""Characters before and behind a needle that an expression may look at in a very long line."""
MOST_WINDOWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the log with what was read off it."""

    number: int
    """From 1."""
    text: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Slot:
    """What is looked for by one needle and one expression, and what was found."""

    needle: str
    match: str
    cap: int
    counted: bool = False
    lines: list[Line] = field(default_factory=list)
    count: int = 0
    last: int = -9
    """Number of the last line found."""
    expression: re.Pattern[str] | None = None
    words: frozenset[str] = frozenset()
    """One of these stands in what matches, if there are any."""

    @property
    def is_full(self) -> bool:
        """Whether lines are only counted from now on."""
        return len(self.lines) >= self.cap

    @property
    def is_done(self) -> bool:
        """Whether nothing that follows changes it."""
        return self.is_full and not self.counted

    def look(self, text: str, lowered: str) -> Mapping[str, str] | None:
        """Values where the text has the needle and matches; None where not."""
        if self.needle not in lowered:
            return None
        if not self.match:
            return {}
        if self.expression is None:  # compiled when first needed: there are hundreds
            self.expression = _compiled(self.match)
            self.words = needed_words(self.match, self.needle)
        if self.words and not any(word in lowered for word in self.words):
            return None
        places = windows(text, lowered, self.needle)
        found = next(filter(None, map(self.expression.search, places)), None)
        if found is None:
            return None
        return {name: value.strip() for name, value in found.groupdict().items() if value}


def windows(text: str, lowered: str, needle: str) -> tuple[str, ...]:
    """The text; of a very long one, what stands around the first places of the needle.

    An expression may take the square of a line's length, and a damaged log is one long line.
    """
    if len(text) <= 2 * REACH:
        return (text,)
    at = lowered.find(needle)
    found: list[str] = []
    while at >= 0 and len(found) < MOST_WINDOWS:
        found.append(text[max(0, at - REACH) : at + len(needle) + REACH])
        at = lowered.find(needle, at + len(needle) + REACH)
    return tuple(found)


class _View:
    """One line of a block as text, and glued to what a terminal parted from it; made when asked."""

    def __init__(self, lines: list[bytes], position: int, number: int) -> None:
        self._lines, self._position, self.number = lines, position, number

    @functools.cached_property
    def texts(self) -> list[tuple[str, str]]:
        """Each text with its lower-case form."""
        return [(text, text.lower()) for text in readable(self._lines[self._position])]

    @functools.cached_property
    def glued(self) -> list[tuple[str, str]]:
        """As ``texts``; empty where the line looks whole."""
        return [(text, text.lower()) for text in paragraph(self._lines, self._position)]

    @functools.cached_property
    def _raw(self) -> bytes:
        line = self._lines[self._position]
        return b"" if b"\\" in line or 0 in line else line.lower()

    def holds(self, needle: str) -> bool:
        """Whether the needle stands in the line itself."""
        if self._raw and needle.encode() not in self._raw:  # most lines are dismissed here
            return False
        return any(needle in lowered for _, lowered in self.texts)


class _Views(dict[int, _View]):
    """Lines of a block by position, each made when first asked for."""

    def __init__(self, lines: list[bytes], numbers: Sequence[int]) -> None:
        super().__init__()
        self._lines, self._numbers = lines, numbers

    def __missing__(self, position: int) -> _View:
        self[position] = view = _View(self._lines, position, self._numbers[position])
        return view


class Reader:
    """The slots by needle, filled block by block."""

    def __init__(self, slots: list[Slot]) -> None:
        by_needle: dict[str, list[int]] = defaultdict(list)
        for number, slot in enumerate(slots):
            by_needle[slot.needle].append(number)
        self._slots = slots
        self._needles = list(by_needle)
        self._by_needle = list(by_needle.values())
        self._indices = indices(self._needles)
        self._unlike = UnlikeLines(self._needles)
        self._closed = set[int]()
        self.line_count = self.byte_count = self.nul_count = 0

    def read(self, block: bytes) -> None:
        """Take in the next block of whole lines, as ``log_text.blocks`` gives it."""
        lines = block.split(b"\n")
        numbers = _numbers(lines, self.line_count, SAME_LINE in block)
        views = _Views(lines, numbers)
        shapes = [shape(block, index.letters).split(b"\n") for index in self._indices]
        self._read_unlike(shapes, views)
        for index, of_lines in zip(self._indices, shapes, strict=True):
            found = index.candidates(of_lines, block)
            for slot, count in found.counts.items():
                self._slots[slot].count += count
            if found.lines:
                self._look_at(index, found, views)
        self.line_count += block.count(b"\n") - block.count(b"\n" + SAME_LINE)
        self.line_count += not block.endswith(b"\n")
        self.byte_count += len(block)
        self.nul_count += block.count(0)

    def _read_unlike(self, shapes: list[list[bytes]], views: _Views) -> None:
        """Look at the lines that are like no other; leaves their shapes empty."""
        coarse, fine = shapes
        new = self._unlike.first_met(self._indices[0].fresh(coarse), len(coarse))
        if not new:
            return
        positions = [position for position, one in enumerate(coarse) if one in new]
        inside, across = self._unlike.needles(fine, positions)
        for position in sorted(inside.keys() | across.keys()):
            crossing = across.get(position, set[int]())
            for needle in inside.get(position, set()) | crossing:
                self._hits(views[position], needle, needle in crossing)
                if all(self._slots[number].is_done for number in self._by_needle[needle]):
                    self._close(needle)
        for position in positions:
            coarse[position] = fine[position] = b""

    def _look_at(self, index: ShapeIndex, found: Candidates, views: _Views) -> None:
        settled: dict[tuple[bytes, int], list[int]] = {}
        for position, one, needles in found.lines:
            crossing = found.across.get(position, ())
            for needle in needles:
                if (one, needle) not in settled:
                    hits = self._hits(views[position], needle, needle in crossing)
                    counters = self._settle(index, one, needle, hits)
                    if counters is not None:
                        settled[one, needle] = counters
                    continue
                for number in settled[one, needle]:
                    self._slots[number].count += 1

    def _hits(self, view: _View, needle: int, crosses: bool) -> dict[int, bool]:
        """Fill the slots of the needle; returns those that the line filled, and if glued."""
        if not (crosses or view.holds(self._needles[needle])):
            return {}
        kept = {number: _keep(self._slots[number], view) for number in self._by_needle[needle]}
        return {number: kind == "glued" for number, kind in kept.items() if kind}

    def _settle(
        self, index: ShapeIndex, one: bytes, needle: int, hits: dict[int, bool]
    ) -> list[int] | None:
        """Once lines of this shape need no look for the needle, whom they count."""
        if any(hits.values()):
            return None
        numbers = self._by_needle[needle]
        is_enough, ever = index.looked(one, needle, hits)
        is_full = all(self._slots[number].is_full for number in numbers)
        if not (is_full or is_enough) or not all(self._slots[n].is_full for n in ever):
            return None
        counters = [number for number in ever if self._slots[number].counted]
        if is_full and not any(self._slots[number].counted for number in numbers):
            self._close(needle)
        elif is_enough or hits:
            index.settle(one, needle, counters)
        else:
            return None
        return counters

    def _close(self, needle: int) -> None:
        if needle in self._closed:
            return
        self._closed.add(needle)
        for index in self._indices:
            index.close(needle)
        self._unlike.close(needle)


def _keep(slot: Slot, view: _View) -> Literal["", "whole", "glued"]:
    """Keep or count the line where it, or what it was parted from, is what the slot wants."""
    kind: Literal["whole", "glued"] = "whole"
    found = _first_look(slot, view.texts)
    if found is None and slot.last < view.number - 3:
        kind = "glued"
        found = _first_look(slot, view.glued)
    if found is None:
        return ""
    if not slot.is_full:
        text, values = found
        line = Line(number=view.number, text=_shortened(text, slot), values=values)
        slot.lines.append(line)
    slot.count += 1
    slot.last = view.number
    return kind


def _first_look(slot: Slot, texts: list[tuple[str, str]]) -> tuple[str, Mapping[str, str]] | None:
    for text, lowered in texts:
        values = slot.look(text, lowered)
        if values is not None:
            return text, values
    return None


def _shortened(text: str, slot: Slot) -> str:
    """The part of a long line around what was found."""
    text = text.strip()
    if len(text) <= LONGEST_TEXT:
        return text
    at = max(0, text.lower().find(slot.needle) - LONGEST_TEXT // 4)
    return ("…" if at else "") + text[at : at + LONGEST_TEXT] + "…"


def _compiled(match: str) -> re.Pattern[str]:
    try:
        return re.compile(match, re.IGNORECASE)
    except re.error as error:
        raise ToolError(f"the rule '{match}' is no regular expression", why=str(error)) from None


def _numbers(lines: list[bytes], before: int, has_parts: bool) -> range | list[int]:
    if not has_parts:
        return range(before + 1, before + 1 + len(lines))
    numbers, number = [], before
    for line in lines:
        number += not line.startswith(SAME_LINE)
        numbers.append(max(1, number))
    return numbers
