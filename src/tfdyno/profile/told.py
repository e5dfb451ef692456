"""What a profile tells of a training beside its times: precision, execution, fallbacks, losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from tfdyno.profile.device import cpu_events, launch_times
from tfdyno.profile.spans import cut, merged
from tfdyno.profile.steps import is_host
from tfdyno.profile.tables import called, limit, precision_of

if TYPE_CHECKING:
    from tfdyno.profile.device import Events
    from tfdyno.profile.lines import Profile
    from tfdyno.profile.operation_classes import Operation
    from tfdyno.profile.spans import Times
    from tfdyno.profile.steps import Steps

_POLICIES = {"float16": "mixed_float16", "bfloat16": "mixed_bfloat16", "float64": "float64"}
_MOST_FALLBACKS = 5
_XLA = frozenset({"XlaLaunch", "_XlaRun", "XlaCompileAndRun"})


def precision_told(events: Events) -> str:
    """Return the policy that most matrix products' and convolutions' names tell; else float32."""
    seconds: dict[str, float] = {}
    own = np.bincount(events.known_index, weights=events.own_s, minlength=len(events.known))
    for one, each_s in zip(events.known, own.tolist(), strict=True):
        if one.operation_class in ("gemm", "conv"):
            kind = precision_of(one.operation.kernel)
            seconds[kind] = seconds.get(kind, 0.0) + each_s
    most = max(seconds, key=seconds.__getitem__, default="")
    return _POLICIES.get(most, "float32")


def capability_told(profile: Profile) -> str:
    """Compute capability of the card, ``8.0``; empty where the profile does not say it."""
    for plane in profile.planes:
        major, minor = (plane.said.get(f"compute_cap_{end}") for end in ("major", "minor"))
        if plane.name.startswith("/device:GPU") and major:
            return f"{major}.{minor or 0}"
    return ""


def execution_of(
    profile: Profile, events: Events, steps: Steps
) -> Literal["xla", "graph", "eager"]:
    """Tell how steps ran: compiled where most time is XLA's, eager where Python calls each."""
    compute = events.is_compute
    total = float(events.own_s[compute].sum())
    is_xla = [one.is_compiled or one.operation.type in _XLA for one in events.known]
    xla = compute & events.where(is_xla)
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


def host_only(profile: Profile, events: Events, edges_s: Times) -> tuple[str, ...]:
    """Return operations that the CPU ran while the GPU rested, with their share of the steps.

    Args:
        profile: All planes.
        events: Of the GPU.
        edges_s: Where steps begin and the last one ends.
    """
    host = cpu_events(profile)
    started = {one.operation.scope for one in events.known} - {""}
    counted = host.is_compute & ~_starts_kernels(profile, host)
    counted &= host.where([one.operation.scope not in started for one in host.known])
    total_s = float(edges_s[-1] - edges_s[0])
    least_s = limit("host_only_ratio") * total_s
    spans = {}
    lasts = np.where(counted, host.end_s - host.begin_s, 0.0)
    total = np.bincount(host.known_index, weights=lasts, minlength=len(host.known))
    for at in np.flatnonzero(total >= max(least_s, 1e-12)).tolist():
        chosen = counted & (host.known_index == at)
        span = merged(host.begin_s[chosen], host.end_s[chosen])
        if span.total_s >= least_s:
            spans[_named(host.known[at].operation)] = span
    pieces = cut(edges_s, {**spans, "": merged(events.begin_s, events.end_s)})
    alone_s = {
        name: float(pieces.length_s[pieces.inside[name] & ~pieces.inside[""]].sum())
        for name in spans
    }
    longest = sorted(alone_s, key=lambda name: -alone_s[name])[:_MOST_FALLBACKS]
    return tuple(
        f"{name}: {alone_s[name] / total_s:.0%} of the step"
        for name in longest
        if alone_s[name] >= least_s
    )


def lost(profile: Profile) -> tuple[str, ...]:
    """Return what the profiler said that it could not record, and what is not in the file."""
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
    """Return operations in whose time anything was started on the GPU: they only dispatch."""
    times = np.sort(launch_times(profile))
    first = np.searchsorted(times, host.begin_s)
    return np.asarray(np.searchsorted(times, host.end_s, side="right") > first)


def _named(operation: Operation) -> str:
    return f"{operation.type} ({operation.title})" if operation.type else operation.title


def _eager(names: tuple[str, ...]) -> list[int]:
    """Return operations that Python starts one by one, less calls of functions."""
    return [
        at
        for at, name in enumerate(names)
        if name.startswith("EagerLocalExecute: ") and not called(name)
    ]
