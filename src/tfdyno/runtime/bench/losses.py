"""Child process: losses of the first steps of a training loop of the user's own."""

from __future__ import annotations

from tfdyno.core.messages.bench import LOSSES, TellLosses
from tfdyno.process import child
from tfdyno.runtime.base.software import import_tensorflow


def handle(request: TellLosses, progress: child.Progress) -> tuple[float, ...]:
    """Run a few steps of a loop.

    Raises:
        UsageError: The recipe cannot be set for a loop, its code fails, or it tells no loss.
        ToolError: There is not enough memory, or TensorFlow did not take a setting.
    """
    workload, recipe = request.workload, request.recipe
    progress("importing TensorFlow")
    import_tensorflow(workload, "diagnose", "run")
    from tfdyno.runtime.bench.loop_losses import losses_of
    from tfdyno.runtime.recipe.apply import apply_recipe, check_recipe, settings_held, verify
    from tfdyno.runtime.workload.workloads import policy_held

    check_recipe(recipe, workload.mode)
    notes = apply_recipe(recipe)
    progress(f"building {workload.reference}")
    with policy_held(recipe.precision or workload.precision, notes), settings_held(recipe, notes):
        losses = losses_of(workload, recipe, request.steps, progress)
    verify(recipe)
    return tuple(losses)


if __name__ == "__main__":
    child.leave(child.serve(handle, LOSSES))
