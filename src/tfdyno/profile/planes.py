"""Read the planes of an ``xplane.pb``.

They are read straight from the bytes, by the field numbers of ``xplane.proto``: neither
TensorFlow nor xprof is needed, so a profile can be looked at where neither is installed, and the
compiled programs in it (often most of the file) are not copied.

Source:
    ``tensorflow/tsl/profiler/protobuf/xplane.proto`` of TensorFlow 2.21.0; the fields have kept
    their numbers since TensorFlow 2.2.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.profile import wire
from tfdyno.profile.columns import Names, RawLine, line_of
from tfdyno.profile.lines import Plane, Profile, ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    Place = tuple[int, int]
    """Where something begins and ends."""

_PROGRAMS = "/host:metadata"
_SPACE_FIELDS = {1: wire.LENGTH, 2: wire.LENGTH, 3: wire.LENGTH, 4: wire.LENGTH}


@dataclass(slots=True)
class _RawPlane:
    name: str = ""
    lines: list[Place] = field(default_factory=list)
    events: list[Place] = field(default_factory=list)
    facts: list[Place] = field(default_factory=list)
    said: list[Place] = field(default_factory=list)


def read_planes(data: bytes | memoryview) -> Profile:
    """Read an XSpace.

    Args:
        data: The bytes of an ``xplane.pb``; those of a memory map will do.

    Raises:
        ProfileError: They are none, or end in the middle.
    """
    view = memoryview(data)
    try:
        return _Reader(view).profile()
    except wire.WireError as error:
        raise ProfileError(f"its bytes are not laid out as one ({error})") from None


class _Reader:
    """Goes through the bytes once for the frame, and once more for the events of each line."""

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def profile(self) -> Profile:
        planes, notes = self._space()
        lines = [[self._line(place) for place in plane.lines] for plane in planes]
        every = [line.timestamp_ns for of in lines for line in of if line.begins.size]
        origin_ns = min(every, default=0)
        made = [self._plane(plane, of, origin_ns) for plane, of in zip(planes, lines, strict=True)]
        first_s = min(
            (line.begin_s[0] for each in made for line in each.lines if line.begin_s.size),
            default=0.0,
        )
        return Profile(
            planes=tuple(_since(plane, first_s) for plane in made),
            notes=tuple(notes),
            programs=tuple(one for plane in planes for one in self._programs(plane)),
        )

    def _space(self) -> tuple[list[_RawPlane], list[str]]:
        planes: list[_RawPlane] = []
        notes: list[str] = []
        try:
            for number, kind, begin, end in wire.parts(self.view, 0, len(self.view)):
                if _SPACE_FIELDS.get(number) != kind:
                    raise ProfileError(f"its bytes are not laid out as one (field {number})")
                if number == 1:
                    planes.append(self._raw_plane((begin, end)))
                elif number in (2, 3):
                    notes.append(wire.text(self.view, begin, end))
        except wire.CutOffError:
            if planes or bytes(self.view[:1]) == b"\n":  # the first byte of every plane
                names = ", ".join(plane.name for plane in planes)
                where = f"behind its whole parts {names}" if planes else "inside of its first part"
                raise ProfileError(f"it is cut off {where}") from None
            raise
        return planes, notes

    def _raw_plane(self, place: Place) -> _RawPlane:
        plane = _RawPlane()
        kinds = {3: plane.lines, 4: plane.events, 5: plane.facts, 6: plane.said}
        for number, kind, begin, end in wire.parts(self.view, *place):
            if kind == wire.LENGTH and number == 2:
                plane.name = wire.text(self.view, begin, end)
            elif kind == wire.LENGTH and number in kinds:
                kinds[number].append((begin, end))
        return plane

    def _line(self, place: Place) -> RawLine:
        name = shown = ""
        timestamp_ns = 0
        begins, ends = wire.repeated(self.view, *place, 4)
        for number, kind, begin, end in self._frame(place, begins, ends):
            if number == 2 and kind == wire.LENGTH:
                name = wire.text(self.view, begin, end)
            elif number == 11 and kind == wire.LENGTH:
                shown = wire.text(self.view, begin, end)
            elif number == 3 and kind == wire.VARINT:
                timestamp_ns = begin
        return RawLine(name=shown or name, timestamp_ns=timestamp_ns, begins=begins, ends=ends)

    def _frame(
        self, place: Place, begins: wire.Integers, ends: wire.Integers
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield a line's fields before and after its events, without going through these again."""
        first = int(begins[0]) if begins.size else place[1]
        for one in wire.parts(self.view, *place):
            if one[2] >= first:
                break
            yield one
        if ends.size:
            yield from wire.parts(self.view, int(ends[-1]), place[1])

    def _plane(self, plane: _RawPlane, lines: list[RawLine], origin_ns: int) -> Plane:
        names = dict(self._named(entry) for entry in plane.events)
        known = Names(
            events={number: place for place, number in enumerate(names)},
            facts=dict(self._named(entry) for entry in plane.facts),
        )
        made = tuple(line_of(self.view, line, known, origin_ns) for line in lines)
        return Plane(
            name=plane.name,
            names=tuple(names.values()),
            lines=made,
            texts=tuple(known.texts),
            said=dict(self._said(plane, known)),
        )

    def _said(self, plane: _RawPlane, names: Names) -> Iterator[tuple[str, int]]:
        """Read whole numbers that are said of the plane itself."""
        for place in plane.said:
            fields = {number: value for number, kind, value, _ in wire.parts(self.view, *place)
                      if kind == wire.VARINT}  # fmt: skip
            value = fields.get(3, fields.get(4))  # without and with a sign
            name = names.facts.get(fields.get(1, 0), "")
            if name and value is not None:
                yield name, value

    def _named(self, entry: Place) -> tuple[int, str]:
        """Return one entry of a map from a number to what has a name."""
        key, name, shown = 0, "", ""
        for number, kind, begin, end in self._fields(entry):
            if number == 1 and kind == wire.VARINT:
                key = begin
            elif number == 2 and kind == wire.LENGTH:
                name = wire.text(self.view, begin, end)
            elif number == 4 and kind == wire.LENGTH:
                shown = wire.text(self.view, begin, end)
        return key, name or shown

    def _fields(self, entry: Place) -> Iterator[tuple[int, int, int, int]]:
        """Read the value of an entry of a map; its key, which the value has too, is first."""
        for one in wire.parts(self.view, *entry):
            if one[0] == 2 and one[1] == wire.LENGTH:
                yield from wire.parts(self.view, one[2], one[3])
            elif one[0] == 1:
                yield one

    def _programs(self, plane: _RawPlane) -> Iterator[tuple[str, memoryview]]:
        """Read programs, which are bytes said of what is named after their module."""
        for entry in plane.events if plane.name == _PROGRAMS else ():
            _, name = self._named(entry)
            for number, kind, begin, end in self._fields(entry):
                if number == 5 and kind == wire.LENGTH:
                    for fact, of, first, last in wire.parts(self.view, begin, end):
                        if fact == 6 and of == wire.LENGTH:
                            yield name, self.view[first:last]


def _since(plane: Plane, first_s: float) -> Plane:
    lines = (
        dataclasses.replace(line, begin_s=line.begin_s - first_s, end_s=line.end_s - first_s)
        for line in plane.lines
    )
    return dataclasses.replace(plane, lines=tuple(lines))
