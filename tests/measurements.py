"""Measurements made by hand, for tests of what is computed from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.measure.measurement import BenchRun, BenchTask, Environment, Measurement, Protocol
from tfdyno.core.recipe.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

TASK = BenchTask(
    reference="train.py",
    title="convnet",
    parameter_count=1000,
    inputs=("float32[32,32,3]",),
    loss="sparse_categorical_crossentropy",
    optimizer="sgd",
    policy="float32",
    execution="graph",
    batch_size=64,
)
ENVIRONMENT = Environment(
    device="cpu",
    tensorflow="2.21.0",
    keras="3.15.1",
    python="3.11.7",
    tfdyno="0.1.0",
    system="Linux 6.1",
    host="bench",
    cpu="a CPU",
    cpu_count=2,
    memory_bytes=8 << 30,
)


def run(samples_s: Sequence[float], *, order: int = 0, **changes: object) -> BenchRun:
    """A run whose samples are all of the steady state."""
    base = BenchRun(
        samples_s=tuple(samples_s),
        steps_per_sample=(1,) * len(samples_s),
        steady_from=0,
        first_step_s=1.0,
        import_s=2.0,
        build_s=0.5,
        peak_memory_bytes=1 << 30,
        memory_kind="process",
        started_at="2026-11-21T12:00:00Z",
        order=order,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def measurement(runs: Sequence[Sequence[float]], **changes: object) -> Measurement:
    """A measurement with these samples of each run."""
    base = Measurement(
        id="0123456789ab",
        protocol=Protocol(),
        task=TASK,
        recipe=Recipe(),
        environment=ENVIRONMENT,
        runs=tuple(run(samples, order=order) for order, samples in enumerate(runs)),
        created_at="2026-11-21T12:00:00Z",
    )
    return replace(base, **changes)  # type: ignore[arg-type]
