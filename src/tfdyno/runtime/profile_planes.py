"""Read the planes of an ``xplane.pb``.

They are read straight from the bytes, by the field numbers of ``xplane.proto``: neither
TensorFlow nor xprof is needed, so a profile can be looked at where neither is installed, and the
compiled programs in it (often most of the file) are never touched.

Source:
    ``tensorflow/tsl/profiler/protobuf/xplane.proto`` of TensorFlow 2.21.0; the fields have kept
    their numbers since TensorFlow 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.runtime import profile_wire as wire
from tfdyno.runtime.profile_lines import WANTED, Line, Plane, Profile, ProfileError

if TYPE_CHECKING:
    from collections.abc import Collection

_SPACE_FIELDS = {1: wire.LENGTH, 2: wire.LENGTH, 3: wire.LENGTH, 4: wire.LENGTH}
_PS_PER_S = 1e12
_LARGEST_TABLE = 1 << 24


@dataclass(slots=True)
class _RawPlane:
    name: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)
    events: list[tuple[int, int]] = field(default_factory=list)
    stats: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _RawLine:
    plane: int
    name: str
    timestamp_ns: int
    begins: wire.Integers
    ends: wire.Integers


def read_planes(data: bytes | memoryview, wanted: Collection[str] = WANTED) -> Profile:
    """Read an XSpace.

    Args:
        data: The bytes of an ``xplane.pb``; a memory map will do.
        wanted: Names of the facts of events to read.

    Raises:
        ProfileError: They are none, or end in the middle.
    """
    view = memoryview(data)
    try:
        return _Reader(view, frozenset(wanted)).profile()
    except wire.WireError as error:
        raise ProfileError(f"its bytes are not laid out as one ({error})") from None


class _Reader:
    """Goes through the bytes once for the frame, and once more for the events of each line."""

    def __init__(self, view: memoryview, wanted: frozenset[str]) -> None:
        self.view, self.wanted = view, wanted
        self.array = np.frombuffer(view, np.uint8)

    def profile(self) -> Profile:
        planes, notes = self._space()
        raw = [line for at, plane in enumerate(planes) for line in self._lines(at, plane)]
        origin_ns = min((each.timestamp_ns for each in raw if each.begins.size), default=0)
        made = [self._plane(at, plane, raw, origin_ns) for at, plane in enumerate(planes)]
        first = min(
            (line.begin_s[0] for each in made for line in each.lines if line.begin_s.size),
            default=0.0,
        )
        return Profile(planes=tuple(_since(plane, first) for plane in made), notes=tuple(notes))

    def _space(self) -> tuple[list[_RawPlane], list[str]]:
        planes: list[_RawPlane] = []
        notes: list[str] = []
        try:
            for number, kind, begin, end in wire.parts(self.view, 0, len(self.view)):
                if _SPACE_FIELDS.get(number) != kind:
                    raise ProfileError(f"there is no field {number} in a profile")
                if number == 1:
                    planes.append(self._raw_plane(begin, end))
                elif number in (2, 3):
                    notes.append(self._text(begin, end))
        except wire.CutOffError:
            if planes or bytes(self.view[:1]) == b"\n":  # the first byte of every plane
                why = f"it is cut off in the part after {len(planes)} whole ones"
                raise ProfileError(why) from None
            raise
        return planes, notes

    def _raw_plane(self, begin: int, end: int) -> _RawPlane:
        plane = _RawPlane()
        for number, kind, first, last in wire.parts(self.view, begin, end):
            if kind != wire.LENGTH:
                continue
            if number == 2:
                plane.name = self._text(first, last)
            elif number in (3, 4, 5):
                {3: plane.lines, 4: plane.events, 5: plane.stats}[number].append((first, last))
        return plane

    def _lines(self, at: int, plane: _RawPlane) -> list[_RawLine]:
        found = []
        for begin, end in plane.lines:
            name = shown = ""
            timestamp_ns = 0
            # The frame of a line comes before or after its events; both are looked for.
            begins, ends = wire.repeated(self.view, begin, end, 4)
            for number, kind, first, last in self._frame(begin, end, begins, ends):
                if number == 2 and kind == wire.LENGTH:
                    name = self._text(first, last)
                elif number == 11 and kind == wire.LENGTH:
                    shown = self._text(first, last)
                elif number == 3 and kind == wire.VARINT:
                    timestamp_ns = first
            found.append(_RawLine(at, shown or name, timestamp_ns, begins, ends))
        return found

    def _frame(
        self, begin: int, end: int, begins: wire.Integers, ends: wire.Integers
    ) -> list[tuple[int, int, int, int]]:
        """Fields of a line without going through its events again."""
        if not begins.size:
            return list(wire.parts(self.view, begin, end))
        head = _before(self.view, begin, int(begins[0]))
        return [*head, *wire.parts(self.view, int(ends[-1]), end)]

    def _plane(self, at: int, plane: _RawPlane, raw: list[_RawLine], origin_ns: int) -> Plane:
        stat_names = dict(self._metadata(one) for one in plane.stats)
        events = dict(self._metadata(one) for one in plane.events)
        place = {identifier: position for position, identifier in enumerate(events)}
        texts: dict[str, int] = {}
        lines = [
            self._line(line, place, stat_names, texts, origin_ns)
            for line in raw
            if line.plane == at
        ]
        return Plane(
            name=plane.name, names=tuple(events.values()), lines=tuple(lines), texts=tuple(texts)
        )

    def _metadata(self, at: tuple[int, int]) -> tuple[int, str]:
        """One entry of a map from a number to what has a name."""
        key, name, shown = 0, "", ""
        for number, kind, first, last in wire.parts(self.view, *at):
            if number == 1 and kind == wire.VARINT:
                key = first
            elif number == 2 and kind == wire.LENGTH:
                for inner, inner_kind, begin, end in wire.parts(self.view, first, last):
                    if inner == 1 and inner_kind == wire.VARINT:
                        key = begin
                    elif inner == 2 and inner_kind == wire.LENGTH:
                        name = self._text(begin, end)
                    elif inner == 4 and inner_kind == wire.LENGTH:
                        shown = self._text(begin, end)
        return key, name or shown

    def _line(
        self,
        raw: _RawLine,
        place: dict[int, int],
        stat_names: dict[int, str],
        texts: dict[str, int],
        origin_ns: int,
    ) -> Line:
        count = raw.begins.size
        metadata, offset_ps, duration_ps = (np.zeros(count, np.int64) for _ in range(3))
        columns = {1: metadata, 2: offset_ps, 3: duration_ps}
        owners: list[wire.Integers] = []
        begins: list[wire.Integers] = []
        ends: list[wire.Integers] = []
        for fields in wire.rounds(self.array, raw.begins, raw.ends):
            for number, column in columns.items():
                chosen = (fields.number == number) & (fields.wire == wire.VARINT)
                column[fields.message[chosen]] = fields.value[chosen]
            chosen = (fields.number == 4) & (fields.wire == wire.LENGTH)
            owners.append(fields.message[chosen])
            begins.append(fields.value[chosen])
            ends.append(fields.end[chosen])
        facts = {}
        if owners:
            stats = tuple(map(np.concatenate, (owners, begins, ends)))
            facts = self._facts(count, stats, stat_names, texts)  # type: ignore[arg-type]
        start = (raw.timestamp_ns - origin_ns) * 1e-9 + offset_ps / _PS_PER_S
        order = np.argsort(start, kind="stable")
        return Line(
            name=raw.name,
            begin_s=start[order],
            end_s=(start + duration_ps / _PS_PER_S)[order],
            name_index=_looked_up(metadata, place)[order],
            facts={name: column[order] for name, column in facts.items()},
        )

    def _facts(
        self,
        count: int,
        stats: tuple[wire.Integers, wire.Integers, wire.Integers],
        stat_names: dict[int, str],
        texts: dict[str, int],
    ) -> dict[str, wire.Integers]:
        owner, begins, ends = stats
        identifier, value, is_text, last = (np.zeros(owner.size, np.int64) for _ in range(4))
        for fields in wire.rounds(self.array, begins, ends):
            chosen = fields.number == 1
            identifier[fields.message[chosen]] = fields.value[chosen]
            chosen = fields.number >= 2
            at = fields.message[chosen]
            value[at], last[at] = fields.value[chosen], fields.end[chosen]
            is_text[at] = fields.number[chosen]
        facts: dict[str, wire.Integers] = {}
        for key, name in stat_names.items():
            if name not in self.wanted:
                continue
            chosen = np.flatnonzero(identifier == key)
            if not chosen.size:
                continue
            column = facts.setdefault(name, np.full(count, -1, np.int64))
            kind = is_text[chosen]
            column[owner[chosen]] = value[chosen]
            for at in chosen[(kind == 5) | (kind == 6)]:
                text = self._text(int(value[at]), int(last[at]))
                column[owner[at]] = texts.setdefault(text, len(texts))
            for at in chosen[kind == 7]:
                text = stat_names.get(int(value[at]), "")
                column[owner[at]] = texts.setdefault(text, len(texts))
        return facts

    def _text(self, begin: int, end: int) -> str:
        return bytes(self.view[begin:end]).decode("utf-8", "replace")


def _before(view: memoryview, begin: int, event: int) -> list[tuple[int, int, int, int]]:
    """Fields that come before the first event, whose bytes begin at ``event``."""
    found = []
    for one in wire.parts(view, begin, len(view)):
        if one[2] >= event:
            break
        found.append(one)
    return found


def _looked_up(keys: wire.Integers, place: dict[int, int]) -> wire.Integers:
    """Places of names; a table is faster than a search, and their numbers are small."""
    if keys.size and keys.min() >= 0 and keys.max() < _LARGEST_TABLE:
        table = np.full(int(keys.max()) + 1, -1, np.int64)
        for key, position in place.items():
            if 0 <= key < table.size:
                table[key] = position
        return table[keys]
    unique, back = np.unique(keys, return_inverse=True)
    return np.array([place.get(int(key), -1) for key in unique], np.int64)[back]


def _since(plane: Plane, first_s: float) -> Plane:
    lines = (
        Line(
            name=line.name,
            begin_s=line.begin_s - first_s,
            end_s=line.end_s - first_s,
            name_index=line.name_index,
            facts=line.facts,
        )
        for line in plane.lines
    )
    return Plane(name=plane.name, names=plane.names, lines=tuple(lines), texts=plane.texts)
