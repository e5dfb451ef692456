"""Read a ``*.trace.json.gz``: what TensorFlow wrote beside the planes, and TensorBoard exports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from tfdyno.profile.lines import TEXTS, WANTED, Line, Plane, Profile, ProfileError
from tfdyno.profile.tables import limit

_MOST_EVENTS = 1_000_000
"""TensorFlow writes no more events than these into the file."""
_HEAD = 4096
_OF_PYTORCH = "it is a trace of PyTorch, not of TensorFlow or JAX"
_WANTED = frozenset(WANTED)
_DERIVED = frozenset({
    "Steps", "XLA Modules", "XLA Ops", "TensorFlow Ops", "TensorFlow Name Scope", "Source code",
    "Framework Ops", "Framework Name Scope", "Launch Stats",
})  # fmt: skip
"""Lines that a viewer makes from the others."""


class _Event(msgspec.Struct):
    ph: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0.0
    dur: float = 0.0
    name: str = ""
    args: dict[str, Any] | None = None


class _Trace(msgspec.Struct):
    events: list[_Event] = msgspec.field(name="traceEvents")


@dataclass(slots=True)
class _Plane:
    name: str = ""
    names: dict[str, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[_Event]] = field(default_factory=dict)
    line_names: dict[str, str] = field(default_factory=dict)


def read_json_trace(data: bytes | memoryview) -> Profile:
    """Read a trace in the format of Chrome's viewer, as TensorFlow and xprof write it.

    Raises:
        ProfileError: It is none, is cut off, or was made by something else.
    """
    if len(data) > limit("most_json_bytes"):
        raise ProfileError("it has more than 1 GiB of JSON; give the xplane.pb beside it")
    try:
        if b'"schemaVersion"' in bytes(data[:_HEAD]):
            raise ProfileError(_OF_PYTORCH)
        trace = msgspec.json.decode(data, type=_Trace | list[_Event])
    except msgspec.ValidationError as error:
        raise ProfileError(f"it is JSON, but no trace: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"its JSON is cut off or damaged: {error}") from None
    every = trace if isinstance(trace, list) else trace.events
    if any(event.name.startswith("aten::") for event in every):
        raise ProfileError(_OF_PYTORCH)
    planes: dict[str, _Plane] = {}
    for event in every:
        plane = planes.setdefault(str(event.pid), _Plane())
        if event.ph == "M":
            _name(plane, event)
        elif event.ph == "X":
            plane.lines.setdefault(str(event.tid), []).append(event)
    first_us = min(
        (e.ts for p in planes.values() for es in p.lines.values() for e in es), default=0.0
    )
    made = tuple(_plane(plane, first_us) for plane in planes.values())
    if not any(line.begin_s.size for plane in made for line in plane.lines):
        raise ProfileError("the trace holds no events")
    cut = len(every) >= _MOST_EVENTS
    notes = (
        ("TensorFlow cuts such a file at a million events; the xplane.pb has all.",) if cut else ()
    )
    return Profile(planes=made, notes=notes)


def _name(plane: _Plane, event: _Event) -> None:
    name = str((event.args or {}).get("name", ""))
    if event.name == "process_name":
        plane.name = name
    elif event.name == "thread_name":
        plane.line_names[str(event.tid)] = name


def _plane(raw: _Plane, first_us: float) -> Plane:
    lines = tuple(
        _line(raw, raw.line_names.get(thread, thread), events, first_us)
        for thread, events in raw.lines.items()
        if raw.line_names.get(thread) not in _DERIVED
    )
    return Plane(name=raw.name, names=tuple(raw.names), lines=lines, texts=tuple(raw.texts))


def _line(raw: _Plane, name: str, events: list[_Event], first_us: float) -> Line:
    events.sort(key=lambda event: event.ts)
    begin = np.array([event.ts - first_us for event in events]) * 1e-6
    names = [raw.names.setdefault(event.name, len(raw.names)) for event in events]
    facts: dict[str, list[int]] = {}
    for at, event in enumerate(events):
        for key, value in event.args.items() if event.args else ():
            if key in _WANTED:
                if key not in facts:
                    facts[key] = [-1] * len(events)
                facts[key][at] = _value(raw, key, value)
    return Line(
        name=name,
        begin_s=begin,
        end_s=begin + np.array([event.dur for event in events]) * 1e-6,
        name_index=np.array(names, np.int64),
        facts={name: np.array(column, np.int64) for name, column in facts.items()},
    )


def _value(raw: _Plane, key: str, value: object) -> int:
    if key in TEXTS:
        return raw.texts.setdefault(str(value), len(raw.texts))
    try:
        return int(str(value))
    except ValueError:
        return -1
