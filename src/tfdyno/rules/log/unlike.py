"""Lines of a log that are like no other: every needle is looked for in them, but nothing learnt.

What ``log_index`` learns of a line's shape pays where the shape comes again. Where a good part of a
block is new, as in a dump of texts or keys, its lines are taken as they are; shapes that come a
second time are learnt then.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tfdyno.rules.log.finder import Finder, places
from tfdyno.rules.log.index import FINE, REMEMBERED_BYTES, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MANY = 0.2
"""Share of a block's lines: with fewer new ones, all are learnt at once."""


class UnlikeLines:
    """Which needles stand in lines that are met for the first time."""

    def __init__(self, needles: Sequence[str]) -> None:
        """Take the needles, lower-case, which are numbered by their position."""
        self._by_shape: dict[bytes, list[int]] = defaultdict(list)
        for number, needle in enumerate(needles):
            self._by_shape[shape(needle.encode(), FINE)].append(number)
        self._by_shape.pop(b"", None)  # an index finds these in any line
        self._finder = Finder(self._by_shape)
        self._met: set[bytes] = set()
        self._held_bytes = 0

    def first_met(self, fresh: set[bytes], line_count: int) -> set[bytes]:
        """Of shapes that no index knows, those whose lines are to be taken as they are."""
        new = fresh - self._met if len(fresh) > _MANY * line_count else set[bytes]()
        if len(new) <= _MANY * line_count:
            return set()
        if self._held_bytes > REMEMBERED_BYTES:
            self._met.clear()
            self._held_bytes = 0
        self._met |= new
        self._held_bytes += sum(map(len, new)) + 60 * len(new)
        return new

    def needles(
        self, shapes: Sequence[bytes], lines: Iterable[int]
    ) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        """Needles by the line that may hold them, and by the line after which they go on.

        Args:
            shapes: Fine shapes of all lines of a block.
            lines: Those to be looked through.
        """
        wanted = set(lines)
        inside: dict[int, set[int]] = defaultdict(set)
        across: dict[int, set[int]] = defaultdict(set)
        for first, last, needle in places(self._finder, shapes, wanted):
            if first != last:
                across[first].update(self._by_shape[needle])
            elif first in wanted:
                inside[first].update(self._by_shape[needle])
        return inside, across

    def close(self, needle: int) -> None:
        """No line is to be read for this needle any more."""
        for key, numbers in [*self._by_shape.items()]:
            if needle in numbers:
                numbers.remove(needle)
                if not numbers:
                    del self._by_shape[key]
                    self._finder.forget(key)
