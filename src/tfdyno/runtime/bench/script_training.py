"""A script, or a step by itself, run up to the training that is measured or looked at in place."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.recipe.retreat import FIRST_STEP, FIRST_STEP_XLA
from tfdyno.runtime.base.step_failure import measured_code
from tfdyno.runtime.bench.loop import LoopDone
from tfdyno.runtime.workload.capture import History, run_as_main
from tfdyno.runtime.workload.dataspec import DEFAULT_BATCH
from tfdyno.runtime.workload.fit_call import Call
from tfdyno.runtime.workload.held_calls import Held, held_calls
from tfdyno.runtime.workload.workloads import title_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Model, Spec, Value
    from tfdyno.runtime.bench.loop import Loop
    from tfdyno.runtime.diagnose.look.fits import LaterFits

T = TypeVar("T")

BY_ITSELF = "A step by itself, on random tensors."


class _Reached(BaseException):
    """Leaves the script after its training; no ``except Exception`` of the user stops it."""


def of_script(
    loop: Loop,
    training: Callable[[Call], T],
    *,
    remedy: str = "",
    later: LaterFits | None = None,
) -> T | None:
    """Run the script of a loop up to its training.

    Args:
        loop: Knows the workload, and takes over where the script trains by a loop of its own.
        training: Takes the call of ``fit`` or ``predict`` that counts, while all stands around it.
        remedy: What to do where there is no such call; empty: give the function of the model.
        later: Takes the calls of ``fit`` behind that one; None: the script ends with it.

    Returns:
        What that returned; None: the loop has what it wanted.

    Raises:
        UsageError: The script has no such call and no loop, or its code fails.
        ToolError: There is not enough memory.
    """
    workload, held = loop.workload, Held()
    script = Path(workload.reference)

    def reached(model: Model, bound: dict[str, Any]) -> Value:
        if held.outcome or held.error:
            return _again(held, later, model, bound)
        loop.unwatch()
        title = title_of(model, script.stem)
        call = Call(model=model, title=title, arguments=bound, notes=held.notes)
        try:
            held.outcome = (training(call),)
        except TfdynoError as error:
            held.error = error
        if held.error or later is None or not later.go_on():
            raise _Reached
        return History(bound)

    def is_enough() -> bool:
        return bool(held.outcome or held.error or loop.is_found)

    with (
        measured_code(str(script), lambda: loop.step_count, lambda: _batch(loop)),
        contextlib.suppress(_Reached, LoopDone),
        held_calls(held, workload, reached, loop),
        loop.watching(),
    ):
        try:
            run_as_main(script, workload.script_arguments, is_enough=is_enough)
        except Exception:  # on its way out it may miss what its training would have given
            if not (held.outcome or held.error):
                raise
    if held.error:
        raise held.error
    if held.outcome:
        found: T = held.outcome[0]
        return found
    _of_loop(script, loop, held, remedy)
    return None


def _of_loop(script: Path, loop: Loop, held: Held, remedy: str) -> None:
    """Tell a loop what was left out; raises ``UsageError`` where there was none."""
    if not loop.is_found:
        raise _no_training(script, loop, held.calls, remedy)
    if loop.outcome:
        loop.outcome = replace(loop.outcome, notes=(*loop.outcome.notes, *held.notes))


def _again(held: Held, later: LaterFits | None, model: Model, bound: dict[str, Any]) -> Value:
    """Answer a call behind the one that counts; raises ``_Reached`` where none is wanted."""
    if held.error or later is None or not later.begins():
        raise _Reached
    return later.fit(model, bound)


def _no_training(script: Path, loop: Loop, calls: int, remedy: str) -> UsageError:
    workload = loop.workload
    name = "predict" if workload.mode == "infer" else "fit"
    found = f"it calls {name} {calls} times" if calls else f"it ended without {name}"
    remedy = remedy or "name the function that builds the model: file.py:function"
    if name == "fit" and not calls:
        found += ", and without a step of a loop of its own"
        remedy = f"see that its data gives batches, or {remedy}"
    what = f"{script} has no call {workload.fit_number} of {name}"
    return UsageError(what, why=found, remedy=remedy)


def _batch(loop: Loop) -> int:
    return loop.outcome.spec.batch_size if loop.outcome else loop.recipe.batch_size


def by_itself(loop: Loop) -> None:
    """Call the step that a workload names again and again with random tensors, until it is enough.

    Raises:
        UsageError: There is no such step, or its code fails.
        ToolError: There is not enough memory.
    """
    import tensorflow as tf

    from tfdyno.runtime.workload.loop_step import named_step

    reference = loop.workload.reference
    with (
        measured_code(reference, lambda: loop.step_count, lambda: _batch(loop)),
        contextlib.suppress(LoopDone),
    ):
        step = named_step(loop.workload)
        size = loop.recipe.batch_size or DEFAULT_BATCH
        tensors = [_random_tensor(spec) for spec in step.specs(size)]
        function = tf.function(step.function, jit_compile=step.jit, autograph=step.autograph)
        loop.take(function)
        loop.progress(FIRST_STEP_XLA if step.jit else FIRST_STEP)
        with loop.watching():
            while True:
                function(*tensors)
    file, _, name = reference.partition(":")
    if loop.outcome:
        title = f"{Path(file).stem}:{name}"
        loop.outcome = replace(loop.outcome, title=title, notes=(BY_ITSELF,))


def _random_tensor(spec: Spec) -> Value:
    """Make floats from 0 to 1; 0 for all else, which is valid as a label and in every table."""
    import tensorflow as tf

    return (
        tf.random.uniform(spec.shape, dtype=spec.dtype)
        if spec.dtype.is_floating
        else tf.zeros(spec.shape, spec.dtype)
    )
