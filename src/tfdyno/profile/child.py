"""Child process: what a profile that was made elsewhere tells of its training's steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.step_facts import HostFacts, RetraceFacts, StepFacts
from tfdyno.core.messages.diagnose import PROFILE
from tfdyno.process import child
from tfdyno.profile.device import cpu_events, gpu_events, host_spans
from tfdyno.profile.files import find_profile, load_profile
from tfdyno.profile.input import input_facts
from tfdyno.profile.split import device_edges, split
from tfdyno.profile.steps import find_steps
from tfdyno.profile.told import capability_told, execution_of, host_only, lost, precision_told

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import OperationFacts
    from tfdyno.core.messages.diagnose import ReadProfile
    from tfdyno.profile.device import Events
    from tfdyno.profile.files import Found
    from tfdyno.profile.lines import Profile
    from tfdyno.profile.split import Split
    from tfdyno.profile.steps import Steps

_LEAST_EDGES = 2
_PROFILE_STEPS = "profile at least 10 steps of the training, after its first ones"


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


class _Look:
    """All that was made of a profile."""

    def __init__(
        self,
        profile: Profile,
        found: Found,
        gpus: list[Events],
        events: Events,
        steps: Steps,
        told: Split,
    ) -> None:
        self.profile, self.found, self.gpus = profile, found, gpus
        self.events, self.steps, self.told = events, steps, told


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


if __name__ == "__main__":
    child.leave(child.serve(handle, PROFILE))
