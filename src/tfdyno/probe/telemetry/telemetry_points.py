"""Points of a moment put together as lists of equal length."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tfdyno.core.measure.measurement import MISSING, CardTelemetry, Telemetry
from tfdyno.probe.cards.cards import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPoint:
    """One card at one moment."""

    index: int
    reading: Reading = field(default_factory=Reading)
    other_memory_bytes: int | None = None
    """Held by processes that are not the child's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One moment; None: it could not be read."""

    at_s: float
    cpu_ratio: float | None = None
    other_cpu_ratio: float | None = None
    memory_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    cards: tuple[CardPoint, ...] = ()
    """The same cards in the same order at every point."""


def assemble(points: Sequence[Point], *, interval_s: float, cost_ratio: float) -> Telemetry:
    """Return all points as lists of equal length.

    ``MISSING`` stands for a point that could not be read; a list of nothing else is left empty.
    """
    count = len(points[0].cards) if points else 0
    return Telemetry(
        interval_s=interval_s,
        at_s=tuple(round(one.at_s, 3) for one in points),
        cpu_ratio=_ratios(one.cpu_ratio for one in points),
        other_cpu_ratio=_ratios(one.other_cpu_ratio for one in points),
        memory_bytes=_column(one.memory_bytes for one in points),
        disk_read_bytes=_rising(_column(one.disk_read_bytes for one in points)),
        disk_write_bytes=_rising(_column(one.disk_write_bytes for one in points)),
        cards=tuple(_card([one.cards[index] for one in points]) for index in range(count)),
        cost_ratio=cost_ratio,
    )


def foreign_bytes(
    processes: Sequence[tuple[int, int]] | None,
    own: frozenset[int],
    before: frozenset[int],
    exists: Callable[[int], bool] | None = None,
) -> int | None:
    """Return memory of a card that processes other than the child's hold.

    In a container the driver may name processes by numbers of the host, the child's too. So only
    those count that were there before the child used the card, or that exist beside it here.

    Args:
        processes: Identifier and bytes of those that compute on the card; None: unknown.
        own: The child and its descendants.
        before: Identifiers on the card before the child used it.
        exists: Whether this system has such a process.
    """
    if processes is None:
        return None
    exists = exists or _exists
    return sum(used for pid, used in processes if pid not in own and (pid in before or exists(pid)))


def _exists(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}") or not os.path.exists("/proc/self")  # noqa: PTH110


def _card(points: Sequence[CardPoint]) -> CardTelemetry:
    readings = [one.reading for one in points]
    throttle = tuple(one.throttle for one in readings)
    return CardTelemetry(
        index=points[0].index,
        utilisation_ratio=_column(one.utilisation_ratio for one in readings),
        memory_bytes=_column(one.memory_bytes for one in readings),
        other_memory_bytes=_column(one.other_memory_bytes for one in points),
        power_w=_column(one.power_w for one in readings),
        temperature_celsius=_column(one.temperature_celsius for one in readings),
        graphics_clock_hz=_column(one.graphics_clock_hz for one in readings),
        memory_clock_hz=_column(one.memory_clock_hz for one in readings),
        throttle=tuple(one or () for one in throttle) if any(map(_known, throttle)) else (),
        corrected_errors=_column(one.corrected_errors for one in readings),
        uncorrected_errors=_column(one.uncorrected_errors for one in readings),
    )


def _column(values: Iterable[N | None]) -> tuple[N, ...]:
    column = tuple(values)
    if not any(map(_known, column)):
        return ()
    return tuple(MISSING if value is None else value for value in column)


def _ratios(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in _column(values))


def _rising(column: tuple[int, ...]) -> tuple[int, ...]:
    """Return a counter never falls: what a process wrote that has ended still counts."""
    highest, risen = MISSING, []
    for value in column:
        highest = max(highest, value)
        risen.append(value if value == MISSING else highest)
    return tuple(risen)


def _known(value: object) -> bool:
    return value is not None
