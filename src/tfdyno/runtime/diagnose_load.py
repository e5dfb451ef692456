"""A workload with its real weights and data, run up to the training that is looked at in place."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.errors import TfdynoError, UsageError
from tfdyno.runtime.bench_failure import measured_code
from tfdyno.runtime.bench_loop import LoopDone, watched
from tfdyno.runtime.dataspec import DEFAULT_BATCH
from tfdyno.runtime.diagnose_fit import look_at_fit
from tfdyno.runtime.diagnose_look import new_times
from tfdyno.runtime.diagnose_loop import LoopLook
from tfdyno.runtime.diagnose_waits import places_kept, reading_watched
from tfdyno.runtime.fit_call import Call, built
from tfdyno.runtime.held_calls import Held, held_calls
from tfdyno.runtime.script_run import run_as_main
from tfdyno.runtime.workloads import title_of

if TYPE_CHECKING:
    from tfdyno.core.step_facts import StepFacts
    from tfdyno.runtime.diagnose_look import Look


class _Reached(BaseException):
    """Leaves the script after the look; no ``except Exception`` of the user stops it."""


def look_at(look: Look, task: str = "") -> StepFacts:
    """Load a workload and look at its training.

    Args:
        look: What is looked at and for how long.
        task: Name of a standard task; empty: the workload is the user's own.

    Raises:
        UsageError: The workload or its data is wrong, or the user's code fails.
        ToolError: There is not enough memory.
    """
    with places_kept():
        if task:
            return _looked(_standard_task(task, look), look)
        if look.workload.kind == "script":
            return _script(look)
        if look.workload.kind == "step_function":
            return _step_function(look)
        return _looked(built(look.workload), look)


def _standard_task(name: str, look: Look) -> Call:
    from tfdyno.runtime.tasks import build

    recipe = look.recipe
    task = build(name, batch_size=recipe.batch_size, real=False, seed=recipe.seed or 0)
    arguments = {"x": task.data}
    return Call(model=task.model, title=name, arguments=arguments, is_batched=True)


def _looked(call: Call, look: Look) -> StepFacts:
    """Look at a call in place; errors come as sentences."""
    look.progress("first step (compiling)")
    times = new_times(look)
    size = look.recipe.batch_size or int(call.arguments.get("batch_size") or 0)
    with measured_code(look.workload.reference, lambda: times.step_count, lambda: size):
        return look_at_fit(call, look, times)


def _script(look: Look) -> StepFacts:
    workload = look.workload
    script, held, loop = Path(workload.reference), Held(), LoopLook(look)

    def reached(model: Any, bound: dict[str, Any]) -> None:  # noqa: ANN401
        loop.unwatch()
        title = title_of(model, script.stem)
        call = Call(model=model, title=title, arguments=bound, notes=held.notes)
        try:
            held.outcome = _looked(call, look)
        except TfdynoError as error:
            held.error = error
        raise _Reached

    with (
        measured_code(str(script), lambda: loop.times.step_count, lambda: _batch(loop)),
        contextlib.suppress(_Reached, LoopDone),
        held_calls(held, workload, reached, loop),
        watched(loop),
        reading_watched(loop.reading),
        contextlib.closing(loop.watched),
    ):
        run_as_main(
            script,
            workload.script_arguments,
            is_enough=lambda: bool(held.outcome or held.error or loop.outcome),
        )
    if held.error:
        raise held.error
    if held.outcome:
        found: StepFacts = held.outcome
        return found
    if loop.outcome or loop.error:
        return loop.facts()
    found_calls = f"it calls fit {held.calls} times" if held.calls else "it ended without fit"
    remedy = "name the function that builds the model: file.py:function"
    what = f"{script} has no call {workload.fit_number} of fit"
    raise UsageError(what, why=found_calls, remedy=remedy)


def _batch(loop: LoopLook) -> int:
    return loop.outcome.spec.batch_size if loop.outcome else 0


def _step_function(look: Look) -> StepFacts:
    """Call a step that the user names again and again with random tensors."""
    import tensorflow as tf

    from tfdyno.runtime.bench_load import random_tensor
    from tfdyno.runtime.step_function import named_step

    reference, loop = look.workload.reference, LoopLook(look)
    with (
        measured_code(reference, lambda: loop.times.step_count, lambda: _batch(loop)),
        contextlib.suppress(LoopDone),
    ):
        step = named_step(look.workload)
        tensors = [
            random_tensor(spec) for spec in step.specs(look.recipe.batch_size or DEFAULT_BATCH)
        ]
        function = tf.function(step.function, jit_compile=step.jit, autograph=step.autograph)
        loop.take(function)
        look.progress("first step (compiling)")
        with watched(loop), contextlib.closing(loop.watched):
            while True:
                function(*tensors)
    file, _, name = reference.partition(":")
    title = f"{Path(file).stem}:{name}"
    return replace(loop.facts(), title=title, notes=("A step by itself, on random tensors.",))
