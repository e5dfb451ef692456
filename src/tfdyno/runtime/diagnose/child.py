"""Child process: one look at a training, in a process that has done nothing else before."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.messages.diagnose import LOOK, SeenSteps
from tfdyno.process import child
from tfdyno.process.stop_asked import StopAsked, asked_to_stop
from tfdyno.runtime.base.software import import_tensorflow, software

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.messages.diagnose import LookAtSteps
    from tfdyno.runtime.diagnose.so_far import SoFar

STEP_PATIENCE_S = 1.0
"""How long a stop waits for the end of the step that is under way."""


def handle(request: LookAtSteps, progress: child.Progress) -> SeenSteps:
    """Look at one training.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or the user's code fails.
        ToolError: There is not enough memory, or TensorFlow did not take a setting.
    """
    workload, recipe = request.workload, request.recipe
    if workload.mode != "train":
        raise UsageError("diagnose looks at a training", remedy="leave --mode infer out")
    progress("importing TensorFlow")
    import_tensorflow(workload, "diagnose", "look at")
    from tfdyno.runtime.diagnose.cards import steady
    from tfdyno.runtime.diagnose.load import look_at
    from tfdyno.runtime.diagnose.watching import StepsInspection
    from tfdyno.runtime.recipe.apply import apply_recipe, check_recipe, settings_held, verify
    from tfdyno.runtime.workload.workloads import policy_held

    check_recipe(recipe, workload.mode)
    notes = apply_recipe(recipe)
    look = StepsInspection(
        workload=workload,
        recipe=recipe,
        limits=request.limits,
        cards=request.cards,
        progress=progress,
    )
    progress(f"building {workload.task or workload.reference}")
    policy = recipe.precision or workload.precision
    try:
        with (
            _stop_heeded(look.so_far),
            policy_held(policy, notes),
            settings_held(recipe, notes),
        ):
            found = SeenSteps(facts=look_at(look))
    except StopAsked as stop:
        ended = look.so_far.stopped(stop.signal_name)
        if not ended:
            raise
        found = ended
    except TfdynoError as error:
        ended = look.so_far.failed(error)
        if not ended:
            raise look.so_far.with_steps(error) from None
        found = ended
    else:
        verify(recipe)
    if facts := found.facts:
        facts = replace(facts, notes=tuple(dict.fromkeys((*notes, *facts.notes))))
        found = replace(found, facts=facts, steady=steady(look.so_far.span_s, facts))
    return replace(found, software=software())


@contextlib.contextmanager
def _stop_heeded(so_far: SoFar) -> Iterator[None]:
    """Leave the user's code when the end is asked for: with its step, or where that takes long.

    Within a step a raise may end in TensorFlow's own code, which swallows it or does not survive
    it; where it must be, it is raised until it comes through.
    """
    again: list[threading.Timer] = []

    def ask(signal_name: str) -> None:
        is_first = so_far.stop is None
        so_far.stop = so_far.stop or StopAsked(signal_name)
        timer = threading.Timer(STEP_PATIENCE_S, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        again.append(timer)
        timer.start()
        if not is_first:
            raise so_far.stop

    with asked_to_stop(ask):
        try:
            yield
        finally:
            for timer in again:
                timer.cancel()
            so_far.heed()


if __name__ == "__main__":
    child.leave(child.serve(handle, LOOK))
