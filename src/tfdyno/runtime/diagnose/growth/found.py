"""Whether memory grows with the steps, from what is resident and from what is seen to be held."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from tfdyno.core.measure.step_facts import GrowthFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.interval import Interval

Kind = Literal["tensors", "functions", "logs", "iterators", "objects", "unknown"]


LEAST_BYTES_PER_STEP = 512.0
"""Growth that is told where its holder is known: in a million steps, a long training, it adds up
to half a gigabyte."""
LEAST_UNKNOWN_BYTES_PER_STEP = 64 * 1024.0
"""Growth that is told though nothing is seen to hold it. Below that, allocators that warm up look
the same for some hundred steps; 100,000 steps of it are 6.5 GB, more than many machines spare."""
LEAST_COUNTED_BYTES_PER_STEP = 4 * 1024.0
"""The same where an allocator counts what is in use: five healthy trainings moved by less than 600
bytes a step, either way."""
_MOST_SUSPECTS = 5
_PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """Something that grows, with what it adds per step."""

    words: str
    kind: Kind
    bytes_per_step: float
    low_bytes_per_step: float
    is_bounded: bool = False
    """It grows until it is full, as ``deque(maxlen=...)``: that is no leak."""


def rising(series: Sequence[tuple[int, int]], noise: int = 0) -> tuple[float, float]:
    """Return growth per step: the least of up to five equal parts of the time, and over the whole.

    Args:
        series: Step and size of each look.
        noise: A rise by no more than this in all is none.

    Returns:
        0 and 0 where there is a part in which it did not rise.
    """
    if len(series) < 2 or series[-1][1] - series[0][1] <= noise:
        return 0.0, 0.0
    series = _spread(series)
    parts = [(two[1] - one[1]) / (two[0] - one[0]) for one, two in pairwise(series)]
    best = (series[-1][1] - series[0][1]) / (series[-1][0] - series[0][0])
    return (min(parts), best) if min(parts) > 0 else (0.0, 0.0)


def _spread(series: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keep looks at about equal distances: growth at every tenth step then shows in each part."""
    first, last = series[0][0], series[-1][0]
    wanted = [first + (last - first) * number / _PARTS for number in range(_PARTS + 1)]
    chosen = [min(series, key=lambda one: abs(one[0] - at)) for at in wanted]
    return sorted(set(chosen))


def growth(
    where: Literal["host", "device"],
    measured: Interval | None,
    suspects: Sequence[Suspect],
    *,
    is_counted: bool = False,
) -> GrowthFacts | None:
    """Return how memory grows, from its measured size and from what is seen to be held.

    Args:
        where: Whose memory it is.
        measured: Of its size from step to step; None: too few steps, or it cannot be read.
        suspects: What was seen to become more.
        is_counted: Whether the size is what an allocator has in use, not pages of a process.

    Returns:
        None where it does not grow, or too little to matter.
    """
    leaks = [one for one in suspects if not one.is_bounded]
    ranked = sorted(leaks, key=lambda one: -one.bytes_per_step)
    held_best = sum(one.bytes_per_step for one in ranked[:1])
    held_low = sum(one.low_bytes_per_step for one in ranked[:1])
    filled = sum(one.bytes_per_step for one in suspects if one.is_bounded and where == "host")
    low, best, high = (measured.low, measured.best, measured.high) if measured else (0.0, 0.0, 0.0)
    low, best, high = low - filled, best - filled, high - filled
    is_sure = is_counted and low >= LEAST_BYTES_PER_STEP
    if where == "host" and held_low >= LEAST_BYTES_PER_STEP:
        if not is_sure:
            best, low = max(best, held_best), max(low, held_low)
    elif low < _least(ranked, is_counted=is_counted or where == "device"):
        if where == "device" or best < LEAST_BYTES_PER_STEP or not any(map(_is_kept_graph, ranked)):
            return None
        low = LEAST_BYTES_PER_STEP  # each of them holds a graph, whatever the allocator does
    told = [one for one in ranked if _matters(one, best)]
    return GrowthFacts(
        where=where,
        bytes_per_step=best,
        low_bytes_per_step=low,
        high_bytes_per_step=max(high, best),
        suspects=tuple(one.words for one in told[:_MOST_SUSPECTS]),
        kind=told[0].kind if told else "unknown",
    )


def _least(suspects: Sequence[Suspect], *, is_counted: bool) -> float:
    """Return the least growth that is told: functions and iterators hold what Python cannot see."""
    if any(one.kind in ("functions", "iterators") for one in suspects):
        return LEAST_BYTES_PER_STEP
    return LEAST_COUNTED_BYTES_PER_STEP if is_counted else LEAST_UNKNOWN_BYTES_PER_STEP


def _is_kept_graph(one: Suspect) -> bool:
    """Return whether it is functions that an object made at a line of the user's holds."""
    return one.kind == "functions" and ".py:" in one.words


def _matters(one: Suspect, best: float) -> bool:
    """Return whether it is 1 % of the growth, or of a kind whose memory Python does not show."""
    return one.kind in ("functions", "iterators") or one.bytes_per_step >= best / 100
