"""What the device did and what the host did meanwhile, with classes, from a profile's planes."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.profile.known import (
    Known,
    fact,
    host_operations,
    kernels,
    programs_that_ran,
    with_packing,
)
from tfdyno.profile.operation_classes import EXCHANGE, NO_WORK, SPECIAL
from tfdyno.profile.spans import Chosen, Times, joined, merged, shared_times
from tfdyno.profile.steps import Sequence, is_host
from tfdyno.profile.tables import host_kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.profile.lines import Line, Plane, Profile
    from tfdyno.profile.programs import Instructions
    from tfdyno.profile.spans import Spans

    Integers = NDArray[np.int64]

_SIZE = re.compile(r"\bsize:(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """All that one device did, in order of beginning."""

    title: str
    begin_s: Times
    end_s: Times
    own_s: Times
    """The time without what it called in turn; what several streams or threads did at once is
    shared by them, so that all together are the time in which the device was busy."""
    launched_s: Times
    """When the host started it; its beginning where that is not known."""
    known_index: Integers
    """Into ``known``."""
    known: tuple[Known, ...]
    copied_bytes: Times

    def of(self, *classes: str) -> Chosen:
        """Return which events are of these classes."""
        return self.where([one.operation_class in classes for one in self.known])

    def where(self, is_wanted: list[bool]) -> Chosen:
        """Return which events are of the operations that are wanted, of all in their order."""
        return np.array([*is_wanted, False], np.bool_)[self.known_index]

    @property
    def is_compute(self) -> Chosen:
        """Which events compute: neither copies nor collectives nor anything of the host."""
        return self.of("program") | ~self.of(*SPECIAL, *EXCHANGE)

    def sequence(self) -> Sequence:
        """Return the order of the computing operations."""
        chosen = self.is_compute & ~self.of("program")
        names = tuple(one.operation.kernel or one.operation.title for one in self.known)
        return Sequence(
            begin_s=self.begin_s[chosen], name_index=self.known_index[chosen], names=names
        )


def gpu_events(profile: Profile) -> list[Events]:
    """Return the events of each GPU that did something, the busiest first."""
    launches, programs = _launches(profile), programs_that_ran(profile)
    planes = [plane for plane in profile.planes if plane.name.startswith("/device:GPU")]
    found = [_together(plane.name, _of_streams(plane, programs), launches) for plane in planes]
    return sorted((e for e in found if e.begin_s.size), key=lambda e: -float(e.own_s.sum()))


def cpu_events(profile: Profile) -> Events:
    """Return what the CPU computed: operations of TensorFlow and XLA outside of the input."""
    programs = programs_that_ran(profile)
    made = [
        _of_thread(plane, line, programs)
        for plane in profile.planes
        if is_host(plane)
        for line in plane.lines
        if line.begin_s.size and not line.name.startswith("tf_data")
    ]
    return _with_exchange(_together("CPU", made, (np.zeros(0, np.int64), np.zeros(0))))


def host_spans(profile: Profile) -> dict[str, Spans]:
    """Return stretches in which the host waits for input, runs Python, saves and so on, by kind."""
    found: dict[str, tuple[list[Times], list[Times]]] = {}
    for plane in profile.planes:
        if not is_host(plane):
            continue
        kinds = np.array([*(host_kind(name) for name in plane.names), ""])
        for line in plane.lines:
            of_line = kinds[line.name_index]
            for kind in np.unique(of_line):
                if not kind or (kind == "python" and line.name.startswith("tf_data")):
                    continue  # Python of the pipeline is input, not the loop's own
                begins, ends = found.setdefault(str(kind), ([], []))
                begins.append(line.begin_s[of_line == kind])
                ends.append(line.end_s[of_line == kind])
    return {kind: merged(joined(begins), joined(ends)) for kind, (begins, ends) in found.items()}


def launch_times(profile: Profile) -> Times:
    """Return when the host started anything on a GPU."""
    return _launches(profile)[1]


def _launches(profile: Profile) -> tuple[Integers, Times]:
    """Return numbers of calls of CUDA, in order, with the time at which the host made them."""
    numbers: list[Integers] = [np.zeros(0, np.int64)]
    times: list[Times] = [np.zeros(0)]
    for plane in profile.planes:
        for line in plane.lines if is_host(plane) else ():
            given = line.facts.get("correlation_id")
            if given is not None:
                numbers.append(given[given >= 0])
                times.append(line.begin_s[given >= 0])
    number, time = np.concatenate(numbers), np.concatenate(times)
    order = np.argsort(number, kind="stable")
    return number[order], time[order]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Events of one line, in order of beginning, the longer first."""

    begin_s: Times
    end_s: Times
    known: tuple[Known, ...]
    known_index: Integers
    correlation: Integers
    copied_bytes: Times


def _of_streams(plane: Plane, programs: Instructions) -> list[_Part]:
    """Return what a GPU did in each stream."""
    streams = [line for line in plane.lines if line.name.startswith("Stream")]
    sizes = np.array([*(_size(text) for text in plane.texts), 0.0])
    made = []
    for line in streams or plane.lines:
        chosen = np.flatnonzero(line.name_index >= 0)
        known, which = kernels(plane, line, chosen, programs)
        details = fact(line, "memcpy_details")[chosen]
        made.append(_part(line, chosen, known, which, sizes[details]))
    return made


def _of_thread(plane: Plane, line: Line, programs: Instructions) -> _Part:
    """Return operations that a thread of the host ran; one may call others."""
    chosen, known, which = host_operations(plane, line, programs)
    return _part(line, chosen, known, which, np.zeros(chosen.size))


def _part(
    line: Line, chosen: Integers, known: tuple[Known, ...], which: Integers, sizes: Times
) -> _Part:
    order = np.lexsort((-line.end_s[chosen], line.begin_s[chosen]))
    chosen = chosen[order]
    return _Part(
        begin_s=line.begin_s[chosen],
        end_s=line.end_s[chosen],
        known=known,
        known_index=which[order],
        correlation=fact(line, "correlation_id")[chosen],
        copied_bytes=sizes[order],
    )


def _size(details: str) -> float:
    found = _SIZE.search(details)
    return float(found[1]) if found else 0.0


def _together(title: str, made: list[_Part], launches: tuple[Integers, Times]) -> Events:
    places: dict[Known, int] = {}
    index = [
        np.array([places.setdefault(one, len(places)) for one in part.known], np.int64)[
            part.known_index
        ]
        for part in made
    ]
    known = with_packing(tuple(places))
    not_noted = {*NO_WORK, "program"}
    works = np.array([*(one.operation_class not in not_noted for one in known), False])
    own = _own(made, [works[each] for each in index])
    begin = joined([part.begin_s for part in made])
    order = np.argsort(begin, kind="stable")
    begin = begin[order]

    def column(arrays: list[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(arrays)[order] if arrays else np.zeros(0, np.int64)

    events = Events(
        title=title,
        begin_s=begin,
        end_s=column([part.end_s for part in made]),
        own_s=column(own),
        launched_s=_launched(begin, column([part.correlation for part in made]), launches),
        known_index=column(index),
        known=known,
        copied_bytes=column([part.copied_bytes for part in made]),
    )
    return _with_unnoted(events, events.where(works[:-1].tolist()))


def _with_unnoted(events: Events, works: Chosen) -> Events:
    """Give time in which a program of XLA runs and nothing in it does to what went on unnoted.

    On a CPU convolutions and products only note that they start, and go on in other threads.
    """
    program = events.of("program")
    if not program.any():
        return events
    every, noted = (merged(events.begin_s[each], events.end_s[each]).total_s
                    for each in (works | program, works))  # fmt: skip
    takes = events.where(
        [one.is_compiled and one.operation_class in ("gemm", "conv") for one in events.known]
    )
    takes = takes if takes.any() else program
    weight = np.where(takes, events.end_s - events.begin_s, 0.0)
    own_s = events.own_s + (every - noted) * weight / max(weight.sum(), 1e-12)
    return dataclasses.replace(events, own_s=own_s)


def _with_exchange(events: Events) -> Events:
    """Let an exchange go on until the next operation where nothing else runs meanwhile.

    On a CPU an exchange only notes that it starts, and goes on in other threads.
    """
    works = np.flatnonzero(~events.of(*NO_WORK, "program"))
    if works.size < 2:
        return events
    ends = np.maximum.accumulate(events.end_s[works])
    is_last = events.end_s[works] == ends
    last = works[np.maximum.accumulate(np.where(is_last, np.arange(works.size), 0))]
    waits_s = events.begin_s[works[1:]] - ends[:-1]
    chosen = (waits_s > 0.0) & events.of("collective")[last[:-1]]
    which, more_s = last[:-1][chosen], waits_s[chosen]
    end_s, own_s = events.end_s.copy(), events.own_s.copy()
    end_s[which] += more_s
    own_s[which] += more_s
    return dataclasses.replace(events, end_s=end_s, own_s=own_s)


def _own(made: list[_Part], works: list[Chosen]) -> list[Times]:
    """Own times, shared by the lines; 0 for what does no work."""
    pairs = list(zip(made, works, strict=True))
    shared = shared_times([(part.begin_s[work], part.end_s[work]) for part, work in pairs])
    found = []
    for (part, work), seconds in zip(pairs, shared, strict=True):
        own = np.zeros(part.begin_s.size)
        own[work] = seconds
        found.append(own)
    return found


def _launched(begin: Times, correlation: Integers, launches: tuple[Integers, Times]) -> Times:
    numbers, times = launches
    if not numbers.size or not begin.size:
        return begin
    place = np.minimum(np.searchsorted(numbers, correlation), numbers.size - 1)
    return np.where(numbers[place] == correlation, np.minimum(times[place], begin), begin)
