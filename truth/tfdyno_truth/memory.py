"""Everything published that says something about predicted device memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

from tfdyno_truth.memory_calls import Call, Tally, calls, tallies, worst
from tfdyno_truth.memory_held import Records, predicted
from tfdyno_truth.rows import Row, read_rows

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator
    from pathlib import Path

BOUND_SLACK = 1.05
"""What an allocator has reserved is at least what a program needs, but for rounding."""
WITH_CONTEXT = ("nvml", "reserved")
"""Kinds that measure the whole process; ``allocated`` is that of its tensors alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A published figure beside the prediction of the same quantity."""

    row: Row
    predicted_bytes: float

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted_bytes / self.row.memory_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """All figures that were measured in one way."""

    name: str
    """``nvml``, ``reserved`` or ``allocated``."""
    rows: int
    groups: int
    mean: float
    """Mean of the relative errors, averaged in groups first."""
    median: float
    bias: float
    """Predicted over measured, median."""
    above: float
    """Share of the groups predicted above the measured figure by more than ``BOUND_SLACK``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScores:
    """Everything published that says something about predicted memory."""

    kinds: tuple[Kind, ...]
    tallies: tuple[Tally, ...]
    """All calls first, then parts of them."""
    calls: tuple[Call, ...]
    wrong: tuple[Call, ...]
    """The worst first, one for each workload, batch and card."""
    wrong_rows: dict[Call, int]
    """Of how many rows each of them is."""


def memory_scores(folder: Path) -> MemoryScores:
    """Judge the memory that the shipped constants give to the stored programs.

    Args:
        folder: Kernel records; their buffer plans are those of ``tfdyno estimate``.

    Raises:
        UsageError: There is no record of a row; says how to make it.
    """
    records = Records(folder=folder)
    rows = read_rows()
    judged = tuple(calls(rows, records))
    wrong = worst(judged)
    return MemoryScores(
        kinds=tuple(kinds(compared(rows, records))),
        tallies=tuple(tallies(judged)),
        calls=judged,
        wrong=tuple(wrong),
        wrong_rows=wrong,
    )


def compared(rows: Iterable[Row], records: Records) -> Iterator[Compared]:
    """Published figures of runs on one GPU; what ``gpus`` holds shares none of it."""
    for row in rows:
        if row.memory_kind not in ("", "limit"):
            held = predicted(row, records)[1]
            whole = row.memory_kind in WITH_CONTEXT
            best = held.device_bytes.best if whole else held.peak_bytes.best
            yield Compared(row=row, predicted_bytes=best)


def kinds(found: Iterable[Compared]) -> Iterator[Kind]:
    """Scores of every kind of figure, never mixed: they measure different things."""
    by_kind: defaultdict[str, dict[Hashable, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        by_kind[one.row.memory_kind][one.row.group].append(one.ratio)
    for name, groups in sorted(by_kind.items()):
        errors = [fmean(abs(ratio - 1.0) for ratio in group) for group in groups.values()]
        yield Kind(
            name=name,
            rows=sum(map(len, groups.values())),
            groups=len(groups),
            mean=fmean(errors),
            median=median(errors),
            bias=median(fmean(group) for group in groups.values()),
            above=fmean(fmean(group) > BOUND_SLACK for group in groups.values()),
        )
