r"""Look through a log block by block for many needles at once; keep some lines, count the rest.

A long log says the same few things over and over. A line's *template* is what is left of it without
digits, spaces and quotes, so that a log of a million lines has a few hundred templates::

    2026-11-27 10:00:01 step 7 loss: 0.31   ->   --::steploss:.     searched; may hold "loss"
    2026-11-27 10:00:02 step 8 loss: 0.30   ->   --::steploss:.     known

Each template is searched once, for all needles in one pass (Aho-Corasick). A line whose template
holds a needle is read: made text, and given to the slots of that needle. Once ``ENOUGH_LOOKS``
lines of a kind of templates were read, further ones are only counted, for the slots that such lines
ever filled. A needle whose letters JSON escaped (``\u663e``) is not found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from ahocorasick_rs import BytesAhoCorasick

from tfdyno.rules.log.slot import Slot
from tfdyno.rules.log.text import SAME_LINE
from tfdyno.rules.log.view import View, Views, line_numbers, loose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

REMEMBERED_BYTES = 16 << 20
"""Templates are forgotten beyond this, so that a log without repetition stays in bounded memory."""
ENOUGH_LOOKS = 200
"""So many lines of a kind are read before the rest is taken for the same."""

_NOISE = bytes(
    code for code in range(128) if chr(code) in "'\"\\>#\x7f" or (code < 33 and code != 10)
)
"""Also what a terminal or a quoting reply puts in the midst of a message that it wraps."""
_DIGITS = b"0123456789"
_SIGNS = bytes(code for code in range(128) if chr(code) not in "ghijklmnopqrstuvwxyz")
"""Templates that differ in these alone are of one kind: progress bars, hexadecimal numbers."""


def template(text: bytes, noise: bytes = _NOISE + _DIGITS) -> bytes:
    r"""Return what is left of each line without its noise, in lower case.

    >>> template(b"W 10:33:01 Could not load 'libcudnn.so.8'\nEpoch 1/10\n")
    b'w::couldnotloadlibcudnn.so.\nepoch/\n'
    """
    return text.lower().translate(None, noise)


@dataclass(slots=True, eq=False)
class _Needle:
    """A text that rules look for, such as ``could not load``, and the slots that ask for it."""

    text: str
    loose: bytes
    slots: list[Slot] = field(default_factory=list)

    def is_in(self, view: View) -> bool:
        """Return whether it stands in the line, digits and quotes included."""
        return view.holds(self.text) or view.touches(self.loose)


@dataclass(slots=True)
class _Known:
    """What is known of the lines of one kind of templates that may hold needles."""

    needles: frozenset[_Needle]
    looks: int = 0
    """Lines that were read."""
    filled: set[Slot] = field(default_factory=set)
    """Slots that kept or counted one of them."""

    @property
    def is_settled(self) -> bool:
        """Whether further lines are counted without a look."""
        return self.looks >= ENOUGH_LOOKS and all(slot.is_full for slot in self.filled)


class Reader:
    r"""Fills slots from the blocks of a log.

    >>> nan = Slot(needle="loss", match=r"loss: (?P<loss>nan|inf)", cap=20, counted=True)
    >>> reader = Reader([nan])
    >>> reader.read(b"step 1 loss: 0.3\nstep 2 loss: nan\n")
    >>> [(line.number, line.values) for line in nan.lines]
    [(2, {'loss': 'nan'})]
    """

    def __init__(self, slots: Iterable[Slot]) -> None:
        """Take the slots; several may share a needle."""
        needles: dict[str, _Needle] = {}
        for slot in slots:
            one = _Needle(slot.needle, loose(slot.needle.encode()))
            needles.setdefault(slot.needle, one).slots.append(slot)
        # Digits tell lines of one template apart; they stay only where a needle is nothing else.
        has_letters = all(template(text.encode()) for text in needles)
        self._noise = _NOISE + _DIGITS if has_letters else _NOISE
        by_template: dict[bytes, list[_Needle]] = defaultdict(list)
        for text, needle in needles.items():
            by_template[template(text.encode(), self._noise)].append(needle)
        self._needles = list(by_template.values())
        self._automaton = BytesAhoCorasick(list(by_template))
        self._known: dict[bytes, _Known | None] = {}
        self._kinds: dict[tuple[bytes, frozenset[_Needle]], _Known] = {}
        self._held_bytes = 0
        self.line_count = self.byte_count = 0

    def read(self, block: bytes) -> None:
        """Take in the next block of whole lines, as ``text.blocks`` gives it."""
        lines = block.split(b"\n")
        views = Views(lines, line_numbers(lines, self.line_count, SAME_LINE in block))
        templates = template(block, self._noise).split(b"\n")
        across = self._learn(templates)
        for position, one in enumerate(templates):
            known = self._known[one]
            if position in across:
                self._look(views[position], known, across[position])
            elif known and known.is_settled:
                for slot in known.filled:
                    slot.count += 1
                if not known.filled:
                    self._known[one] = None
            elif known:
                self._look(views[position], known, set())
        self.line_count += block.count(b"\n") - block.count(b"\n" + SAME_LINE)
        self.line_count += not block.endswith(b"\n")
        self.byte_count += len(block)

    def _learn(self, templates: Sequence[bytes]) -> dict[int, set[_Needle]]:
        """Search those that are not known; return needles that a line's end parts, by line.

        Between two lines of known templates none is looked for: a wrapped message that comes again
        is found once and not counted.
        """
        if self._held_bytes > REMEMBERED_BYTES:
            self._known.clear()
            self._kinds.clear()
            self._held_bytes = 0
        fresh = set(templates) - self._known.keys()
        if not fresh:
            return {}
        self._held_bytes += sum(len(one) + 60 for one in fresh)
        inside: dict[bytes, set[_Needle]] = defaultdict(set)
        across: dict[int, set[_Needle]] = defaultdict(set)
        wanted = [line for line, one in enumerate(templates) if one in fresh]
        for first, last, needles in self._places(templates, wanted):
            if first == last:
                inside[templates[first]].update(needles)
            else:
                across[first].update(needles)
        self._known.update(dict.fromkeys(fresh))
        for one in fresh & inside.keys():
            kind = one.translate(None, _SIGNS), frozenset(inside[one])
            self._known[one] = self._kinds.setdefault(kind, _Known(kind[1]))
        return across

    def _places(
        self, templates: Sequence[bytes], wanted: Iterable[int]
    ) -> Iterator[tuple[int, int, list[_Needle]]]:
        """Where needles stand in the wanted lines, or across their ends: first and last line.

        Neighbours stand side by side without a gap, for a terminal may have parted them.
        """
        near = {line + step for line in wanted for step in (-1, 0, 1)}
        parts = [one if line in near else b"\n" for line, one in enumerate(templates)]
        ends = list(accumulate(map(len, parts)))
        found = self._automaton.find_matches_as_indexes(b"".join(parts), overlapping=True)
        for number, start, end in found:
            yield bisect_right(ends, start), bisect_left(ends, end), self._needles[number]

    @staticmethod
    def _look(view: View, known: _Known | None, parted: set[_Needle]) -> None:
        """Give the line to the slots of the needles that it holds, or that go on in the next."""
        needles = parted | {one for one in (known.needles if known else ()) if one.is_in(view)}
        slots = {slot for one in needles for slot in one.slots if not slot.is_done}
        kinds = {slot: slot.take(view) for slot in slots}
        if known and "glued" not in kinds.values():  # glued: other lines of it may be whole
            known.looks += 1
            known.filled.update(slot for slot, kind in kinds.items() if kind)
