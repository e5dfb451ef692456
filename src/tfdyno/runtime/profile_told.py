"""What a profile tells of a training beside its times: precision, execution, fallbacks, losses."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import numpy as np

from tfdyno.runtime.profile_device import cpu_events, launch_times
from tfdyno.runtime.profile_spans import cut, merged
from tfdyno.runtime.profile_steps import is_host
from tfdyno.runtime.profile_tables import called, limit, precision_of

if TYPE_CHECKING:
    from tfdyno.core.step_facts import OperationFacts
    from tfdyno.runtime.profile_device import Events
    from tfdyno.runtime.profile_lines import Profile
    from tfdyno.runtime.profile_split import Split
    from tfdyno.runtime.profile_steps import Steps

_POLICIES = {"float16": "mixed_float16", "bfloat16": "mixed_bfloat16", "float64": "float64"}
_MOST_FALLBACKS = 5


def precision_told(events: Events) -> str:
    """The policy that the names of most matrix products and convolutions tell; else float32."""
    chosen = events.of("gemm", "conv")
    own = np.bincount(
        events.name_index[chosen], weights=events.own_s[chosen], minlength=len(events.names)
    )
    seconds: dict[str, float] = {}
    for name, each in zip(events.names, own.tolist(), strict=True):
        if each:
            seconds[precision_of(name)] = seconds.get(precision_of(name), 0.0) + each
    most = max(seconds, key=seconds.__getitem__, default="")
    return _POLICIES.get(most, "float32")


def execution_of(
    profile: Profile, events: Events, steps: Steps
) -> Literal["xla", "graph", "eager"]:
    """How steps ran: compiled where most of the time is XLA's, eager where Python calls each."""
    compute = events.is_compute
    total = float(events.own_s[compute].sum())
    xla = compute & (events.compiled | _named(events, ("XlaLaunch", "_XlaRun", "XlaCompileAndRun")))
    if total and float(events.own_s[xla].sum()) > total / 2:
        return "xla"
    eager = sum(
        int(np.isin(line.name_index, _eager(plane.names)).sum())
        for plane in profile.planes
        if is_host(plane)
        for line in plane.lines
    )
    per_step = eager / max(1, steps.count)
    return "eager" if per_step > limit("eager_operations") and steps.how != "calls" else "graph"


def host_only(profile: Profile, events: Events, told: Split) -> OperationFacts:
    """Add operations that the CPU ran while the GPU rested, with their share of the step."""
    host = cpu_events(profile)
    counted = host.is_compute & ~_starts_kernels(profile, host)
    busy = merged(events.begin_s, events.end_s)
    names = np.unique(host.name_index[counted])
    spans = {
        host.names[at]: merged(
            host.begin_s[counted & (host.name_index == at)],
            host.end_s[counted & (host.name_index == at)],
        )
        for at in names
    }
    total = float(told.edges_s[-1] - told.edges_s[0])
    least = limit("host_only_ratio") * total
    spans = {name: each for name, each in spans.items() if each.total_s >= least}
    pieces = cut(told.edges_s, {**spans, "": busy})
    shares = {
        name: float(pieces.length_s[pieces.inside[name] & ~pieces.inside[""]].sum()) / total
        for name in spans
    }
    longest = sorted(shares, key=lambda name: -shares[name])[:_MOST_FALLBACKS]
    return dataclasses.replace(
        told.operations,
        host_only=tuple(
            f"{name} ({shares[name]:.0%})"
            for name in longest
            if shares[name] >= limit("host_only_ratio")
        ),
    )


def lost(profile: Profile) -> tuple[str, ...]:
    """What the profiler said that it could not record, and what is not in the file."""
    notes = [f"The profiler said: {note.strip()[:200]}" for note in profile.notes]
    named = {plane.name for plane in profile.planes}
    if any(name.startswith("/device:GPU") for name in named):
        host = [plane for plane in profile.planes if is_host(plane)]
        if not any(line.begin_s.size for plane in host for line in plane.lines):
            notes.append(
                "The profile has no events of the host: waiting for input cannot be told from "
                "other pauses of the GPU."
            )
    return tuple(notes)


def _starts_kernels(profile: Profile, host: Events) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Operations in whose time anything was started on the GPU: they only dispatch."""
    times = np.sort(launch_times(profile))
    first = np.searchsorted(times, host.begin_s)
    return np.asarray(np.searchsorted(times, host.end_s, side="right") > first)


def _named(events: Events, kinds: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    wanted = [at for at, name in enumerate(events.names) if name.rpartition(":")[2] in kinds]
    return np.isin(events.name_index, wanted)


def _eager(names: tuple[str, ...]) -> list[int]:
    """Operations that Python starts one by one, less calls of functions."""
    return [
        at
        for at, name in enumerate(names)
        if name.startswith("EagerLocalExecute: ") and not called(name)
    ]
