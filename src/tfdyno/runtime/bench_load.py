"""A workload with its real weights and data, run up to the call that is measured in place."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.errors import TfdynoError, UsageError
from tfdyno.runtime.bench_failure import measured_code
from tfdyno.runtime.bench_fit import Outcome, Plan, measure_fit, measure_predict
from tfdyno.runtime.bench_loop import LoopBench, LoopDone, watched
from tfdyno.runtime.dataspec import DEFAULT_BATCH
from tfdyno.runtime.fit_call import Call, built
from tfdyno.runtime.held_calls import Held, held_calls
from tfdyno.runtime.script_run import run_as_main
from tfdyno.runtime.standins import stand_in
from tfdyno.runtime.workloads import title_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Reached(BaseException):
    """Leaves the script after the measurement; no ``except Exception`` of the user stops it."""


def run_workload(plan: Plan, task: str, loop: LoopBench) -> Outcome:
    """Load the workload of a plan and measure it.

    Args:
        plan: What is measured and how.
        task: Name of a standard task; empty: the workload is the user's own.
        loop: Takes over where the script trains by a loop of its own.

    Raises:
        UsageError: The workload or its data is wrong, or the user's code fails.
        ToolError: There is not enough memory.
    """
    if task:
        return _measured(_standard_task(task, plan), plan)
    synthetic = plan.protocol.data.startswith("synthetic")
    used = stand_in() if synthetic else []
    if plan.protocol.data == "real":
        what = "--data real is for standard tasks"
        raise UsageError(what, remedy="use own, or a task such as task:resnet18-cifar10")
    with _told_what_is_missing(synthetic):
        if plan.workload.kind == "script":
            outcome = _script(plan, loop)
        elif plan.workload.kind == "step_function":
            outcome = _step_function(plan, loop)
        else:
            outcome = _measured(built(plan.workload), plan)
    stood_in = tuple(f"Zeros stand for keras.datasets.{name}." for name in used)
    return replace(outcome, notes=(*outcome.notes, *stood_in))


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


def _standard_task(name: str, plan: Plan) -> Call:
    from tfdyno.runtime.tasks import build, goal_images

    recipe, protocol, real = plan.recipe, plan.protocol, plan.protocol.data == "real"
    size = recipe.batch_size
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
    plan.progress("first step (compiling)")
    size = plan.recipe.batch_size or int(call.arguments.get("batch_size") or 0)
    with measured_code(plan.workload.reference, lambda: plan.clock.step_count, lambda: size):
        if plan.workload.mode == "infer":
            return measure_predict(call, plan)
        return measure_fit(call, plan)


def _script(plan: Plan, loop: LoopBench) -> Outcome:
    workload = plan.workload
    script = Path(workload.reference)
    held = Held()

    def reached(model: Any, bound: dict[str, Any]) -> None:  # noqa: ANN401
        loop.unwatch()
        title = title_of(model, script.stem)
        call = Call(model=model, title=title, arguments=bound, notes=held.notes)
        try:
            held.outcome = _measured(call, plan)
        except TfdynoError as error:
            held.error = error
        raise _Reached

    with (
        measured_code(str(script), lambda: plan.clock.step_count, lambda: _batch(loop)),
        contextlib.suppress(_Reached, LoopDone),
        held_calls(held, workload, reached, loop),
        watched(loop),
    ):
        run_as_main(
            script,
            workload.script_arguments,
            is_enough=lambda: bool(held.outcome or held.error or loop.outcome),
        )
    if held.error:
        raise held.error
    if held.outcome:
        return held.outcome
    if loop.outcome or loop.error:
        return loop.finish()
    name = "predict" if workload.mode == "infer" else "fit"
    found = f"it calls {name} {held.calls} times" if held.calls else f"it ended without {name}"
    remedy = "name the function that builds the model: file.py:function"
    raise UsageError(
        f"{script} has no call {workload.fit_number} of {name}", why=found, remedy=remedy
    )


def _batch(loop: LoopBench) -> int:
    return loop.outcome.spec.batch_size if loop.outcome else 0


def _step_function(plan: Plan, loop: LoopBench) -> Outcome:
    """Call a step that the user names again and again with random tensors."""
    import tensorflow as tf

    from tfdyno.runtime.step_function import named_step

    reference = plan.workload.reference
    with (
        measured_code(reference, lambda: plan.clock.step_count, lambda: _batch(loop)),
        contextlib.suppress(LoopDone),
    ):
        step = named_step(plan.workload)
        tensors = [
            random_tensor(spec) for spec in step.specs(plan.recipe.batch_size or DEFAULT_BATCH)
        ]
        function = tf.function(step.function, jit_compile=step.jit, autograph=step.autograph)
        loop.take(function)
        plan.progress("first step (compiling)")
        with watched(loop):
            while True:
                function(*tensors)
    file, _, name = reference.partition(":")
    title = f"{Path(file).stem}:{name}"
    return replace(loop.finish(), title=title, notes=("A step by itself, on random tensors.",))


def random_tensor(spec: Any) -> Any:  # noqa: ANN401
    """Floats from 0 to 1; 0 for everything else, which is valid as a label and in every table."""
    import tensorflow as tf

    return (
        tf.random.uniform(spec.shape, dtype=spec.dtype)
        if spec.dtype.is_floating
        else tf.zeros(spec.shape, spec.dtype)
    )
