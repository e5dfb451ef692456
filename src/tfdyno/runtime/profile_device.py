"""What the device did and what the host did meanwhile, with classes, from a profile's planes."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tfdyno.runtime.profile_spans import Chosen, Times, joined, merged, own_times
from tfdyno.runtime.profile_steps import Sequence, is_host
from tfdyno.runtime.profile_tables import host_kind, kernel_class, operation_class

if TYPE_CHECKING:
    from tfdyno.runtime.profile_lines import Line, Plane, Profile
    from tfdyno.runtime.profile_spans import Spans

    Integers = NDArray[np.int64]

NOT_COMPUTE = frozenset({"input", "python", "checkpoint", "wrapper", "copy", "collective"})
"""Classes of events that are no computation of the device."""
_OPERATION = re.compile(r"^[^\s:]+:[_A-Z]\w*$")
"""``scope/name:Type``, as the executor names what it runs."""
_SIZE = re.compile(r"\bsize:(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """All that one device did, in order of beginning."""

    title: str
    begin_s: Times
    end_s: Times
    own_s: Times
    """Without what it called in turn."""
    launched_s: Times
    """When the host started it; its beginning where that is not known."""
    class_index: Integers
    """Into ``classes``."""
    classes: tuple[str, ...]
    name_index: Integers
    names: tuple[str, ...]
    compiled: Chosen
    """Whether it comes from a program of XLA."""
    copied_bytes: Times

    def of(self, *classes: str) -> Chosen:
        """Which events are of these classes."""
        wanted = [at for at, each in enumerate(self.classes) if each in classes]
        return np.isin(self.class_index, wanted)

    @property
    def is_compute(self) -> Chosen:
        """Which events compute: neither copies nor collectives nor anything of the host."""
        return ~self.of(*NOT_COMPUTE)

    def sequence(self) -> Sequence:
        """The order of the computing operations."""
        chosen = self.is_compute
        return Sequence(
            begin_s=self.begin_s[chosen], name_index=self.name_index[chosen], names=self.names
        )


def gpu_events(profile: Profile) -> list[Events]:
    """One for each GPU that did something, the busiest first."""
    launches = _launches(profile)
    planes = [plane for plane in profile.planes if plane.name.startswith("/device:GPU")]
    found = [_together(plane.name, _of_streams(plane), launches) for plane in planes]
    return sorted((e for e in found if e.begin_s.size), key=lambda e: -float(e.own_s.sum()))


def cpu_events(profile: Profile) -> Events:
    """What the CPU computed: operations of TensorFlow and of XLA outside of the input pipeline."""
    made = [
        _of_thread(plane, line)
        for plane in profile.planes
        if is_host(plane)
        for line in plane.lines
        if line.begin_s.size and not line.name.startswith("tf_data")
    ]
    return _together("CPU", made, (np.zeros(0, np.int64), np.zeros(0)))


def host_spans(profile: Profile) -> dict[str, Spans]:
    """Stretches in which the host waits for input, runs Python, saves and so on, by kind."""
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
    """When the host started anything on a GPU."""
    return _launches(profile)[1]


def _launches(profile: Profile) -> tuple[Integers, Times]:
    """Numbers of calls of CUDA, in order, with the time at which the host made them."""
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
    own_s: Times
    class_names: NDArray[np.str_]
    names: NDArray[np.object_]
    correlation: Integers
    compiled: Chosen
    copied_bytes: Times


def _of_streams(plane: Plane) -> list[_Part]:
    """What a GPU did in each stream; kernels of one stream do not contain each other."""
    streams = [line for line in plane.lines if line.name.startswith("Stream")]
    made = []
    for line in streams or plane.lines:
        chosen = np.flatnonzero(line.name_index >= 0)
        scope, details = _fact(line, "tf_op")[chosen], _fact(line, "memcpy_details")[chosen]
        key = line.name_index[chosen] * (len(plane.texts) + 1) + scope + 1
        pairs, back = np.unique(key, return_inverse=True)
        classes = [
            kernel_class(plane.names[name], plane.texts[text - 1] if text else "")
            for name, text in (divmod(pair, len(plane.texts) + 1) for pair in pairs.tolist())
        ]
        sizes = np.array([*(_size(text) for text in plane.texts), 0.0])
        made.append(_part(plane, line, chosen, np.array(classes, np.str_)[back], sizes[details]))
    return made


def _of_thread(plane: Plane, line: Line) -> _Part:
    """Operations that a thread of the host ran; one may call others."""
    is_one = np.array([*(bool(_OPERATION.match(name)) for name in plane.names), False])
    compiled = (_fact(line, "hlo_op") >= 0) & (line.name_index >= 0)
    chosen = np.flatnonzero(is_one[line.name_index] | compiled)
    names, back = np.unique(line.name_index[chosen], return_inverse=True)
    classes = np.array([operation_class(plane.names[name]) for name in names.tolist()], np.str_)
    part = _part(plane, line, chosen, classes[back], np.zeros(chosen.size))
    return dataclasses.replace(part, own_s=own_times(part.begin_s, part.end_s))


def _part(
    plane: Plane, line: Line, chosen: Integers, classes: NDArray[np.str_], sizes: Times
) -> _Part:
    order = np.lexsort((-line.end_s[chosen], line.begin_s[chosen]))
    chosen = chosen[order]
    begin, end = line.begin_s[chosen], line.end_s[chosen]
    return _Part(
        begin_s=begin,
        end_s=end,
        own_s=end - begin,
        class_names=classes[order],
        names=np.array(plane.names, np.object_)[line.name_index[chosen]],
        correlation=_fact(line, "correlation_id")[chosen],
        compiled=_fact(line, "hlo_op")[chosen] >= 0,
        copied_bytes=sizes[order],
    )


def _fact(line: Line, name: str) -> Integers:
    column = line.facts.get(name)
    return np.full(line.begin_s.size, -1, np.int64) if column is None else column


def _size(details: str) -> float:
    found = _SIZE.search(details)
    return float(found[1]) if found else 0.0


def _together(title: str, made: list[_Part], launches: tuple[Integers, Times]) -> Events:
    begin = joined([one.begin_s for one in made])
    order = np.argsort(begin, kind="stable")
    begin = begin[order]

    def column(name: str) -> NDArray[Any]:
        arrays = [getattr(one, name) for one in made]
        return np.concatenate(arrays)[order] if arrays else np.zeros(0)

    classes, class_index = np.unique(column("class_names").astype(np.str_), return_inverse=True)
    places: dict[str, int] = {}
    name_index = [places.setdefault(name, len(places)) for name in column("names").tolist()]
    return Events(
        title=title,
        begin_s=begin,
        end_s=column("end_s"),
        own_s=column("own_s"),
        launched_s=_launched(begin, column("correlation"), launches),
        class_index=class_index,
        classes=tuple(classes.tolist()),
        name_index=np.array(name_index, np.int64),
        names=tuple(places),
        compiled=column("compiled").astype(np.bool_),
        copied_bytes=column("copied_bytes"),
    )


def _launched(begin: Times, correlation: Integers, launches: tuple[Integers, Times]) -> Times:
    numbers, times = launches
    if not numbers.size or not begin.size:
        return begin
    place = np.minimum(np.searchsorted(numbers, correlation), numbers.size - 1)
    return np.where(numbers[place] == correlation, np.minimum(times[place], begin), begin)
