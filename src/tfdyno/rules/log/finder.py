"""Find hundreds of texts in one pass over a long one."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

START_LETTERS = 6
"""So many letters of each text are looked for; the rest is compared where they stand."""


class Finder:
    """Texts by their first letters, which one regular expression looks for as a tree.

    A search for each text would go through a log hundreds of times.
    """

    def __init__(self, texts: Iterable[bytes]) -> None:
        """Take the texts, none of them empty."""
        ordered = sorted(set(texts))
        starts = _without_longer({text[:START_LETTERS] for text in ordered})
        self._by_start: dict[bytes, list[bytes]] = {start: [] for start in starts}
        for text in ordered:
            start = next(text[:n] for n in range(1, len(text) + 1) if text[:n] in starts)
            self._by_start[start].append(text)

    @functools.cached_property
    def _search(self) -> Callable[[bytes, int], re.Match[bytes] | None]:
        starts = sorted(self._by_start)
        return re.compile(_tree(starts) if starts else b"(?!)").search

    def find(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Every place where one of the texts stands, and which."""
        found = self._search(text, 0)
        while found:
            at = found.start()
            for one in self._by_start[found[0]]:
                if text.startswith(one, at):
                    yield at, one
            found = self._search(text, at + 1)

    def forget(self, text: bytes) -> None:
        """Find this text no more."""
        for held in self._by_start.values():
            if text in held:
                held.remove(text)


def places(
    finder: Finder, lines: Sequence[bytes], wanted: Collection[int]
) -> Iterator[tuple[int, int, bytes]]:
    """Where texts stand in the wanted lines, or across the ends of these.

    Neighbouring lines stand side by side without a gap: a terminal may have parted them.

    Yields:
        Index of the line where the text begins and where it ends, and the text.
    """
    if 2 * len(wanted) > len(lines):
        indices: Sequence[int] = range(len(lines))
    else:
        near = {index + step for index in wanted for step in (-1, 0, 1)}
        indices = sorted(near & set(range(len(lines))))
    parts = [
        lines[index] if index == before + 1 else b"\n" + lines[index]
        for before, index in zip((-1, *indices), indices, strict=False)
    ]
    starts = [0, *accumulate(map(len, parts))]
    for at, text in finder.find(b"".join(parts)):
        first = bisect_right(starts, at) - 1
        last = first
        if at + len(text) > starts[first + 1]:
            last = bisect_right(starts, at + len(text) - 1) - 1
        yield indices[first], indices[last], text


def _without_longer(starts: set[bytes]) -> set[bytes]:
    """Those that begin with no other one: where that stands, the longer ones may."""
    return {one for one in starts if not any(one[:n] in starts for n in range(1, len(one)))}


def _tree(words: list[bytes]) -> bytes:
    """A regular expression for these sorted words, none the beginning of another."""
    if len(words) == 1:
        return re.escape(words[0])
    branches = []
    for first, group in groupby(words, key=lambda word: word[:1]):
        branches.append(re.escape(first) + _tree([word[1:] for word in group]))
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"
