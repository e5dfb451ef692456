"""Child process: one look at a training, in a process that has done nothing else before."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.messages.diagnose import LOOK, SeenSteps, SteadySpan
from tfdyno.process import child
from tfdyno.process.stop_asked import StopAsked, asked_to_stop
from tfdyno.runtime.base.software import import_tensorflow, software

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tfdyno.core.measure.software import Software
    from tfdyno.core.measure.step_facts import StepFacts
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
    on_jax = request.backend == "jax"
    notes = _began_jax(request, progress) if on_jax else _began(request, progress)
    from tfdyno.runtime.diagnose.load import look_at
    from tfdyno.runtime.diagnose.watching import StepsInspection
    from tfdyno.runtime.recipe.apply import settings_held, verify
    from tfdyno.runtime.workload.workloads import policy_held

    look = StepsInspection(
        workload=workload,
        recipe=recipe,
        limits=request.limits,
        cards=request.cards,
        progress=progress,
        backend=request.backend,
    )
    progress(f"building {workload.task or workload.reference}")
    policy = recipe.precision or workload.precision
    try:
        with (
            _stop_heeded(look.so_far),
            policy_held(policy, notes),
            settings_held(recipe, notes),
            _alone(notes, on_jax=on_jax),
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
        if not on_jax:
            verify(recipe)
    if facts := found.facts:
        facts = replace(facts, notes=tuple(dict.fromkeys((*notes, *facts.notes))))
        span = steady_on_jax if on_jax else steady
        found = replace(found, facts=facts, steady=span(look.so_far.span_s, facts))
    return replace(found, software=_software(on_jax=on_jax))


def _began(request: LookAtSteps, progress: child.Progress) -> list[str]:
    """Import TensorFlow and apply the recipe to it; returns notes."""
    progress("importing TensorFlow")
    import_tensorflow(request.workload, "diagnose", "look at")
    from tfdyno.runtime.recipe.apply import apply_recipe, check_recipe

    check_recipe(request.recipe, request.workload.mode)
    return apply_recipe(request.recipe)


def _began_jax(request: LookAtSteps, progress: child.Progress) -> list[str]:
    """Import JAX, and set the few settings that mean something there; returns notes."""
    progress("importing JAX and Keras")
    from tfdyno.runtime.train_jax.start import begin_alone, unused_gpus

    begin_alone(request.recipe.precision)
    if request.recipe.seed is not None:
        import keras

        keras.utils.set_random_seed(request.recipe.seed)
    return unused_gpus(request.seen_gpus)


def _alone(notes: list[str], *, on_jax: bool) -> AbstractContextManager[None]:
    """Keep JAX on one device, whatever distribution the code sets."""
    if not on_jax:
        return contextlib.nullcontext()
    from tfdyno.runtime.bench.on_jax import kept_alone

    return kept_alone(notes)


def _software(*, on_jax: bool) -> Software:
    if not on_jax:
        return software()
    from tfdyno.runtime.train_jax.start import software as of_jax

    return of_jax()


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


def steady(span_s: tuple[float, float], facts: StepFacts) -> SteadySpan:
    """Say when the steps ran, and on which cards, for who watches these from outside.

    Args:
        span_s: When they began and ended, by ``time.perf_counter``.
        facts: What was seen of them.
    """
    import tensorflow as tf

    ahead_s = time.monotonic() - time.perf_counter()
    visible = [each.name for each in tf.config.get_visible_devices("GPU")]
    is_divided = len(tf.config.list_logical_devices("GPU")) != len(visible)
    here = max(1, facts.replica_count // max(1, facts.worker_count))
    return SteadySpan(
        began_s=span_s[0] + ahead_s,
        ended_s=span_s[1] + ahead_s,
        cards=used_cards(visible, facts.devices, 0 if is_divided else here),
    )


def steady_on_jax(span_s: tuple[float, float], facts: StepFacts) -> SteadySpan:
    """Return the same of steps on JAX, which computes on its first card."""
    ahead_s = time.monotonic() - time.perf_counter()
    return SteadySpan(
        began_s=span_s[0] + ahead_s,
        ended_s=span_s[1] + ahead_s,
        cards=(0,) if facts.device == "gpu" else (),
    )


def used_cards(visible: Sequence[str], variables: Iterable[str], replicas: int) -> tuple[int, ...]:
    """Return numbers of the cards that a training uses, in CUDA's order.

    TensorFlow opens every card that it sees, but trains on the first ones unless it is told.

    Args:
        visible: Physical devices: ``/physical_device:GPU:0``.
        variables: Devices of the variables, ``GPU:0``; of mirrored ones that of the first part.
        replicas: Of this process; 0: not known, all cards count.
    """
    numbers = tuple(int(name.rpartition(":")[2]) for name in visible)
    if not replicas:
        return numbers
    places = {int(each[len("GPU:") :]) for each in variables if each.startswith("GPU:")}
    first = min(places, default=0)
    places |= set(range(first, first + replicas))
    return tuple(number for place, number in enumerate(numbers) if place in places)


if __name__ == "__main__":
    child.leave(child.serve(handle, LOOK))
