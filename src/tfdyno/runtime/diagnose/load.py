"""A workload with its real weights and data, run up to the training that is looked at in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.runtime.base.step_failure import measured_code
from tfdyno.runtime.base.written_files import written_aside
from tfdyno.runtime.bench.script_training import by_itself, of_script
from tfdyno.runtime.diagnose.fit import look_at_fit
from tfdyno.runtime.diagnose.look.fits import LaterFits
from tfdyno.runtime.diagnose.loop import LoopLook
from tfdyno.runtime.diagnose.waits import places_kept
from tfdyno.runtime.diagnose.watching import new_times
from tfdyno.runtime.recipe.settle import first_step_words
from tfdyno.runtime.workload.fit_call import Call, built

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import StepFacts
    from tfdyno.runtime.base.written_files import Aside
    from tfdyno.runtime.diagnose.watching import StepsInspection


def look_at(look: StepsInspection) -> StepFacts:
    """Load a workload and look at its training.

    Args:
        look: What is looked at and for how long.

    Raises:
        UsageError: The workload or its data is wrong, or the user's code fails.
        ToolError: There is not enough memory.
    """
    with places_kept(), written_aside() as aside:
        if look.workload.task:
            return _looked(_standard_task(look), look)
        if look.workload.kind == "script":
            return _script(look, aside)
        if look.workload.kind == "step_function":
            loop = LoopLook(look, aside)
            by_itself(loop)
            return loop.facts()
        return _looked(built(look.workload), look)


def _standard_task(look: StepsInspection) -> Call:
    from tfdyno.runtime.workload.tasks import build

    name, recipe = look.workload.task, look.recipe
    task = build(name, batch_size=recipe.batch_size, real=False, seed=recipe.seed or 0)
    arguments = {"x": task.data}
    return Call(model=task.model, title=name, arguments=arguments, is_batched=True)


def _looked(call: Call, look: StepsInspection) -> StepFacts:
    """Look at a call in place; errors come as sentences."""
    look.progress(first_step_words(call.model, look.recipe.execution))
    times = new_times(look)
    size = look.recipe.batch_size or int(call.arguments.get("batch_size") or 0)
    with measured_code(look.workload.reference, lambda: times.step_count, lambda: size):
        if look.backend == "jax":
            from tfdyno.runtime.diagnose.jax_fit import look_at_fit as on_jax

            return on_jax(call, look, times)
        return look_at_fit(call, look, times)


def _script(look: StepsInspection, aside: Aside) -> StepFacts:
    loop = LoopLook(look, aside)
    later = LaterFits(look) if look.limits.memory_alone else None

    def training(call: Call) -> StepFacts:
        found = _looked(call, look)
        if later:
            later.first = found
        return found

    try:
        found = of_script(loop, training, later=later)
    finally:
        look.so_far.heed()
    if found is None:
        return loop.facts()
    return later.facts() if later else found
