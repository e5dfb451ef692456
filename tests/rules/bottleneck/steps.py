"""Facts made for tests: a healthy step of 20 ms on 4 CPUs, changed in one place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.step_facts import (
    HostFacts,
    InputFacts,
    OperationFacts,
    StageFacts,
    StepFacts,
)
from tfdyno.rules.bottleneck import diagnose
from tfdyno.rules.bottleneck.seen import look

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.bottleneck import Bottleneck, StepDiagnosis
    from tfdyno.rules.bottleneck.draft import Draft, Rule

HOST = HostFacts(cpus=4, usable_cpus=4, threads_intra=4, threads_inter=4, cpu_ratio=0.5)
GOOD_INPUT = InputFacts(
    batch_s=(0.004,) * 20,
    batch_bytes=32 * 1024,
    samples_per_epoch=3200,
    stages=(
        StageFacts(title="from_tensor_slices", kind="tensor_slice", own_s=0.001),
        StageFacts(title="map(scale)", kind="map", own_s=0.001, parallel_calls=-1),
        StageFacts(title="batch", kind="batch", own_s=0.002, output_bytes=32 * 1024),
        StageFacts(title="prefetch", kind="prefetch"),
    ),
    prefetches=True,
    cpu_ratio=0.05,
)
OPERATIONS = OperationFacts(
    class_s={"gemm": 0.010, "elementwise": 0.006, "optimizer": 0.002},
    count_per_step=100,
    busy_s=0.018,
    largest=(("model/dense/MatMul", 0.010), ("model/relu", 0.006)),
)


def facts(**changed: Any) -> StepFacts:
    """A healthy step: 20 ms, 19.5 ms of them on a held batch, 18 ms in operations."""
    given: dict[str, Any] = {
        "title": "train.py",
        "device": "cpu",
        "source": "run",
        "batch_size": 32,
        "steps_per_epoch": 100,
        "epochs": 10,
        "steps_seen": 40,
        "step_s": (0.020,) * 40,
        "held_s": (0.0195,) * 40,
        "input": GOOD_INPUT,
        "operations": OPERATIONS,
        "parameter_bytes": 400_000,
        "variable_count": 8,
        "devices": {"GPU:0" if changed.get("device") == "gpu" else "CPU:0": 8},
        "host": HOST,
    }
    return StepFacts(**(given | changed))


def pipeline(*stages: StageFacts, batch_s: float = 0.040, **changed: Any) -> InputFacts:
    """A pipeline of these stages that makes nothing ahead, unless it is said."""
    given = replace(GOOD_INPUT, stages=stages, batch_s=(batch_s,) * 20, prefetches=False)
    return replace(given, **{"cpu_ratio": 0.25, "samples_per_epoch": 0} | changed)


def waiting(given: InputFacts, step_s: float = 0.060, **changed: Any) -> StepFacts:
    """A step of 60 ms that takes 20 ms by itself: 40 ms are waiting for this pipeline."""
    host = replace(HOST, cpu_ratio=0.2)
    return facts(step_s=(step_s,) * 40, held_s=(0.020,) * 40, input=given, host=host, **changed)


def stage(title: str, kind: str, own_s: float, **changed: Any) -> StageFacts:
    """A stage with its CPU seconds per batch."""
    return StageFacts(title=title, kind=kind, own_s=own_s, place="train.py:7", **changed)


def drafts(rule: Rule, seen: StepFacts) -> dict[str, Draft]:
    """What one rule says, by cause."""
    return {one.cause: one for one in _run(rule, seen)}


def _run(rule: Rule, seen: StepFacts) -> Iterator[Draft]:
    yield from rule(look(seen))


def only(rule: Rule, seen: StepFacts) -> Draft:
    """The one thing that a rule says."""
    (draft,) = _run(rule, seen)
    return draft


def primary(seen: StepFacts) -> Bottleneck:
    """What leads."""
    return diagnose(seen).primary


def answer(seen: StepFacts) -> StepDiagnosis:
    """All of it."""
    return diagnose(seen)
