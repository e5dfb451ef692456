"""The events of one line of an ``xplane.pb``, read all at once into columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.profile import wire
from tfdyno.profile.lines import TEXTS, WANTED, Line

if TYPE_CHECKING:
    from collections.abc import Iterable

_PS_PER_S = 1e12
_LARGEST_TABLE = 1 << 24
_STRING, _BYTES, _REFERENCE = 5, 6, 7
"""Fields of a fact that are texts: the text itself, or the number of a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLine:
    """Where the events of a line are."""

    name: str
    timestamp_ns: int
    begins: wire.Integers
    ends: wire.Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the numbers in the events of a plane stand for."""

    events: dict[int, int]
    """Places among the names of the plane."""
    facts: dict[int, str]
    texts: dict[str, int] = field(default_factory=dict)
    """Values of facts, in the order in which they are met."""


def line_of(view: memoryview, raw: RawLine, names: Names, origin_ns: int) -> Line:
    """Read the events of a line.

    Args:
        view: All bytes.
        raw: Where they are.
        names: Of the plane; texts that are new are added.
        origin_ns: From which times count.

    Raises:
        WireError: An event is none.
    """
    array = np.frombuffer(view, np.uint8)
    count = raw.begins.size
    metadata, offset_ps, duration_ps = (np.zeros(count, np.int64) for _ in range(3))
    numbers = {1: metadata, 2: offset_ps, 3: duration_ps}
    stats: list[tuple[wire.Integers, wire.Integers, wire.Integers]] = []
    for fields in wire.rounds(array, raw.begins, raw.ends):
        for number, column in numbers.items():
            chosen = (fields.number == number) & (fields.wire == wire.VARINT)
            column[fields.message[chosen]] = fields.value[chosen]
        chosen = (fields.number == 4) & (fields.wire == wire.LENGTH)
        stats.append((fields.message[chosen], fields.value[chosen], fields.end[chosen]))
    facts = {}
    if stats:
        owner, begins, ends = (np.concatenate(each) for each in zip(*stats, strict=True))
        facts = _Facts(view, array, begins, ends).columns(owner, count, names)
    start = (raw.timestamp_ns - origin_ns) * 1e-9 + offset_ps / _PS_PER_S
    order = np.argsort(start, kind="stable")
    return Line(
        name=raw.name,
        begin_s=start[order],
        end_s=(start + duration_ps / _PS_PER_S)[order],
        name_index=_looked_up(metadata, names.events)[order],
        facts={name: column[order] for name, column in facts.items()},
    )


class _Facts:
    """All that is said of the events of a line."""

    def __init__(
        self, view: memoryview, array: wire.Bytes, begins: wire.Integers, ends: wire.Integers
    ) -> None:
        self.view = view
        self.name, self.value, self.kind, self.end = (
            np.zeros(begins.size, np.int64) for _ in range(4)
        )
        for fields in wire.rounds(array, begins, ends):
            chosen = (fields.number == 1) & (fields.wire == wire.VARINT)
            self.name[fields.message[chosen]] = fields.value[chosen]
            is_text = (fields.number == _STRING) | (fields.number == _BYTES)
            chosen = (fields.number > 1) & ((fields.wire == wire.LENGTH) == is_text)
            at = fields.message[chosen]
            self.value[at], self.end[at] = fields.value[chosen], fields.end[chosen]
            self.kind[at] = fields.number[chosen]

    def columns(self, owner: wire.Integers, count: int, names: Names) -> dict[str, wire.Integers]:
        """Read those wanted, by name; a text where a number should be is none."""
        found: dict[str, wire.Integers] = {}
        for key, name in names.facts.items():
            if name not in WANTED:
                continue
            chosen = np.flatnonzero(self.name == key)
            is_text = self.kind[chosen] >= _STRING
            chosen = chosen[is_text if name in TEXTS else ~is_text]
            if chosen.size:
                column = found.setdefault(name, np.full(count, -1, np.int64))
                values = self._texts(chosen, names) if name in TEXTS else self.value[chosen]
                column[owner[chosen]] = values
        return found

    def _texts(self, chosen: wire.Integers, names: Names) -> wire.Integers:
        values, ends = self.value[chosen], self.end[chosen]
        places = np.zeros(chosen.size, np.int64)
        refers = self.kind[chosen] == _REFERENCE
        unique, back = np.unique(values[refers], return_inverse=True)
        known = _placed((names.facts.get(one, "") for one in unique.tolist()), names.texts)
        places[refers] = np.array(known, np.int64)[back]
        spans = zip(values[~refers].tolist(), ends[~refers].tolist(), strict=True)
        places[~refers] = _placed((wire.text(self.view, *span) for span in spans), names.texts)
        return places


def _placed(found: Iterable[str], texts: dict[str, int]) -> list[int]:
    return [texts.setdefault(text, len(texts)) for text in found]


def _looked_up(keys: wire.Integers, place: dict[int, int]) -> wire.Integers:
    """Return places of names; a table is faster than a search, and their numbers are small."""
    if keys.size and keys.min() >= 0 and keys.max() < _LARGEST_TABLE:
        table = np.full(int(keys.max()) + 1, -1, np.int64)
        for key, position in place.items():
            if 0 <= key < table.size:
                table[key] = position
        return table[keys]
    unique, back = np.unique(keys, return_inverse=True)
    return np.array([place.get(int(key), -1) for key in unique], np.int64)[back]
