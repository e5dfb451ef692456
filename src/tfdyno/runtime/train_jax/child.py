"""Child process: one training on Keras' JAX backend, as one process of one or several."""

from __future__ import annotations

import contextlib
import re
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.messages.train import TRAIN_ON_JAX
from tfdyno.process import child
from tfdyno.process.failure import first_line, is_own
from tfdyno.process.stop_asked import StopAsked, asked_to_stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Model
    from tfdyno.core.messages.train import TrainOnJax
    from tfdyno.core.train.training import RunSettings, TrainOutcome
    from tfdyno.runtime.train.load import Loading
    from tfdyno.runtime.train_jax.start import World


def handle(request: TrainOnJax, progress: child.Progress) -> TrainOutcome:
    """Train.

    Raises:
        UsageError: The workload, its data, the recipe or the layout is wrong, or the user's code
            fails.
        ToolError: The processes do not come together, there is not enough memory, or a checkpoint
            cannot be written.
    """
    try:
        with asked_to_stop():
            outcome = _trained(request, progress)
    except StopAsked as stop:
        from tfdyno.runtime.train.child import between_steps

        asked = request.training
        outcome = between_steps(asked.settings, asked.recipe, stop.signal_name)
    if not outcome.software:
        from tfdyno.runtime.train_jax.start import software

        outcome = replace(outcome, software=software())
    return outcome


def _trained(request: TrainOnJax, progress: child.Progress) -> TrainOutcome:
    """Begin JAX, and run the workload in it."""
    asked, plan = request.training, request.plan
    workload, recipe = asked.workload, asked.recipe
    progress("importing JAX and Keras")
    from tfdyno.runtime.train_jax.start import begin, unused_gpus

    world = begin(plan, recipe, addresses=request.addresses, rank=request.rank, gpus=request.gpus)
    notes = unused_gpus(request.seen_gpus)
    for note in notes:
        progress(note)
    from tfdyno.runtime.train.load import Loading
    from tfdyno.runtime.train_jax.loop import JaxTraining, train

    training = JaxTraining(recipe=recipe, plan=plan, world=world, progress=progress)

    def fit(model: Model, arguments: dict[str, Any], own: RunSettings) -> TrainOutcome:
        return train(model, arguments, own, training)

    progress(f"building {workload.reference}")
    loading = Loading(
        workload=workload,
        recipe=replace(recipe, batch_size=recipe.batch_size * world.mesh.replica_count),
        settings=asked.settings,
        train=fit,
        data=asked.data,
        notes=notes,
    )
    from tfdyno.runtime.recipe.apply import policy_of

    return _run(loading, world, policy_of(recipe.precision or workload.precision))


def _run(loading: Loading, world: World, precision: str) -> TrainOutcome:
    """Run the user's code, whose calls of Keras are those of one process of several."""
    from tfdyno.runtime.base.jax_values import read_whole
    from tfdyno.runtime.base.written_files import written_aside
    from tfdyno.runtime.train.after_fit import saved_by_chief
    from tfdyno.runtime.train.load import run_workload
    from tfdyno.runtime.train_jax.data import used_by_all
    from tfdyno.runtime.train_jax.start import distribution_held
    from tfdyno.runtime.workload.workloads import policy_held

    try:
        with (
            policy_held(precision, loading.notes),
            saved_by_chief(),
            written_aside() if loading.settings.only_losses else contextlib.nullcontext(),
            read_whole(),
            used_by_all(world),
            distribution_held(loading.notes),
        ):
            return run_workload(loading)
    except UsageError as error:
        raise told(error) from None


_CALL = re.compile(r"\b((?:tf|tensorflow)(?:\.\w+)+)")
_GONE = ("Gloo", "NCCL", "UNAVAILABLE:", "DEADLINE_EXCEEDED:", "coordination service")
"""Words of JAX where another process, or the way to it, is the matter."""
ALLOWED = ("tf.data.", "tf.io.", "tf.keras.")


def told(error: UsageError) -> TfdynoError:
    """Return the error that ended the user's code, with its real cause."""
    for cause in _causes(error):
        if type(cause).__name__.endswith("RuntimeError") and any(w in str(cause) for w in _GONE):
            what = "a step could not be exchanged with the other processes"
            return ToolError(what, why=first_line(cause), remedy="their own output says why")
        frames = [f for f in traceback.extract_tb(cause.__traceback__) if is_own(f.filename)]
        if frames and (found := _CALL.search(frames[-1].line or "")):
            name = found[1].replace("tensorflow.", "tf.", 1)
            if not name.startswith(ALLOWED):
                frame = frames[-1]
                return UsageError(
                    f"{frame.filename}, line {frame.lineno}: {name} cannot run on the JAX backend",
                    why="it is TensorFlow's own operation",
                    remedy="use keras.ops in its place, or train without --backend jax",
                )
    return error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


if __name__ == "__main__":
    child.leave(child.serve(handle, TRAIN_ON_JAX))
