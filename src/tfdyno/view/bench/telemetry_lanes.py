"""Telemetry of all runs as lanes over one time axis, the runs one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tfdyno.core.base.units import GIB, MIB
from tfdyno.core.measure.measurement import MISSING
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.measure.measurement import BenchRun, CardTelemetry
    from tfdyno.view.bench.runs import ShownRun

MOST_CARDS = 4
"""Drawn with a line of their own; of more the mean is drawn."""
_CARD_COLOURS = ("c1", "c3", "c4", "c2")

Column = tuple[float | None, ...]
"""One value per point of a run; None: it could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One quantity over all runs."""

    name: str
    """Empty where a lane has one line."""
    colour: str
    runs: tuple[Column, ...]
    card: bool = False
    """Whether it is one of several cards: their colours are the same in all lanes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Lines of one unit."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    least_end: float = 0.0
    """The axis ends here at least: 100 for shares."""
    marked: tuple[tuple[bool, ...], ...] = field(default=())
    """Points of each run at which the card lowered its clock."""

    @property
    def end(self) -> float:
        """The greatest value, or where the axis ends at least."""
        values = [v for one in self.lines for run in one.runs for v in run if v is not None]
        return max([self.least_end, *values]) or 1.0


def lanes(runs: Sequence[ShownRun]) -> tuple[Lane, ...]:
    """Return the lanes that have something to show: none of a GPU where there was none."""
    bench = [one.run for one in runs]
    found = (*_card_lanes(bench), *_host_lanes(bench))
    return tuple(lane for lane in found if lane.lines)


def _card_lanes(runs: Sequence[BenchRun]) -> tuple[Lane, ...]:
    count = max((len(run.telemetry.cards) for run in runs), default=0)
    if not count:
        return ()

    def read(title: str, unit: str, name: str, scale: float, least_end: float = 0.0) -> Lane:
        lines = _card_lines(runs, count, lambda card: getattr(card, name), scale)
        return Lane(title=title, unit=unit, lines=lines, least_end=least_end)

    clocks = read(say("Graphics clock"), "MHz", "graphics_clock_hz", 1e-6)
    others = _card_lines(runs, count, lambda card: card.other_memory_bytes, 1.0 / GIB)
    memory = read(say("GPU memory in use"), "GiB", "memory_bytes", 1.0 / GIB)
    if count == 1 and others and any(v for column in others[0].runs for v in column):
        memory = _joined(
            memory, Line(name=say("of it by others"), colour="c2", runs=others[0].runs)
        )
    return (
        read(say("GPU busy"), "%", "utilisation_ratio", 100.0, 100.0),
        memory,
        read(say("Power||lane"), "W", "power_w", 1.0),
        read(say("Temperature"), "°C", "temperature_celsius", 1.0),
        replace(clocks, marked=tuple(_throttled(run) for run in runs)),
        read(say("Memory clock"), "MHz", "memory_clock_hz", 1e-6),
    )  # fmt: skip


def _joined(lane: Lane, more: Line) -> Lane:
    first = lane.lines[0]
    named = Line(name=say("all"), colour=first.colour, runs=first.runs)
    return replace(lane, lines=(named, more))


def _throttled(run: BenchRun) -> tuple[bool, ...]:
    told = [card.throttle for card in run.telemetry.cards if card.throttle]
    return tuple(any(reasons[at] for reasons in told) for at in range(len(run.telemetry.at_s)))


def _card_lines(
    runs: Sequence[BenchRun],
    count: int,
    read: Callable[[CardTelemetry], Sequence[float]],
    scale: float,
) -> tuple[Line, ...]:
    """Return a line for each card, or one of the mean; none where no card tells of it."""
    each = [
        tuple(_scaled(read(cards[at]), scale) if at < len(cards := run.telemetry.cards) else ()
              for run in runs)
        for at in range(count)
    ]  # fmt: skip
    if not any(column for card in each for column in card):
        return ()
    if count > MOST_CARDS:
        means = tuple(_mean([card[at] for card in each]) for at in range(len(runs)))
        return (Line(name=say("mean of {count} cards", count=count), colour="c1", runs=means),)
    return tuple(
        Line(
            name=say("card {number}", number=at) if count > 1 else "",
            colour=_CARD_COLOURS[at],
            runs=card,
            card=count > 1,
        )
        for at, card in enumerate(each)
    )


def _mean(columns: Sequence[Column]) -> Column:
    found: list[float | None] = []
    for values in zip(*(column for column in columns if column), strict=True):
        known = [value for value in values if value is not None]
        found.append(sum(known) / len(known) if known else None)
    return tuple(found)


def _host_lanes(runs: Sequence[BenchRun]) -> tuple[Lane, ...]:
    told = [run.telemetry for run in runs]
    rates = (
        (say("read||disk"), "c1", [_rate(t.at_s, t.disk_read_bytes) for t in told]),
        (say("written||disk"), "c2", [_rate(t.at_s, t.disk_write_bytes) for t in told]),
    )
    shares = (
        (say("this run"), "c1", [_scaled(t.cpu_ratio, 100.0) for t in told]),
        (say("other processes"), "c2", [_scaled(t.other_cpu_ratio, 100.0) for t in told]),
    )
    memory = (("", "c1", [_scaled(t.memory_bytes, 1.0 / GIB) for t in told]),)
    return (
        Lane(title=say("CPU busy, of all"), unit="%", lines=_lines(shares), least_end=100.0),
        Lane(title=say("Memory of the process"), unit="GiB", lines=_lines(memory)),
        Lane(title=say("Disk"), unit="MiB/s", lines=_lines(rates), least_end=1.0),
    )


def _lines(found: Sequence[tuple[str, str, Sequence[Column]]]) -> tuple[Line, ...]:
    return tuple(
        Line(name=name, colour=colour, runs=tuple(columns))
        for name, colour, columns in found
        if any(columns)
    )


def _scaled(values: Sequence[float], scale: float) -> Column:
    return tuple(None if value == MISSING else value * scale for value in values)


def _rate(at_s: Sequence[float], counter_bytes: Sequence[int]) -> Column:
    """Return MiB/s between each point and the one before; None at the first."""
    if not counter_bytes:
        return ()
    found: list[float | None] = [None]
    for (t0, b0), (t1, b1) in pairwise(zip(at_s, counter_bytes, strict=True)):
        unknown = MISSING in (b0, b1) or t1 <= t0
        found.append(None if unknown else (b1 - b0) / (t1 - t0) / MIB)
    return tuple(found)
