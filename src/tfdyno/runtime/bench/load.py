"""A workload with its real weights and data, run up to the call that is measured in place."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.step_failure import measured_code
from tfdyno.runtime.base.written_files import written_aside
from tfdyno.runtime.bench.fit import Outcome, Plan, measure_fit, measure_predict, on_jax
from tfdyno.runtime.bench.script_training import by_itself, of_script
from tfdyno.runtime.recipe.settle import first_step_words
from tfdyno.runtime.workload.fit_call import Call, built
from tfdyno.runtime.workload.standins import stand_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.runtime.bench.loop import LoopBench


def run_workload(plan: Plan, loop: LoopBench) -> Outcome:
    """Load the workload of a plan and measure it.

    Args:
        plan: What is measured and how.
        loop: Takes over where the script trains by a loop of its own.

    Raises:
        UsageError: The workload or its data is wrong, or the user's code fails.
        ToolError: There is not enough memory.
    """
    if plan.workload.task:
        return _measured(_standard_task(plan), plan)
    synthetic = plan.protocol.data.startswith("synthetic")
    used = stand_in() if synthetic else []
    if plan.protocol.data == "real":
        what = "--data real is for standard tasks"
        raise UsageError(what, remedy="use own, or a task such as task:resnet18-cifar10")
    with _told_what_is_missing(synthetic), written_aside():
        if plan.workload.kind == "script":
            found = of_script(loop, lambda call: _measured(call, plan))
            outcome = found if found is not None else _of_loop(loop, plan)
        elif plan.workload.kind == "step_function":
            by_itself(loop)
            outcome = loop.finish()
        else:
            outcome = _measured(built(plan.workload), plan)
    stood_in = tuple(f"Zeros stand for keras.datasets.{name}." for name in used)
    return replace(outcome, notes=(*outcome.notes, *stood_in))


def _of_loop(loop: LoopBench, plan: Plan) -> Outcome:
    """Return what was measured of a loop of the user's own."""
    if on_jax():
        what = f"{plan.workload.reference} trains by a loop of its own (train_on_batch)"
        why = "on JAX the steps of model.fit and predict are measured"
        remedy = "leave the training to model.fit, or measure it on TensorFlow"
        raise UsageError(what, why=why, remedy=remedy)
    return loop.finish()


@contextlib.contextmanager
def _told_what_is_missing(synthetic: bool) -> Iterator[None]:
    """Name the way out where the data of the script is not on this machine."""
    try:
        yield
    except UsageError as error:
        text = str(error)
        missing = "needs the file" in text or "URL fetch failure" in text
        if missing and not synthetic:
            remedy = "put the data there, or use --data synthetic"
            raise UsageError(error.what, why=error.why, remedy=remedy) from None
        raise


def _standard_task(plan: Plan) -> Call:
    from tfdyno.runtime.workload.tasks import build, goal_images

    recipe, protocol, real = plan.recipe, plan.protocol, plan.protocol.data == "real"
    name, size = plan.workload.task, recipe.batch_size
    images = goal_images(name, size) if real and protocol.epochs else 0
    task = build(name, batch_size=size, real=real, seed=recipe.seed or 0, images=images)
    shown = f"{task.samples_per_epoch:,} images of {task.data_set}"
    return Call(
        model=task.model,
        title=name,
        arguments={"x": task.data, "validation_data": task.evaluation},
        notes=(f"Epochs are short: {shown}.",) if images else (),
        data_set=task.data_set,
        is_batched=True,
    )


def _measured(call: Call, plan: Plan) -> Outcome:
    """Measure a call in place; errors come as sentences."""
    plan.progress(first_step_words(call.model, plan.recipe.execution))
    size = plan.recipe.batch_size or int(call.arguments.get("batch_size") or 0)
    with measured_code(plan.workload.reference, lambda: plan.clock.step_count, lambda: size):
        if plan.workload.mode == "infer":
            return measure_predict(call, plan)
        return measure_fit(call, plan)
