"""Where the steps of a profile begin: by its markers, by calls of one function, by repetition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tfdyno.profile.spans import merged
from tfdyno.profile.tables import called, limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.profile.lines import Line, Plane, Profile

    Times = NDArray[np.float64]

_MOST_ANCHORS = 64
_MOST_EVENTS = 2_000_000
_LEAST_STEPS = 3
_LEAST_MARKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps of a profile, on the host's clock."""

    edges_s: Times
    """Where each step begins, and where the last one ends."""
    how: Literal["markers", "calls", "pattern"]
    retraced: dict[str, int]
    """Functions that were called in several traced versions, with how many."""
    notes: tuple[str, ...]

    @property
    def count(self) -> int:
        """Whole steps."""
        return self.edges_s.size - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """Operations of a device in order of their beginnings."""

    begin_s: Times
    name_index: NDArray[np.int64]
    names: tuple[str, ...] = ()


def is_host(plane: Plane) -> bool:
    """Return whether a plane holds what CPUs did."""
    return plane.name.startswith("/host:") or plane.name in ("", "CPU")


def find_steps(profile: Profile, sequence: Sequence) -> Steps | None:
    """Return the steps; None where nothing repeats.

    Args:
        profile: All planes.
        sequence: What the device did, for profiles whose host says nothing.
    """
    return _by_markers(profile) or _by_calls(profile) or _by_pattern(sequence)


def marked(profile: Profile) -> tuple[float, float] | None:
    """Return the span from the first marker of a step to the end of the last; None: none."""
    spans = [
        (float(line.begin_s[chosen].min()), float(line.end_s[chosen].max()))
        for _, line in _host_lines(profile)
        if (numbers := line.facts.get("step_num")) is not None and (chosen := numbers >= 0).any()
    ]
    return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None


def _by_markers(profile: Profile) -> Steps | None:
    """Return events with a number of a step, as ``tf.profiler.experimental.Trace`` makes them."""
    best: tuple[int, Times, Times] | None = None
    for plane, line in _host_lines(profile):
        numbers = line.facts.get("step_num")
        if numbers is None:
            continue
        for index in np.unique(line.name_index[numbers >= 0]):
            chosen = (line.name_index == index) & (numbers >= 0)
            if plane.names[index].startswith("TraceContext") or not chosen.any():
                continue
            if best is None or chosen.sum() > best[0]:
                best = int(chosen.sum()), line.begin_s[chosen], line.end_s[chosen]
    if best is None:
        return None
    count, begin, end = best
    if count < _LEAST_MARKERS:
        edges, notes = np.array([begin[0], end[0]]), ("The profile holds one step only.",)
        return Steps(edges_s=edges, how="markers", retraced={}, notes=notes)
    return Steps(edges_s=begin, how="markers", retraced=_retraced(profile), notes=())


def _by_calls(profile: Profile) -> Steps | None:
    """Return the function that takes most of the time in several calls: Keras 3 sets no markers."""
    best: tuple[bool, float, str, Times] | None = None
    for plane, line in _host_lines(profile):
        if line.name.startswith("tf_data"):
            continue
        for name, members in _functions(plane, line).items():
            chosen = np.isin(line.name_index, members)
            # A call may note itself twice, one inside of the other, as those of JAX do.
            calls = merged(line.begin_s[chosen], line.end_s[chosen])
            key = (not name.rstrip().endswith("Run"), calls.total_s, name, calls.begin_s)
            if calls.begin_s.size >= _LEAST_STEPS and (best is None or key[:2] > best[:2]):
                best = key
    if best is None:
        return None
    name = best[2].rstrip()
    note = (
        f"The profile has no step markers: each call of {name} counts as one step "
        "(with steps_per_execution above 1 it is several)."
    )
    return Steps(edges_s=best[3], how="calls", retraced=_retraced(profile), notes=(note,))


def _functions(plane: Plane, line: Line) -> dict[str, list[int]]:
    """Return events that are calls of each function.

    Keras names the functions of training and of validation alike: few versions are different
    functions, many are one that is traced again and again.
    """
    versions: dict[str, list[int]] = {}
    for at in np.unique(line.name_index).tolist():
        if at >= 0 and (name := called(plane.names[at])):
            versions.setdefault(name, []).append(at)
    found: dict[str, list[int]] = {}
    for name, members in versions.items():
        if len(members) >= limit("least_traces"):
            found[name] = members
        else:
            found |= {name + " " * place: [at] for place, at in enumerate(members)}
    return found


def _by_pattern(sequence: Sequence) -> Steps | None:
    """Begin a step at an operation that comes once in each, where all that lies between repeats.

    Of periods that repeat equally well the shortest is taken; of the operations that could begin it
    (a profile begins and ends inside of a step, so they differ by one in number) the one before
    which the device rests longest.
    """
    size = min(sequence.begin_s.size, _MOST_EVENTS)
    begin, index = sequence.begin_s[:size], sequence.name_index[:size]
    if size < _LEAST_STEPS:
        return None
    counts = np.bincount(index)
    anchors = np.flatnonzero(counts >= _LEAST_STEPS)
    anchors = anchors[np.argsort(counts[anchors], kind="stable")][:_MOST_ANCHORS]
    scored = [
        (*_likeness(index, int(anchor)), int(counts[anchor]), int(anchor)) for anchor in anchors
    ]
    scored = [one for one in scored if one[0] >= limit("least_alike_ratio")]
    if not scored:
        return None
    best = max(regular for _, regular, _, _ in scored)
    alike = [one for one in scored if one[1] >= best - limit("alike_slack_ratio")]
    count = max(one[2] for one in alike)
    pauses = np.diff(begin, prepend=begin[0])
    likeness, first = max(
        ((one[0], one[3]) for one in alike if one[2] >= count - 1),
        key=lambda one: float(np.median(pauses[index == one[1]][1:])),
    )
    name = f" ({sequence.names[first][:60]})" if sequence.names else ""
    note = (
        "The profile has no step markers: steps are derived from the pattern of operations that "
        f"repeats, each from one start of the same operation{name} to the next; {likeness:.0%} of "
        "all operations repeat from step to step."
    )
    edges = begin[index == first]
    return Steps(edges_s=edges, how="pattern", retraced={}, notes=(note,))


def _likeness(index: NDArray[np.int64], anchor: int) -> tuple[float, float]:
    """Return how alike the stretches between two starts of ``anchor`` are.

    Returns:
        The share of operations that each stretch has like the others, and the share of those that
        lie in stretches like the others. The first falls a little by what comes every other step,
        the second falls where ``anchor`` is in a loop inside of the step.
    """
    places = np.flatnonzero(index == anchor)
    inner = index[places[0] : places[-1]]
    stretch = np.searchsorted(places - places[0], np.arange(inner.size), side="right") - 1
    count = places.size - 1
    # What comes less often than stretches do is usual in none of them: a table of it would hold
    # mere zeros, too many where names never come again.
    is_rare = np.bincount(inner, minlength=int(index.max()) + 1) <= count // 4
    rare = np.bincount(stretch[is_rare[inner]], minlength=count)
    often, kinds = ~is_rare[inner], int((~is_rare).sum())
    code = stretch[often] * kinds + (np.cumsum(~is_rare) - 1)[inner[often]]
    table = np.bincount(code, minlength=count * kinds).reshape(count, kinds)
    usual = np.median(table, axis=0)
    unlike = np.abs(table - usual).sum(axis=1) + rare
    outside = index.size - inner.size  # before the first and after the last start
    beyond = max(0.0, outside - 2 * inner.size / count)
    is_other = unlike > limit("unlike_ratio") * usual.sum()
    irregular = float((table.sum(axis=1) + rare)[is_other].sum()) + beyond
    return 1 - (float(unlike.sum()) + beyond) / index.size, 1 - irregular / index.size


def _retraced(profile: Profile) -> dict[str, int]:
    """Find functions with more traces than training, validation and prediction explain."""
    versions: dict[str, set[str]] = {}
    for plane, line in _host_lines(profile):
        for at in np.unique(line.name_index):
            name = plane.names[at] if at >= 0 else ""
            if name.startswith("EagerLocalExecute") and (function := called(name)):
                versions.setdefault(function, set()).add(name)
    least = limit("least_traces")
    return {name: len(found) for name, found in versions.items() if len(found) >= least}


def _host_lines(profile: Profile) -> Iterable[tuple[Plane, Line]]:
    for plane in profile.planes:
        if is_host(plane):
            yield from ((plane, line) for line in plane.lines if line.begin_s.size)
