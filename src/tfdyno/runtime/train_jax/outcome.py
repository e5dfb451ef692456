"""What a recipe sets on a model for JAX, and what is told of it at the end of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from tfdyno.core.train.training import Applied
from tfdyno.runtime.base.peak_memory import PeakMemory
from tfdyno.runtime.recipe.apply import check_policy, set_execution
from tfdyno.runtime.train.outcome import beside_asked, policies

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.device_mesh import DeviceMesh


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
    """Return the most memory so far: of the first device, or of the process without a GPU."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return int(stats["peak_bytes_in_use"]), "allocator"
    return PeakMemory().read()


def applied(model: Model, recipe: Recipe, mesh: DeviceMesh) -> tuple[Applied, ...]:
    """Return the settings of the recipe with what Keras reports of them, and the mesh."""
    reported = {
        "precision": policies(model),
        "execution": "xla" if model.jit_compile else "eager",
        "steps_per_execution": model.steps_per_execution,
    }
    count = jax.process_count()
    devices = f"{jax.device_count()} device{'s' * (jax.device_count() != 1)}"
    where = f"{mesh} on {devices} of {count} process{'es' * (count != 1)}"
    backend = Applied(name="backend", asked="jax", reported=f"JAX {jax.__version__}")
    return (
        *beside_asked(recipe, reported),
        backend,
        Applied(name="mesh", asked=str(mesh), reported=where),
    )
