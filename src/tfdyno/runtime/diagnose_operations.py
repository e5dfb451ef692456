"""Where a device's time goes in steps on a held batch: TensorFlow's own profiler, read and summed.

The time of an instant is shared by all operations that run in it, so that the classes add up to
the time in which the device was busy.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.step_facts import OperationFacts
from tfdyno.runtime.operation_classes import class_of
from tfdyno.runtime.profile_events import OpEvent, ProfileEvents, events_of, space_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LARGEST = 10
HOST_ONLY_RATIO = 0.01
"""Of a step: operations on the CPU that take less beside a GPU are not worth a word."""

Segment = tuple[float, float, OpEvent]


def profiled(
    run_steps: Callable[[int], Any], steps: int, float64_names: frozenset[str] = frozenset()
) -> OperationFacts | None:
    """Run steps under the profiler.

    Args:
        run_steps: Runs so many steps; it is called with 1, once for each.
        steps: How many, at least 1. They must be warm: what is traced or compiled would count.
        float64_names: Operations of the step's graphs that give 64-bit floats.

    Returns:
        None where there can be no profile: another one is being made, or its events cannot be
        read with this TensorFlow.

    Raises:
        ValueError: ``steps`` is below 1.
        Exception: What a step raises.
    """
    if steps < 1:
        raise ValueError(f"need at least one step, got {steps}")
    try:
        message = space_type()
    except ImportError:
        return None
    with tempfile.TemporaryDirectory(prefix="tfdyno-profile-") as name:
        options = tf.profiler.experimental.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=1
        )
        try:
            tf.profiler.experimental.start(name, options)
        except tf.errors.OpError:
            return None
        try:
            for number in range(steps):
                with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                    run_steps(1)
            _wait()
        finally:
            with contextlib.suppress(tf.errors.OpError):  # then it wrote nothing
                tf.profiler.experimental.stop()
        spaces = [message.FromString(file.read_bytes()) for file in Path(name).rglob("*.xplane.pb")]
    if not spaces:
        return None
    return operation_facts(events_of(spaces[0], float64_names), steps)


def operation_facts(events: ProfileEvents, steps: int) -> OperationFacts | None:
    """Sum the operations of a profile, per step.

    Args:
        events: Of all devices. The busiest GPU is told; without one, the host.
        steps: How many steps lie in it.

    Returns:
        None where no operation ran in a step.
    """
    inside = {name: _in_steps(found, events) for name, found in events.devices.items()}
    host = _in_steps(events.host, events)
    candidates = [found for found in inside.values() if found] or [host]
    chosen = max(candidates, key=_busy_s)
    if not chosen:
        return None
    shared = _shared(chosen)
    class_s: dict[str, float] = defaultdict(float)
    name_s: dict[str, float] = defaultdict(float)
    float64_s = 0.0
    for event, seconds_s in shared:
        class_s[class_of(event.operation)] += seconds_s / steps
        name_s[event.name] += seconds_s / steps
        float64_s += seconds_s / steps if event.is_float64 else 0.0
    copies = [event for event in chosen if event.is_copy]
    exchanged = [event for event in chosen if class_of(event.operation) == "collective"]
    alone = [event for event in chosen if class_of(event.operation) != "collective"]
    busy_s, exchange_s = _busy_s(chosen), _busy_s(exchanged)
    exposed_s = busy_s - _busy_s(alone)
    ranked = sorted(name_s.items(), key=lambda item: -item[1])
    return OperationFacts(
        class_s=dict(sorted(class_s.items(), key=lambda item: -item[1])),
        count_per_step=len(chosen) / steps,
        busy_s=busy_s / steps,
        float64_s=float64_s,
        host_only=_host_only(host, inside, events, steps) if any(inside.values()) else (),
        copied_bytes=sum(event.copied_bytes for event in copies) / steps,
        copy_s=_busy_s(copies) / steps,
        collective_exposed_s=max(0.0, exposed_s) / steps,
        collective_hidden_s=max(0.0, exchange_s - exposed_s) / steps,
        largest=tuple(ranked[:LARGEST]),
    )


def union_s(intervals: Iterable[tuple[float, float]]) -> float:
    """Length of the union of intervals: what overlaps counts once."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def _busy_s(events: Iterable[OpEvent]) -> float:
    return union_s((event.begin_s, event.end_s) for event in events)


def exclusive(events: Sequence[OpEvent]) -> list[Segment]:
    """The times of one thread or stream in which each of its events ran and no event inside it."""
    found: list[Segment] = []
    open_events: list[OpEvent] = []
    at = 0.0

    def close(until: float) -> None:
        nonlocal at
        while open_events and open_events[-1].end_s <= until:
            one = open_events.pop()
            if one.end_s > at:
                found.append((at, one.end_s, one))
            at = max(at, one.end_s)

    for event in sorted(events, key=lambda one: (one.begin_s, -one.end_s)):
        close(event.begin_s)
        if open_events and event.begin_s > at:
            found.append((at, event.begin_s, open_events[-1]))
        at = max(at, event.begin_s)
        open_events.append(event)
    close(float("inf"))
    return found


def _shared(events: Sequence[OpEvent]) -> list[tuple[OpEvent, float]]:
    """Seconds of each event, those of an instant shared by all lines that work in it."""
    lines: dict[int, list[OpEvent]] = defaultdict(list)
    for event in events:
        lines[event.line].append(event)
    segments = [segment for one in lines.values() for segment in exclusive(one)]
    begins: dict[float, list[int]] = defaultdict(list)
    ends: dict[float, list[int]] = defaultdict(list)
    for number, (begin, end, _) in enumerate(segments):
        begins[begin].append(number)
        ends[end].append(number)
    seconds = [0.0] * len(segments)
    running: set[int] = set()
    for now, after in pairwise(sorted({*begins, *ends})):
        running.difference_update(ends.get(now, ()))
        running.update(begins.get(now, ()))
        for number in running:
            seconds[number] += (after - now) / len(running)
    return [(event, one) for (_, _, event), one in zip(segments, seconds, strict=True)]


def _in_steps(found: Sequence[OpEvent], events: ProfileEvents) -> tuple[OpEvent, ...]:
    """Those that began between the first marked step and the end of the last; all without marks.

    A GPU works on while the host has gone on: what it was given in a step may end after it.
    """
    if not events.steps_s:
        return tuple(found)
    first, last = events.steps_s[0][0], max(end for _, end in events.steps_s)
    late = {id(one) for every in events.devices.values() for one in every if one.begin_s >= first}
    return tuple(
        one for one in found if first <= one.begin_s and (one.begin_s <= last or id(one) in late)
    )


def _host_only(
    host: Sequence[OpEvent],
    devices: dict[str, tuple[OpEvent, ...]],
    events: ProfileEvents,
    steps: int,
) -> tuple[str, ...]:
    """Operations that ran on the CPU and started nothing on any GPU, with their share of steps."""
    if not host:
        return ()
    started = {event.name for found in devices.values() for event in found}
    spans = [*events.steps_s] or [(min(e.begin_s for e in host), max(e.end_s for e in host))]
    step_s = union_s(spans) / steps
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    for event, one_s in _shared([event for event in host if event.name not in started]):
        seconds[event.name, event.operation.type] += one_s / steps
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    return tuple(
        f"{kind} ({name}): {one_s / step_s:.0%} of the step"
        for (name, kind), one_s in ranked
        if one_s > HOST_ONLY_RATIO * step_s
    )


def _wait() -> None:
    """Until every device has done what it was given."""
    sync = getattr(tf.test.experimental, "sync_devices", None)
    if sync:
        sync()
