"""What a training on JAX left behind, and what its recipe sets on the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import (
    CHECKPOINTS,
    MARKERS,
    MODEL,
    Applied,
    RunSettings,
    TrainOutcome,
)
from tfdyno.runtime.base.peak_memory import PeakMemory
from tfdyno.runtime.recipe.apply import check_policy, set_execution
from tfdyno.runtime.train.outcome import saved
from tfdyno.runtime.train.watch import NanLoss
from tfdyno.runtime.train_jax.start import software

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.train.device_mesh import DeviceMesh
    from tfdyno.core.train.layout import Layout
    from tfdyno.runtime.train.watch import Watch


@dataclass(slots=True, kw_only=True)
class Session:
    """What this session knows while it runs; numbers with those of earlier ones."""

    history: dict[str, list[float]] = field(default_factory=dict)
    epochs: int = 0
    step: int = 0
    iterations_before: int = 0
    """Of the optimizer before the training."""
    batch_size: int = 0
    stop: str = ""
    """The signal that asked for the end."""
    nan: NanLoss | None = None
    has_begun: bool = False
    notes: list[str] = field(default_factory=list)


def settle(model: Model, recipe: Recipe) -> list[str]:
    """Set what the recipe says of the step on a compiled model; returns notes.

    Raises:
        UsageError: The model cannot do it.
    """
    notes = []
    check_policy(model, recipe)
    if model.run_eagerly and recipe.execution != "auto":
        notes.append(f"run_eagerly is off: execution = {recipe.execution} holds.")
        model.run_eagerly = False
    if recipe.execution == "xla":
        set_execution(model, recipe.execution)
    if recipe.steps_per_execution > 1:
        model.steps_per_execution = recipe.steps_per_execution
    for name in ("train_function", "test_function", "predict_function"):
        setattr(model, name, None)  # to be made anew
    return notes


def memory() -> tuple[int, str]:
    """The most memory so far: of the first device, or of the process where there is no GPU."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return int(stats["peak_bytes_in_use"]), "allocator"
    return PeakMemory().read()


def outcome_of(
    model: Model,
    settings: RunSettings,
    recipe: Recipe,
    session: Session,
    watch: Watch,
    *,
    stopped: str,
    resumed_from: str,
    layout: Layout | None,
    mesh: DeviceMesh,
    findings: tuple[Finding, ...],
) -> TrainOutcome:
    """Put together what is known at the end of a session; writes the model where it is whole."""
    folder = Path(settings.output) if settings.output else None
    found = sorted((folder / CHECKPOINTS).glob(MARKERS)) if folder else []
    path, notes = "", tuple(dict.fromkeys(session.notes))
    if folder and settings.save_model and not stopped and not session.nan:
        path, more = saved(model, folder / MODEL)
        notes = (*notes, *more)
    return TrainOutcome(
        history=session.history,
        epochs=session.epochs,
        steps=session.step,
        updates=int(model.optimizer.iterations) - session.iterations_before,
        seconds_s=watch.seconds_s,
        samples_per_s=watch.samples_per_s,
        replica_count=mesh.replica_count,
        global_batch_size=session.batch_size,
        seed=recipe.seed,
        parameter_count=int(model.count_params()),
        peak_memory_bytes=watch.memory_bytes,
        memory_kind=watch.memory_kind,
        stopped=stopped,
        resumed_from=resumed_from,
        checkpoints=tuple(map(str, found)),
        model_path=path,
        applied=_applied(model, recipe, mesh),
        findings=findings,
        notes=notes,
        software=software(),
        pace=watch.pace.pace(),
        layout=layout,
    )


def _applied(model: Model, recipe: Recipe, mesh: DeviceMesh) -> tuple[Applied, ...]:
    """The settings of the recipe with what Keras reports of them, and the mesh."""
    policies = ", ".join(sorted({layer.dtype_policy.name for layer in model._flatten_layers()}))
    reported = {
        "precision": policies,
        "execution": "xla" if model.jit_compile else "eager",
        "steps_per_execution": str(model.steps_per_execution),
    }
    plain = Recipe()
    names = [name for name in reported if getattr(recipe, name) != getattr(plain, name)]
    of_recipe = tuple(
        Applied(name=name, asked=str(getattr(recipe, name)), reported=reported[name])
        for name in names
    )
    count = jax.process_count()
    devices = f"{jax.device_count()} device{'s' * (jax.device_count() != 1)}"
    where = f"{mesh} on {devices} of {count} process{'es' * (count != 1)}"
    backend = Applied(name="backend", asked="jax", reported=f"JAX {jax.__version__}")
    return (*of_recipe, backend, Applied(name="mesh", asked=str(mesh), reported=where))
