r"""Which lines of a block can hold which needle: found without a look at most lines.

A line's *shape* is what is left of it without ``a``-``f``, digits, spaces and punctuation: time
stamps, addresses, numbers and quotes do not change it, so that a long log has few shapes. Needles
are looked for in shapes that were not met before; only lines with a promising shape are read. Lines
that are like no other do not come here: see ``log_unlike``. A needle whose letters JSON escaped
(``\u663e``) is not found.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.rules.log.finder import Finder, places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COARSE = b"ghijklmnopqrstuvwxyz"
"""Letters of a shape: hexadecimal numbers leave nothing behind."""
FINE = bytes(code for code in range(33, 127) if chr(code) not in "0123456789'\"\\>#")
"""Letters and signs for needles such as ``cudnn`` and ``.so.``, of which a coarse shape leaves
too little; without the signs of a quoted line, which may stand in the midst of a wrapped needle."""
REMEMBERED_BYTES = 16 << 20
"""Shapes are forgotten beyond this, so that a log without repetition stays in bounded memory."""

FEWEST_LETTERS = 4
"""A needle with fewer letters in its coarse shape is looked for in fine shapes."""
_ENOUGH_LOOKS = 200
"""So many lines of a shape are read for a needle before the rest is taken for the same."""

_ENOUGH_BARE_LOOKS = 2000
"""The same for a needle without letters, whatever the shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What is worth a look in one block."""

    lines: list[tuple[int, bytes, tuple[int, ...]]]
    """Index of a line, its shape and the needles that it, with its neighbour, may hold."""
    across: Mapping[int, set[int]]
    """Of these, the needles that may go on in the next line."""
    counts: Counter[int]
    """Lines by the number that ``settle`` was given for their shape."""


def shape(text: bytes, letters: bytes = COARSE) -> bytes:
    """Of the text in lower case these letters, line ends and whatever is not ASCII."""
    return text.translate(_LOWER, _DROPPED[letters])


def _dropped(letters: bytes) -> bytes:
    kept = letters + letters.upper() + b"\n"
    return bytes(code for code in range(128) if code not in kept)


_LOWER = bytes(range(256)).lower()
_DROPPED = {letters: _dropped(letters) for letters in (COARSE, FINE)}


def indices(needles: Sequence[str]) -> tuple[ShapeIndex, ...]:
    """Two indices that share the needles, which are numbered by their position."""
    fine = {
        number: needle
        for number, needle in enumerate(needles)
        if len(shape(needle.encode(), COARSE)) < FEWEST_LETTERS
    }
    coarse = {number: one for number, one in enumerate(needles) if number not in fine}
    return ShapeIndex(coarse, COARSE), ShapeIndex(fine, FINE)


class ShapeIndex:
    """Remembers for each shape which needles it can hold."""

    def __init__(self, needles: Mapping[int, str], letters: bytes) -> None:
        """Take the needles, lower-case, by their numbers."""
        self.letters = letters
        self._by_shape: dict[bytes, list[int]] = defaultdict(list)
        for number, needle in needles.items():
            self._by_shape[shape(needle.encode(), letters)].append(number)
        self._bare = {number: needles[number].encode() for number in self._by_shape.pop(b"", ())}
        self._finder = Finder(self._by_shape)
        self._cold = {b""}
        self._hot: dict[bytes, tuple[int, ...]] = {}
        self._counted: dict[bytes, tuple[int, ...]] = {}
        self._looks: dict[tuple[bytes, int], tuple[int, set[int]]] = {}
        self._held_bytes = 0

    def fresh(self, shapes: Iterable[bytes]) -> set[bytes]:
        """Of these shapes, those that were not met before."""
        return set(shapes) - self._cold - self._hot.keys() - self._counted.keys()

    def candidates(self, shapes: Sequence[bytes], block: bytes) -> Candidates:
        """The lines of a block worth reading, and how many hold needles that are only counted.

        Args:
            shapes: Of each line; empty for a line that is not to be read.
            block: Those lines.
        """
        if self._held_bytes > REMEMBERED_BYTES:
            self._forget()
        fresh = self.fresh(shapes)
        across = self._learn(shapes, fresh) if fresh else {}
        if self._bare:
            self._find_bare(block, across)
        hot, lines = self._hot, list[tuple[int, bytes, tuple[int, ...]]]()
        if across:
            lines = [
                (i, one, tuple({*hot.get(one, ()), *across.get(i, ())}))
                for i, one in enumerate(shapes)
                if one in hot or i in across
            ]
        elif not hot.keys().isdisjoint(shapes):
            lines = [(i, one, hot[one]) for i, one in enumerate(shapes) if one in hot]
        return Candidates(lines=lines, across=across, counts=self._counts(shapes))

    def looked(self, one: bytes, needle: int, hit: Iterable[int]) -> tuple[bool, set[int]]:
        """Note what a look at a line of this shape gave.

        Returns:
            Whether lines of this shape were looked at so often that the rest is taken for the
            same, and all that such lines ever hit.
        """
        if needle in self._bare:
            one = b""
        looks, ever = self._looks.get((one, needle), (0, set()))
        ever.update(hit)
        self._looks[one, needle] = looks + 1, ever
        if needle in self._bare and looks == _ENOUGH_BARE_LOOKS and not ever:
            del self._bare[needle]
        return looks + 1 >= _ENOUGH_LOOKS and bool(one), ever

    def settle(self, one: bytes, needle: int, counters: Iterable[int]) -> None:
        """Lines of this shape need no look for this needle any more: they count for these."""
        if needle in self._hot.get(one, ()):
            self._counted[one] = (*self._counted.get(one, ()), *counters)
            self._drop(one, needle)

    def close(self, needle: int) -> None:
        """No line is to be read for this needle any more."""
        for numbers in self._by_shape.values():
            if needle in numbers:
                numbers.remove(needle)
        for key in [key for key, numbers in self._by_shape.items() if not numbers]:
            del self._by_shape[key]
            self._finder.forget(key)
        self._bare.pop(needle, None)
        for one in [one for one, needles in self._hot.items() if needle in needles]:
            self._drop(one, needle)

    def _drop(self, one: bytes, needle: int) -> None:
        rest = tuple(other for other in self._hot.pop(one) if other != needle)
        if rest:
            self._hot[one] = rest
        elif not self._counted.get(one):
            self._counted.pop(one, None)
            self._cold.add(one)

    def _counts(self, shapes: Sequence[bytes]) -> Counter[int]:
        counts: Counter[int] = Counter()
        if not self._counted.keys().isdisjoint(shapes):
            for one, number in Counter(shapes).items():
                for counter in self._counted.get(one, ()):
                    counts[counter] += number
        return counts

    def _forget(self) -> None:
        for held in (self._cold, self._hot, self._counted, self._looks):
            held.clear()
        self._cold.add(b"")
        self._held_bytes = 0

    def _learn(self, shapes: Sequence[bytes], fresh: set[bytes]) -> dict[int, set[int]]:
        """Sort fresh shapes into hot and cold; returns needles that go across a line's end.

        Between two lines of known shapes none is looked for: a wrapped message that comes again is
        found once and not counted.
        """
        inside: dict[bytes, set[int]] = defaultdict(set)
        across: dict[int, set[int]] = defaultdict(set)
        one_of_each: dict[bytes, int] = {}
        for line, one in enumerate(shapes):
            if one in fresh:
                one_of_each.setdefault(one, line)
        for first, last, needle in places(self._finder, shapes, one_of_each.values()):
            if first == last:
                inside[shapes[first]].update(self._by_shape[needle])
            else:
                across[first].update(self._by_shape[needle])
        for one in fresh:
            self._remember(one, inside.get(one, set()))
        return across

    def _find_bare(self, block: bytes, lines: dict[int, set[int]]) -> None:
        """Add the lines with needles that have no letters: they are looked for as they stand."""
        lowered = block.lower()
        for number, needle in self._bare.items():
            at, line, counted = lowered.find(needle), 0, 0
            while at >= 0:
                line += lowered.count(b"\n", counted, at)
                counted = at
                lines.setdefault(line, set()).add(number)
                end = lowered.find(b"\n", at)
                at = lowered.find(needle, end) if end >= 0 else -1

    def _remember(self, one: bytes, needles: set[int]) -> None:
        self._held_bytes += len(one) + 60
        if needles:
            self._hot[one] = tuple(sorted(needles))
        else:
            self._cold.add(one)
