"""Child process: one look at a training, in a process that has done nothing else before.

Request: ``workload``, ``recipe`` (fields of the nouns), optionally ``limits`` (of ``Limits``: how
long the training's own steps are looked at), ``task``, the name of a standard task, and ``cards``:
FLOP/s of each card by dtype, and its ``bytes_per_s``. Result: ``facts`` (``StepFacts``),
``software`` (versions, and the devices that TensorFlow has) and ``steady``: when the steps that
count ran, and on which cards.

After a stop (SIGTERM) the result has ``stopped`` too, and where the training failed in its steady
steps ``failed``, the fields of the error. Where there are no steady steps yet, a stop has ``seen``
in place of ``facts``: what the few steps took, in words.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.recipe.recipe import recipe_of
from tfdyno.process import child
from tfdyno.process.stop_asked import StopAsked, asked_to_stop
from tfdyno.runtime.base.software import import_tensorflow, software
from tfdyno.runtime.diagnose.clock import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.runtime.diagnose.so_far import SoFar

STEP_PATIENCE_S = 1.0
"""How long a stop waits for the end of the step that is under way."""


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Look at one training.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or the user's code fails.
        ToolError: There is not enough memory, or TensorFlow did not take a setting.
    """
    from tfdyno.runtime.trace.child import workload_of

    workload, recipe = workload_of(request["workload"]), recipe_of(request["recipe"])
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
        limits=Limits(**request.get("limits") or {}),
        cards=request.get("cards") or {},
        progress=progress,
    )
    task = request.get("task") or ""
    progress(f"building {task or workload.reference}")
    policy = recipe.precision or workload.precision
    try:
        with (
            _stop_heeded(look.so_far),
            policy_held(policy, notes),
            settings_held(recipe, notes),
        ):
            outcome: dict[str, Any] = {"facts": asdict(look_at(look, task))}
    except StopAsked as stop:
        outcome = look.so_far.stopped(stop.signal_name)
        if not outcome:
            raise
    except TfdynoError as error:
        outcome = look.so_far.failed(error)
        if not outcome:
            raise look.so_far.with_steps(error) from None
    else:
        verify(recipe)
    if facts := outcome.get("facts"):
        outcome["steady"] = steady(look.so_far.span_s, facts)
    return _with_notes(outcome, notes) | {"software": software()}


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


def _with_notes(outcome: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    facts = outcome.get("facts")
    if facts:
        facts["notes"] = tuple(dict.fromkeys((*notes, *facts["notes"])))
    return outcome


if __name__ == "__main__":
    child.leave(child.serve(handle))
