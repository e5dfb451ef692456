"""Seconds of a device's operations per step: by class, by name, in 64 bits, in exchange.

The time of an instant is shared by all operations that run in it, so that the classes add up to
the time in which the device was busy.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.measure.step_facts import OPERATION_CLASSES, OperationFacts
from tfdyno.profile.device import cpu_events, gpu_events
from tfdyno.profile.operation_classes import EXCHANGE, LAYOUT, NO_WORK
from tfdyno.profile.spans import merged
from tfdyno.profile.steps import marked
from tfdyno.profile.told import host_only

if TYPE_CHECKING:
    from tfdyno.profile.device import Events
    from tfdyno.profile.lines import Profile
    from tfdyno.profile.spans import Chosen

_LARGEST = 10
_LONGEST_NAME = 120
_FED = re.compile(r"^Memcpy\s?(H2D|HtoD)")
"""What TensorFlow's cupti_collector.cc calls a copy from the host to a card, and what it did
before."""
_TOLD_AS = {
    "packing": "collective", "copy": "data_movement", LAYOUT: "data_movement", "python": "other",
    "checkpoint": "other", "program": "other",
}  # fmt: skip
"""Classes of operations that facts have no name for."""


def operation_facts(
    profile: Profile, steps: int, float64_names: frozenset[str] = frozenset()
) -> OperationFacts | None:
    """Sum the operations of a profile, per step.

    A GPU works on while the host has gone on: what it was given in a step may end after it.

    Args:
        profile: Of all devices. The busiest GPU is told; without one, the host.
        steps: How many steps lie in it.
        float64_names: Operations of graphs that give 64-bit floats; the profile does not say it.

    Returns:
        None where no operation ran in a step.
    """
    gpus = gpu_events(profile)
    events = _widened(gpus[0] if gpus else cpu_events(profile), float64_names)
    if not events.begin_s.size:
        return None
    span_s = marked(profile) or (0.0, float(events.end_s.max()))
    last_s = max(span_s[1], float(events.end_s.max())) if gpus else span_s[1]
    inside = (events.begin_s >= span_s[0]) & (events.begin_s <= last_s)
    if not (inside & ~events.of(*NO_WORK)).any():
        return None
    found = operations_of(events, inside, steps)
    if not gpus:
        return found
    return dataclasses.replace(
        found,
        host_only=host_only(profile, events, np.array(span_s)),
        device_own_s=_own_work(gpus, span_s[0], steps),
    )


def _own_work(gpus: list[Events], from_s: float, steps: int) -> tuple[float, ...]:
    """Return each GPU's without its exchange, in which those that are done wait for the others."""
    if len(gpus) < 2:
        return ()
    ordered = sorted(gpus, key=lambda one: [int(n) for n in re.findall(r"\d+", one.title)])
    away = (*NO_WORK, *EXCHANGE)
    return tuple(busy(one, (one.begin_s >= from_s) & ~one.of(*away)) / steps for one in ordered)


def _widened(events: Events, float64_names: frozenset[str]) -> Events:
    """Add what graphs say of the width of their numbers."""
    known = tuple(
        dataclasses.replace(one, is_float64=True) if one.operation.scope in float64_names else one
        for one in events.known
    )
    return dataclasses.replace(events, known=known)


def operations_of(events: Events, counted: Chosen, steps: float) -> OperationFacts:
    """Sum operations.

    Args:
        events: Of one device.
        counted: Which of them ran in the steps and are summed.
        steps: In how many they ran.
    """
    seconds = _by_known(events, counted) / steps
    double = np.array([one.is_float64 for one in events.known], np.bool_)
    names: dict[str, float] = {}
    for one, each_s in zip(events.known, seconds.tolist(), strict=True):
        names[one.operation.title] = names.get(one.operation.title, 0.0) + each_s
    longest = sorted(names.items(), key=lambda item: -item[1])[:_LARGEST]
    counted = counted & ~events.of(*NO_WORK)
    exchange, copies = counted & events.of(*EXCHANGE), counted & events.of("copy")
    fed = copies & events.where([bool(_FED.search(one.operation.kernel)) for one in events.known])
    busy_s, alone_s = busy(events, counted), busy(events, counted & ~exchange)
    return OperationFacts(
        class_s=class_seconds(events, counted, steps),
        count_per_step=float((counted & ~events.of("program")).sum()) / steps,
        busy_s=busy_s / steps,
        float64_s=float(seconds[double].sum()),
        layout_s=busy(events, counted & events.of(LAYOUT)) / steps,
        copied_bytes=float(events.copied_bytes[copies].sum()) / steps,
        copy_s=busy(events, copies) / steps,
        fed_s=busy(events, fed) / steps,
        fed_bytes=float(events.copied_bytes[fed].sum()) / steps,
        collective_exposed_s=(busy_s - alone_s) / steps,
        collective_hidden_s=(busy(events, exchange) - (busy_s - alone_s)) / steps,
        collectives_per_step=float((counted & events.of("collective")).sum()) / steps,
        largest=tuple((_short(name), each_s) for name, each_s in longest if each_s > 0.0),
    )


def class_seconds(events: Events, counted: Chosen, steps: float) -> dict[str, float]:
    """Sum by ``OPERATION_CLASSES``, longest first; they add up to the time of being busy."""
    found = dict.fromkeys(OPERATION_CLASSES, 0.0)
    for one, each_s in zip(events.known, _by_known(events, counted).tolist(), strict=True):
        if one.operation_class not in NO_WORK:
            found[_TOLD_AS.get(one.operation_class, one.operation_class)] += each_s / steps
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return {name: each_s for name, each_s in ranked if each_s > 0.0}


def busy(events: Events, chosen: Chosen) -> float:
    """Return seconds in which any of the chosen ones ran."""
    return merged(events.begin_s[chosen], events.end_s[chosen]).total_s


def _short(name: str) -> str:
    """Shorten a path to its end, a kernel to its begin."""
    if len(name) <= _LONGEST_NAME:
        return name
    end = name[-_LONGEST_NAME + 1 :]
    return f"\u2026{end}" if "/" in end and " " not in name else name[:_LONGEST_NAME]


def _by_known(events: Events, counted: Chosen) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    own = np.where(counted, events.own_s, 0.0)
    return np.bincount(events.known_index, weights=own, minlength=len(events.known)).astype(
        np.float64
    )
