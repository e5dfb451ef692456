"""From the growth of a few hundred steps to the hour at which memory is full."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.memory_outlook import CountedBy, MemoryOutlook
from tfdyno.model.memory.growth import steps_until

_LEAST_BYTES_PER_STEP = 64.0
"""The least growth by an account that is exact to the byte: the smallest object of a tensor takes
more."""

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.step_facts import GrowthFacts, MemoryCourse, StepFacts


def outlooks(facts: StepFacts, step_s: float) -> tuple[MemoryOutlook, ...]:
    """Return how the host's memory moves, by its closest account, and that of each device.

    Args:
        facts: Of a look at the steps.
        step_s: The typical step, for the time until memory is full.
    """
    return tuple(_outlooks(facts, step_s))


def _outlooks(facts: StepFacts, step_s: float) -> Iterator[MemoryOutlook]:
    fastest_last = sorted(facts.growth, key=lambda one: one.low_bytes_per_step)
    growing = {one.where: one for one in fastest_last}
    courses: dict[str, MemoryCourse] = {}
    for one in facts.memory:
        if one.where not in courses or one.counted_by == "allocator":
            courses[one.where] = one
    if "host" not in courses and "host" in growing:
        yield _outlook(facts, "host", None, growing["host"], step_s)
    of_devices = growing.get("device")
    fastest = max(
        (one for one in courses.values() if one.where.startswith("GPU")),
        key=lambda one: one.low_bytes_per_step,
        default=None,
    )
    for where, course in courses.items():
        if where == "host":
            yield _outlook(facts, where, course, growing.get("host"), step_s)
        else:
            yield _outlook(facts, where, course, of_devices if course is fastest else None, step_s)


def _outlook(
    facts: StepFacts,
    where: str,
    course: MemoryCourse | None,
    growing: GrowthFacts | None,
    step_s: float,
) -> MemoryOutlook:
    """Return one place's outlook; ``course`` is missing where looks were too few for a slope."""
    rate = _rate(course, growing)
    free_bytes = course.free_bytes if course else 0
    grows = growing is not None or _is_counted_up(course)
    steps = _until_full(free_bytes, rate) if grows and free_bytes else None
    known = facts.steps_per_epoch * facts.epochs
    return MemoryOutlook(
        where=where,
        grows=grows,
        bytes_per_step=rate,
        counted_by=_counted_by(course, growing),
        steps=course.steps if course else facts.steps_seen,
        used_bytes=course.end_bytes if course else 0,
        free_bytes=free_bytes,
        full_in_steps=steps,
        full_in_s=steps.times(step_s) if steps else None,
        until_end_bytes=known * rate.best if grows and known else None,
        training_steps=known,
        kind=growing.kind if growing else "",
        suspects=growing.suspects if growing else (),
    )


def _is_counted_up(course: MemoryCourse | None) -> bool:
    """Return whether TensorFlow's own account of a device rises."""
    if course is None or course.where == "host":
        return False
    return course.low_bytes_per_step >= _LEAST_BYTES_PER_STEP


def _rate(course: MemoryCourse | None, growing: GrowthFacts | None) -> Interval:
    if growing:
        best, low = growing.bytes_per_step, growing.low_bytes_per_step
        return Interval(low=min(low, best), best=best, high=max(growing.high_bytes_per_step, best))
    assert course
    return Interval(low=course.low_bytes_per_step, best=course.bytes_per_step,
                    high=course.high_bytes_per_step)  # fmt: skip


def _counted_by(course: MemoryCourse | None, growing: GrowthFacts | None) -> CountedBy:
    """Count objects that were seen where they say more than the slope does."""
    if course is None or (growing and growing.bytes_per_step != course.bytes_per_step):
        return "objects"
    return course.counted_by


def _until_full(free_bytes: int, rate: Interval) -> Interval | None:
    """Turn the interval round: fast growth fills it early."""
    low, best, high = (steps_until(free_bytes, each) for each in (rate.high, rate.best, rate.low))
    return Interval(low=low, best=best, high=high) if math.isfinite(high) else None
