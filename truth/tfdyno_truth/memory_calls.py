"""Whether a step fits its card: what measurements prove, and what the estimate says."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import memory_model
from tfdyno.core.base.interval import Interval
from tfdyno.model.time.memory import Verdict, verdict
from tfdyno_truth.memory_held import Records, predicted
from tfdyno_truth.rows import Row
from tfdyno_truth.suspicious import decisions

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

FLOOR = 0.95
"""Share of the calls whether a step fits that must be right."""
RAN, LIMIT, BEYOND = "ran", "largest batch", "beyond the largest"
TIGHT = 0.5
"""Share of a card from which on a step is near enough to its limit to be misjudged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Whether a step fits its card: what is known of it, and what the estimate says."""

    row: Row
    batch_size: int
    about: str
    """``RAN``, ``LIMIT`` or ``BEYOND``."""
    fits: bool
    """The truth."""
    device_bytes: Interval
    usable_bytes: float
    verdict: Verdict
    """What the estimate says in words, without a compile at the batch."""

    @property
    def said(self) -> bool:
        """What the best figure says: it decides the largest batch of an estimate."""
        return self.device_bytes.best <= self.usable_bytes

    @property
    def right(self) -> bool:
        """Whether the best figure is on the right side of the limit."""
        return self.said == self.fits

    @property
    def certain(self) -> bool:
        """Whether the estimate says yes or no without a doubt."""
        return self.verdict in ("yes", "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many of some calls are right."""

    label: str
    calls: int
    fitting: int
    """For how many of them it is true that the step fits."""
    right: int
    groups: int
    group_share: float
    """Share of right calls, averaged in groups of model, card, precision, mode and execution."""
    certain: int
    """Calls that the estimate makes without a doubt."""
    certain_right: int

    @property
    def share(self) -> float:
        """Share of right calls."""
        return self.right / self.calls


def calls(rows: Iterable[Row], records: Records) -> Iterator[Call]:
    """Every call whose truth is known: TensorFlow's runs, and largest batches.

    A published run fitted its card, or there would be no time. A source that names the largest
    batch says that twice as much does not fit, and 0 that one sample does not.
    """
    mine = [row for row in rows if row.framework == "tensorflow"]
    alone = [row for row in mine if row.gpus == 1 and row.step_s > 0.0]
    decided = decisions(alone)
    for row in mine:
        line = decided.get(row.number)
        if line is not None and line.decision == "excluded":
            continue
        if row.memory_kind == "limit":
            if row.batch_size:
                yield _call(row, records, row.batch_size, LIMIT)
            yield _call(row, records, 2 * row.batch_size or 1, BEYOND)
        elif row.step_s > 0.0:
            yield _call(row, records, row.batch_size, RAN)


def tallies(calls: Iterable[Call]) -> Iterator[Tally]:
    """All calls, the tight ones, those of runs by execution and mode, and those about limits."""
    known = tuple(calls)
    parts: defaultdict[str, list[Call]] = defaultdict(list)
    for call in known:
        row = call.row
        ran = f"ran: {row.execution}, {row.mode}"
        parts[ran if call.about == RAN else call.about].append(call)
    yield _tally("all", known)
    tight = [call for call in known if call.device_bytes.best > TIGHT * call.usable_bytes]
    yield _tally(f"needs over {TIGHT:.0%} of the card", tight)
    yield from (_tally(label, parts[label]) for label in sorted(parts, reverse=True))


def worst(calls: Iterable[Call]) -> dict[Call, int]:
    """Wrong calls and of how many rows each is, furthest from the limit first."""
    found: defaultdict[Hashable, list[Call]] = defaultdict(list)
    for call in calls:
        if not call.right:
            found[(call.row.function, *_group(call), call.batch_size, call.about)].append(call)
    ordered = sorted(found.values(), key=lambda same: -_distance(same[0]))
    return {same[0]: len(same) for same in ordered}


def _call(row: Row, records: Records, batch_size: int, about: str) -> Call:
    program, held = predicted(row, records, batch_size)
    usable = float(find(row.slug).usable_memory_bytes)
    return Call(
        row=row,
        batch_size=batch_size,
        about=about,
        fits=about != BEYOND,
        device_bytes=held.device_bytes,
        usable_bytes=usable,
        verdict=verdict(program, held, usable_bytes=usable, verified=False, model=memory_model()),
    )


def _tally(label: str, calls: Iterable[Call]) -> Tally:
    known = tuple(calls)
    groups: defaultdict[Hashable, list[bool]] = defaultdict(list)
    for call in known:
        groups[_group(call)].append(call.right)
    certain = [call for call in known if call.certain]
    return Tally(
        label=label,
        calls=len(known),
        fitting=sum(call.fits for call in known),
        right=sum(call.right for call in known),
        groups=len(groups),
        group_share=fmean(map(fmean, groups.values())),
        certain=len(certain),
        certain_right=sum((call.verdict == "yes") == call.fits for call in certain),
    )


def _group(call: Call) -> tuple[str, ...]:
    return (*call.row.group, call.row.execution)


def _distance(call: Call) -> float:
    ratio = call.device_bytes.best / call.usable_bytes
    return max(ratio, 1.0 / ratio)
