"""What telemetry that was recorded beside steps tells: of the host, the cards, and memory."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING

from tfdyno.core.measure.step_facts import (
    LONG_RATIO,
    CardFacts,
    GrowthFacts,
    HostFacts,
    StallFacts,
)
from tfdyno.model.measure.statistics import mean, median
from tfdyno.model.memory.growth import slope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tfdyno.core.measure.measurement import Card, CardTelemetry, Environment, Telemetry

Part = tuple["Telemetry", "Sequence[int]"]
"""Telemetry of a process, and which of its points lie in its steps."""


def host_facts(parts: Sequence[Part], environment: Environment) -> HostFacts:
    """Return how busy the CPUs were; a record does not tell of threads and limits."""
    cpus = environment.cpu_count
    return HostFacts(
        cpus=cpus,
        usable_cpus=float(cpus),
        cpu_ratio=_mean(_at(parts, lambda one: one.cpu_ratio)),
        other_cpu_ratio=_mean(_at(parts, lambda one: one.other_cpu_ratio)),
    )


def card_facts(parts: Sequence[Part], environment: Environment) -> tuple[CardFacts, ...]:
    """Return what each card did; empty where none was watched."""
    count = max((len(told.cards) for told, _ in parts), default=0)
    return tuple(_card(parts, at, _known(environment, at)) for at in range(count))


def growth_facts(parts: Sequence[Part], step_s: float) -> tuple[GrowthFacts, ...]:
    """Return how the process grows from step to step, by the longest of the parts.

    Args:
        parts: Of their points, those after the first epoch: until then caches and buffers fill.
        step_s: A step, with its share of the epoch.
    """
    if not parts or step_s <= 0:
        return ()
    told, points = max(parts, key=lambda part: len(part[1]))
    known = [at for at in points if told.memory_bytes and told.memory_bytes[at] > 0]
    steps = [told.at_s[at] / step_s for at in known]
    found = slope(steps, [float(told.memory_bytes[at]) for at in known])
    if found is None or found.low <= 0:
        return ()
    return (
        GrowthFacts(
            where="host",
            bytes_per_step=found.best,
            low_bytes_per_step=found.low,
            high_bytes_per_step=found.high,
        ),
    )


def long_firsts(
    samples_s: Sequence[float], steps: Sequence[int], firsts: Sequence[int]
) -> tuple[StallFacts, ...]:
    """Return samples that begin an epoch and take much longer than the one in the middle.

    Args:
        samples_s: Seconds per step.
        steps: Of each sample.
        firsts: Places of those that begin an epoch.
    """
    if not samples_s:
        return ()
    least_s, last = LONG_RATIO * median(samples_s), list(accumulate(steps))
    return tuple(
        StallFacts(
            step=last[at], steps=steps[at], whole_s=samples_s[at], is_first_of_epoch=True
        )
        for at in firsts if 0 <= at < len(samples_s) and samples_s[at] > least_s
    )  # fmt: skip


def _card(parts: Sequence[Part], place: int, known: Card | None) -> CardFacts:
    def read(name: str) -> list[float]:
        return _at_card(parts, place, lambda card: getattr(card, name))

    seen = [card.throttle[at] for card, points in _cards(parts, place) if card.throttle
            for at in points]  # fmt: skip
    reasons = Counter(reason for one in seen for reason in one)
    return CardFacts(
        name=known.name if known else "",
        busy_ratio=_mean(read("utilisation_ratio")),
        power_w=_mean(read("power_w")),
        power_limit_w=known.power_limit_w if known else 0.0,
        clock_hz=_mean(read("graphics_clock_hz")),
        clock_limit_hz=known.graphics_clock_limit_hz if known else 0.0,
        lowered_ratio=sum(map(bool, seen)) / len(seen) if seen else 0.0,
        reasons=tuple(reason for reason, _ in reasons.most_common()),
        other_memory_bytes=int(max(read("other_memory_bytes"), default=0)),
        corrected_errors=sum(
            _risen([card.corrected_errors[at] for at in points])
            for card, points in _cards(parts, place)
            if card.corrected_errors
        ),
        uncorrected_errors=int(max(read("uncorrected_errors"), default=0)),
    )


def _risen(counted: Sequence[int]) -> int:
    """Return by how much a counter rose over those of its points that could be read."""
    known = [value for value in counted if value >= 0]
    return max(0, known[-1] - known[0]) if known else 0


def _known(environment: Environment, place: int) -> Card | None:
    return environment.cards[place] if place < len(environment.cards) else None


def _cards(parts: Sequence[Part], place: int) -> Iterable[tuple[CardTelemetry, Sequence[int]]]:
    return ((told.cards[place], points) for told, points in parts if place < len(told.cards))


def _at_card(
    parts: Sequence[Part], place: int, read: Callable[[CardTelemetry], Sequence[float]]
) -> list[float]:
    found = [read(card)[at] for card, points in _cards(parts, place) if read(card) for at in points]
    return [value for value in found if value >= 0]  # below: this point could not be read


def _at(parts: Sequence[Part], read: Callable[[Telemetry], Sequence[float]]) -> list[float]:
    found = [read(told)[at] for told, points in parts if read(told) for at in points]
    return [value for value in found if value >= 0]


def _mean(values: Sequence[float]) -> float:
    return mean(values) if values else 0.0
