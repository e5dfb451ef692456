"""Child process: what a profile that was made elsewhere tells of its training's steps."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.step_facts import (
    HostFacts,
    InputFacts,
    RetraceFacts,
    StageFacts,
    StepFacts,
)
from tfdyno.core.messages.diagnose import PROFILE
from tfdyno.process import child
from tfdyno.profile.device import cpu_events, gpu_events, host_spans
from tfdyno.profile.files import find_profile, load_profile
from tfdyno.profile.spans import own_times
from tfdyno.profile.split import device_edges, split
from tfdyno.profile.steps import find_steps, is_host
from tfdyno.profile.told import capability_told, execution_of, host_only, lost, precision_told

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.measure.step_facts import OperationFacts
    from tfdyno.core.messages.diagnose import ReadProfile
    from tfdyno.profile.device import Events
    from tfdyno.profile.files import Found
    from tfdyno.profile.lines import Profile
    from tfdyno.profile.split import Split
    from tfdyno.profile.steps import Steps

_LEAST_EDGES = 2
_PROFILE_STEPS = "profile at least 10 steps of the training, after its first ones"
_ITERATOR = re.compile(r"^Iterator::(?:Root|Model)(::.+)$")
_COUNT = re.compile(r"\[\d+\]")
_VERSION = re.compile(r"V\d+$")
_PYTHON = re.compile(r"(^|/)?(Eager)?PyFunc\w*:(Eager)?PyFunc")
_AHEAD = ("Prefetch", "Parallel")
"""Stages that make results ahead of who asks for them, if they are the last."""
_KINDS = {
    "ParallelMap": "map", "MapAndBatch": "map", "ParallelInterleave": "interleave",
    "ParallelBatch": "batch", "PaddedBatch": "padded_batch", "ForeverRepeat": "repeat",
    "FiniteRepeat": "repeat", "TensorSlice": "from_tensor_slices", "Generator": "from_generator",
    "FlatMap": "flat_map", "MemoryCache": "cache", "FileCache": "cache",
    "TFRecord": "TFRecordDataset",
}  # fmt: skip
"""Methods of ``tf.data.Dataset`` by the names of what makes them; others are the name in lower."""


def handle(request: ReadProfile, progress: child.Progress) -> StepFacts:
    """Read one profile.

    Raises:
        UsageError: There is none, it is damaged, or it holds no step or no device.
    """
    found = find_profile(request.path)
    progress(f"reading {found.path.name}")
    profile = load_profile(found.path)
    progress(f"splitting {profile.event_count:,} events into steps")
    return step_facts(profile, found)


def step_facts(profile: Profile, found: Found) -> StepFacts:
    """Return what a profile tells.

    Raises:
        UsageError: It holds no step or no device that tfdyno knows.
    """
    gpus = gpu_events(profile)
    events = gpus[0] if gpus else cpu_events(profile)
    if not events.begin_s.size:
        raise UsageError(f"{found.path} shows no device at work", why=_no_device(profile))
    steps = find_steps(profile, events.sequence())
    edges = None if steps is None else device_edges(steps, events) if gpus else steps.edges_s
    if steps is None or edges is None or edges.size < _LEAST_EDGES:
        why = f"nothing repeats in its {events.begin_s.size:,} operations, and it has no markers"
        raise UsageError(f"{found.path} shows no step", why=why, remedy=_PROFILE_STEPS)
    host = host_spans(profile)
    told = split(edges, events, host)
    return _facts(_Look(profile, found, gpus, events, steps, told))


class _Look(NamedTuple):
    """All that was made of a profile."""

    profile: Profile
    found: Found
    gpus: list[Events]
    events: Events
    steps: Steps
    told: Split


def _facts(look: _Look) -> StepFacts:
    told, parts = look.told, look.told.parts_s
    steady = told.step_s.size
    return StepFacts(
        title=look.found.path.name,
        device="gpu" if look.gpus else "cpu",
        source="profile",
        replica_count=max(1, len(look.gpus)),
        worker_count=look.found.host_count,
        precision=precision_told(look.events),
        compute_capability=capability_told(look.profile) if look.gpus else "",
        execution=execution_of(look.profile, look.events, look.steps),
        steps_seen=steady + told.outlier_count,
        step_s=tuple(told.step_s.tolist()),
        callback_s=parts["callback"],
        python_s=parts["host"],
        waits_s=parts["input"],
        input=input_facts(look.profile, told.edges_s),
        retraces=_retraces(look),
        operations=_operations(look),
        host=HostFacts(cpus=0, usable_cpus=0.0),
        split_s=parts,
        timeline=told.timeline,
        notes=tuple(_notes(look)),
    )


def _operations(look: _Look) -> OperationFacts:
    found = look.told.operations
    if not look.gpus:
        return found
    alone = host_only(look.profile, look.events, look.told.edges_s)
    return replace(found, host_only=alone)


def _retraces(look: _Look) -> tuple[RetraceFacts, ...]:
    return tuple(
        RetraceFacts(
            function=name,
            traces=versions - 1,
            calls=look.steps.count + 1,
            seconds_s=look.told.parts_s["retrace"] * look.told.step_s.size,
        )
        for name, versions in look.steps.retraced.items()
    )


def _notes(look: _Look) -> list[str]:
    notes = [*look.found.notes, *look.steps.notes, *lost(look.profile)]
    if look.told.outlier_count:
        notes.append(
            f"{look.told.outlier_count} of {look.told.outlier_count + look.told.step_s.size} steps "
            "took more than three times the median (ends of epochs, disturbances): left out."
        )
    if len(look.gpus) > 1:
        notes.append(f"{len(look.gpus)} GPUs: the times are those of the busiest.")
    notes.append("A profile does not tell the batch size, memory and the CPUs of its machine.")
    return notes


def _no_device(profile: Profile) -> str:
    names = {plane.name for plane in profile.planes if any(x.begin_s.size for x in plane.lines)}
    if any("TPU" in name for name in names):
        return "it is of a TPU; tfdyno diagnoses CPUs and NVIDIA GPUs"
    if not names:
        return "it holds no events at all"
    return "it holds events of the host only, and none of them is an operation"


def input_facts(profile: Profile, edges_s: NDArray[np.float64]) -> InputFacts | None:
    """Return stages, sources first, with the seconds per step that each spent without its inputs.

    A stage's own time holds what it waits for: a buffer that is empty, functions that it runs on
    other threads. It waits no longer than what it waits for takes, so the stage with the longest
    time is the slow one all the same. None where the profile shows no pipeline.
    """
    own: dict[str, float] = {}
    runs_python = False
    for plane in profile.planes:
        if not is_host(plane):
            continue
        paths = [_path(name) for name in (*plane.names, "")]
        is_stage = np.array([bool(path) for path in paths])
        for line in plane.lines:
            if line.name.startswith("tf_data"):
                names = {plane.names[at] for at in np.unique(line.name_index) if at >= 0}
                runs_python |= any(_PYTHON.search(name) for name in names)
            inside = is_stage[line.name_index]
            inside &= (line.begin_s >= edges_s[0]) & (line.begin_s < edges_s[-1])
            order = np.flatnonzero(inside)
            order = order[np.lexsort((-line.end_s[order], line.begin_s[order]))]
            seconds = own_times(line.begin_s[order], line.end_s[order])
            for at, each in zip(line.name_index[order].tolist(), seconds.tolist(), strict=True):
                own[paths[at]] = own.get(paths[at], 0.0) + each
    if not own:
        return None
    steps = edges_s.size - 1
    ordered = sorted(own, key=lambda path: (-path.count("::"), path))
    stages = tuple(_stage(path, own[path] / steps, runs_python) for path in ordered)
    return InputFacts(
        batch_s=(),
        stages=stages,
        prefetches=stages[-1].title.startswith(_AHEAD),
        is_cached=any(stage.kind == "cache" for stage in stages),
    )


def _path(name: str) -> str:
    """Return ``::Map::BatchV2`` of ``Iterator::Root::Map::ForeverRepeat[0]::BatchV2``."""
    match = _ITERATOR.match(name)
    return _COUNT.sub("", match[1]) if match else ""


def _stage(path: str, own_s: float, runs_python: bool) -> StageFacts:
    name = _VERSION.sub("", path.rpartition("::")[2])
    kind = _KINDS.get(name, name.lower())
    return StageFacts(
        title=name,
        kind=kind,
        own_s=own_s,
        parallel_calls=-1 if name.startswith("Parallel") else 1,
        runs_python=kind == "from_generator" or (runs_python and kind == "map"),
    )


if __name__ == "__main__":
    child.leave(child.serve(handle, PROFILE))
