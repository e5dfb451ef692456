"""Child process: one look at a training, in a process that has done nothing else before.

Request: ``workload``, ``recipe`` (fields of the nouns), optionally ``limits`` (of ``Limits``: how
long the training's own steps are looked at) and ``task``, the name of a standard task. Result:
``facts`` (``StepFacts``) and ``software`` (versions, and the devices that TensorFlow has).
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.errors import UsageError
from tfdyno.core.recipe import recipe_of
from tfdyno.runtime import child
from tfdyno.runtime.diagnose_clock import Limits
from tfdyno.runtime.software import import_tensorflow, software

if TYPE_CHECKING:
    from tfdyno.core.step_facts import StepFacts


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Look at one training.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or the user's code fails.
        ToolError: There is not enough memory, or TensorFlow did not take a setting.
    """
    from tfdyno.runtime.trace import workload_of

    workload, recipe = workload_of(request["workload"]), recipe_of(request["recipe"])
    if workload.mode != "train":
        raise UsageError("diagnose looks at a training", remedy="leave --mode infer out")
    progress("importing TensorFlow")
    import_tensorflow(workload, "diagnose", "look at")
    from tfdyno.runtime.diagnose_load import look_at
    from tfdyno.runtime.diagnose_look import Look
    from tfdyno.runtime.recipe_apply import apply_recipe, check_recipe, settings_held, verify
    from tfdyno.runtime.workloads import policy_held

    check_recipe(recipe, workload.mode)
    notes = apply_recipe(recipe)
    look = Look(
        workload=workload,
        recipe=recipe,
        limits=Limits(**request.get("limits") or {}),
        progress=progress,
    )
    task = request.get("task") or ""
    progress(f"building {task or workload.reference}")
    policy = recipe.precision or workload.precision
    with policy_held(policy, notes), settings_held(recipe, notes):
        facts = look_at(look, task)
    verify(recipe)
    return {"facts": asdict(_with_notes(facts, notes)), "software": software()}


def _with_notes(facts: StepFacts, notes: list[str]) -> StepFacts:
    return replace(facts, notes=tuple(dict.fromkeys((*notes, *facts.notes))))


if __name__ == "__main__":
    child.leave(child.serve(handle))
