"""Look through a log block by block for many texts at once; keep some lines, count the rest."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from tfdyno.rules.log.index import Candidates, ShapeIndex, indices, shape
from tfdyno.rules.log.text import SAME_LINE
from tfdyno.rules.log.unlike import UnlikeLines
from tfdyno.rules.log.view import View, Views, line_numbers, loose

if TYPE_CHECKING:
    from tfdyno.rules.log.slot import Slot


class _Look(NamedTuple):
    """A line that may hold a needle."""

    position: int
    needle: int
    crosses: bool
    """Whether it may go on in the next line."""
    shape: bytes
    """Of the line, where ``learner`` learns from the look."""
    learner: ShapeIndex | None


class Reader:
    """The slots by needle, filled block by block."""

    def __init__(self, slots: list[Slot]) -> None:
        by_needle: dict[str, list[int]] = defaultdict(list)
        for number, slot in enumerate(slots):
            by_needle[slot.needle].append(number)
        self._slots = slots
        self._needles = list(by_needle)
        self._loose_needles = [loose(needle.encode()) for needle in by_needle]
        self._by_needle = list(by_needle.values())
        self._indices = indices(self._needles)
        self._unlike = UnlikeLines(self._needles)
        self._closed = set[int]()
        self.line_count = self.byte_count = self.nul_count = 0

    def read(self, block: bytes) -> None:
        """Take in the next block of whole lines, as ``log_text.blocks`` gives it."""
        lines = block.split(b"\n")
        views = Views(lines, line_numbers(lines, self.line_count, SAME_LINE in block))
        shapes = [shape(block, index.letters).split(b"\n") for index in self._indices]
        looks = self._looks_at_unlike(shapes)
        for index, of_lines in zip(self._indices, shapes, strict=True):
            found = index.candidates(of_lines, block)
            for slot, count in found.counts.items():
                self._slots[slot].count += count
            looks += _looks(index, found)
        looks.sort(key=itemgetter(0))  # the first lines of a log are kept, whoever finds them
        self._take(looks, views)
        self.line_count += block.count(b"\n") - block.count(b"\n" + SAME_LINE)
        self.line_count += not block.endswith(b"\n")
        self.byte_count += len(block)
        self.nul_count += block.count(0)

    def _looks_at_unlike(self, shapes: list[list[bytes]]) -> list[_Look]:
        """What is worth a look in lines that are like no other; leaves their shapes empty."""
        coarse, fine = shapes
        new = self._unlike.first_met(self._indices[0].fresh(coarse), len(coarse))
        positions = [position for position, one in enumerate(coarse) if one in new]
        inside, across = self._unlike.needles(fine, positions)
        for position in positions:
            coarse[position] = fine[position] = b""
        return [
            _Look(position, needle, needle in across.get(position, ()), b"", None)
            for position in inside.keys() | across.keys()
            for needle in inside.get(position, set()) | across.get(position, set())
        ]

    def _take(self, looks: list[_Look], views: Views) -> None:
        settled: dict[tuple[bytes, int], list[int]] = {}
        for position, needle, crosses, one, learner in looks:
            if needle in self._closed:
                continue
            if (one, needle) in settled:
                for number in settled[one, needle]:
                    self._slots[number].count += 1
                continue
            hits = self._hits(views[position], needle, crosses)
            if learner is None:
                if hits and all(self._slots[n].is_done for n in self._by_needle[needle]):
                    self._close(needle)
                continue
            counters = self._settle(learner, one, needle, hits)
            if counters is not None:
                settled[one, needle] = counters

    def _hits(self, view: View, needle: int, crosses: bool) -> dict[int, bool]:
        """Fill the slots of the needle; returns those that the line filled, and if glued."""
        if not (
            crosses
            or view.holds(self._needles[needle])
            or view.touches(self._loose_needles[needle])
        ):
            return {}
        kept = {number: self._slots[number].take(view) for number in self._by_needle[needle]}
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


def _looks(index: ShapeIndex, found: Candidates) -> list[_Look]:
    return [
        _Look(position, needle, needle in found.across.get(position, ()), one, index)
        for position, one, needles in found.lines
        for needle in needles
    ]
