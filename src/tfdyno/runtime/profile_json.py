"""Read a ``*.trace.json.gz``: what TensorFlow wrote beside the planes, and TensorBoard exports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from tfdyno.runtime.profile_lines import WANTED, Line, Plane, Profile, ProfileError

_MOST_EVENTS = 1_000_000
"""TensorFlow writes no more events than these into the file."""
_TEXTS = frozenset({"memcpy_details", "tf_op", "hlo_op"})
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
    schema: Any = msgspec.field(name="schemaVersion", default=None)


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
    try:
        trace = msgspec.json.decode(data, type=_Trace)
    except msgspec.ValidationError as error:
        raise ProfileError(f"it is JSON, but no trace: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"its JSON is cut off or damaged: {error}") from None
    if trace.schema is not None:
        raise ProfileError("it is a trace of PyTorch, not of TensorFlow or JAX")
    planes: dict[str, _Plane] = {}
    for event in trace.events:
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
    cut = len(trace.events) >= _MOST_EVENTS
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
    facts: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = {}
    for at, event in enumerate(events):
        for key in (event.args or {}).keys() & set(WANTED):
            column = facts.setdefault(key, np.full(len(events), -1, np.int64))
            column[at] = _value(raw, key, (event.args or {})[key])
    return Line(
        name=name,
        begin_s=begin,
        end_s=begin + np.array([event.dur for event in events]) * 1e-6,
        name_index=np.array(names, np.int64),
        facts=facts,
    )


def _value(raw: _Plane, key: str, value: object) -> int:
    if key in _TEXTS:
        return raw.texts.setdefault(str(value), len(raw.texts))
    try:
        return int(str(value))
    except ValueError:
        return -1
