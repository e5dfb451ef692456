"""Stretches of time: which there are, and what share of each step lies in which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Times = NDArray[np.float64]
Chosen = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Stretches that do not touch, in order."""

    begin_s: Times
    end_s: Times

    @property
    def total_s(self) -> float:
        """All of them together."""
        return float((self.end_s - self.begin_s).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Time cut wherever anything begins or ends: each piece is inside or outside of each kind."""

    begin_s: Times
    end_s: Times
    inside: dict[str, Chosen]

    @property
    def length_s(self) -> Times:
        """The length of each piece."""
        return self.end_s - self.begin_s


def merged(begin_s: Times, end_s: Times) -> Spans:
    """Return the union of stretches in any order, which may overlap; empty ones are left out."""
    real = end_s > begin_s
    begin_s, end_s = begin_s[real], end_s[real]
    if not begin_s.size:
        return Spans(begin_s=begin_s, end_s=end_s)
    order = np.argsort(begin_s, kind="stable")
    begin_s, reach = begin_s[order], np.maximum.accumulate(end_s[order])
    first = np.concatenate(([True], begin_s[1:] > reach[:-1]))
    last = np.concatenate((np.flatnonzero(first)[1:] - 1, [begin_s.size - 1]))
    return Spans(begin_s=begin_s[first], end_s=reach[last])


def cut(edges_s: Times, kinds: Mapping[str, Spans]) -> Pieces:
    """Cut the time from the first to the last edge.

    Args:
        edges_s: Where steps begin and the last one ends, in order.
        kinds: Stretches by name; those outside of the edges do not count.
    """
    marks = [edges_s, *(t for spans in kinds.values() for t in (spans.begin_s, spans.end_s))]
    points = np.unique(np.concatenate(marks))
    points = points[(points >= edges_s[0]) & (points <= edges_s[-1])]
    begin, end = points[:-1], points[1:]
    inside = {name: covers(spans, begin) for name, spans in kinds.items()}
    return Pieces(begin_s=begin, end_s=end, inside=inside)


def covers(spans: Spans, at_s: Times) -> Chosen:
    """Return whether each moment lies in a stretch (its begin does, its end does not)."""
    if not spans.begin_s.size:
        return np.zeros(at_s.size, bool)
    place = np.searchsorted(spans.begin_s, at_s, side="right") - 1
    return (place >= 0) & (spans.end_s[np.maximum(place, 0)] > at_s)


def run_lengths(length_s: Times, chosen: Chosen) -> Times:
    """Return the length of each chosen piece's unbroken run of chosen ones; else 0."""
    if not length_s.size:
        return length_s
    starts = np.concatenate(([True], chosen[1:] != chosen[:-1]))
    run = np.cumsum(starts) - 1
    totals = np.bincount(run, weights=length_s)
    return np.where(chosen, totals[run], 0.0)


def per_step(pieces: Pieces, chosen: Chosen, edges_s: Times) -> Times:
    """Return seconds of the chosen pieces in each step."""
    step = np.searchsorted(edges_s, pieces.begin_s, side="right") - 1
    totals = np.zeros(edges_s.size - 1)
    np.add.at(totals, step, np.where(chosen, pieces.length_s, 0.0))
    return totals


def own_times(begin_s: Times, end_s: Times) -> Times:
    """Return what each stretch of one thread lasts less those that lie inside of it.

    Args:
        begin_s: In order; of two that begin together the longer one comes first.
        end_s: Their ends.
    """
    if (begin_s[1:] >= np.maximum.accumulate(end_s)[:-1]).all():
        return np.maximum(end_s - begin_s, 0.0)  # none lies inside of another
    own = (end_s - begin_s).tolist()
    begins, ends = begin_s.tolist(), end_s.tolist()
    open_ones: list[int] = []
    for at, begin in enumerate(begins):
        while open_ones and ends[open_ones[-1]] <= begin:
            open_ones.pop()
        if open_ones:
            own[open_ones[-1]] -= min(ends[at], ends[open_ones[-1]]) - begin
        open_ones.append(at)
    return np.maximum(np.array(own, np.float64), 0.0)


def shared_times(lines: Sequence[tuple[Times, Times]]) -> list[Times]:
    """Own times of the stretches of several threads, an instant shared by all that work in it.

    On a clock that runs ``n`` times slower while ``n`` threads work, the own times of all stretches
    add up to the time in which any of them worked.

    Args:
        lines: Begins and ends of each thread, in order as ``own_times`` wants them.
    """
    spans = [merged(begin_s, end_s) for begin_s, end_s in lines]
    begins, ends = joined([one.begin_s for one in spans]), joined([one.end_s for one in spans])
    if not begins.size:
        return [np.zeros(begin_s.size) for begin_s, _ in lines]
    points, place = np.unique(np.concatenate((begins, ends)), return_inverse=True)
    change = np.repeat((1, -1), begins.size)
    working = np.cumsum(np.bincount(place, weights=change))[:-1]
    passed = np.diff(points) / np.maximum(working, 1.0) * (working > 0.5)
    clock = np.concatenate(([0.0], np.cumsum(passed)))
    return [
        own_times(np.interp(begin_s, points, clock), np.interp(end_s, points, clock))
        for begin_s, end_s in lines
    ]


def joined(arrays: Sequence[Times]) -> Times:
    """Return one array of several; empty of none."""
    return np.concatenate(arrays) if arrays else np.zeros(0)
