"""Child process: one training under a recipe, in a process that has done nothing else before."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.messages.train import TRAIN
from tfdyno.core.train.training import CHECKPOINTS, RunSettings, TrainOutcome
from tfdyno.process import child
from tfdyno.process.stop_asked import StopAsked, asked_to_stop
from tfdyno.runtime.base.software import import_tensorflow, software

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.base.untyped import Model
    from tfdyno.core.messages.train import Train
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.runtime.train.consensus import Consensus
    from tfdyno.runtime.train.load import Train as Loop

LEAVING = ".leaving"
"""The folder in the folder of a run where several processes wait for each other at their end."""


def handle(request: Train, progress: child.Progress) -> TrainOutcome:
    """Train.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or the user's code fails.
        ToolError: There is not enough memory, a checkpoint cannot be written, or TensorFlow did
            not take a setting.
    """
    end = _end_of_all(request.settings)
    try:
        with asked_to_stop():
            progress("importing TensorFlow")
            import_tensorflow(request.workload, "train", "train")
            outcome = _trained(request, progress)
    except StopAsked as stop:
        return between_steps(request.settings, request.recipe, stop.signal_name)
    with contextlib.suppress(StopAsked), asked_to_stop():
        end.leave()  # a script evaluates after its fit: together, too
    return replace(outcome, software=outcome.software or software())


def _end_of_all(settings: RunSettings) -> Consensus:
    """Make it before the processes connect, so that nobody is at the end yet."""
    from tfdyno.runtime.recipe.strategy import worker_count, worker_rank
    from tfdyno.runtime.train.consensus import Consensus

    folder = Path(settings.output, LEAVING) if settings.output else None
    rank, count = worker_rank(), worker_count()
    try:
        return Consensus(folder, rank=rank, count=count)
    except OSError:  # who trains says what is wrong with the folder
        return Consensus(None, rank=rank, count=count)


def between_steps(settings: RunSettings, recipe: Recipe, signal_name: str) -> TrainOutcome:
    """Return what stands in the folder when the end was asked for outside of the loop."""
    from tfdyno.runtime.checkpoint.files import list_checkpoints

    found, _ = list_checkpoints(Path(settings.output, CHECKPOINTS)) if settings.output else ([], {})
    newest = found[0] if found else None
    return TrainOutcome(
        history=newest.history if newest else {},
        epochs=newest.position.epoch if newest else 0,
        steps=newest.step if newest else 0,
        updates=0,
        seed=recipe.seed,
        stopped=signal_name,
        checkpoints=tuple(str(one.marker) for one in reversed(found)),
        notes=("It was stopped before its first step or after its last.",),
    )


def _trained(request: Train, progress: child.Progress) -> TrainOutcome:
    from tfdyno.runtime.base.written_files import written_aside
    from tfdyno.runtime.recipe.apply import apply_recipe, policy_of, settings_held
    from tfdyno.runtime.recipe.preprocessing import statistics_on_cpu
    from tfdyno.runtime.recipe.strategy import is_chief, make_strategy, strategies_held
    from tfdyno.runtime.train.after_fit import saved_by_chief
    from tfdyno.runtime.train.load import Loading, run_workload
    from tfdyno.runtime.workload.workloads import policy_held

    workload, recipe, settings = request.workload, request.recipe, request.settings
    notes = apply_recipe(recipe)
    if recipe.strategy == "ps" and not is_chief():
        from tfdyno.runtime.recipe.parameter_server import serve_forever

        progress("serving")
        serve_forever()
    strategy = make_strategy(recipe)
    progress(f"building {workload.task or workload.reference}")
    loading = Loading(
        workload=workload,
        recipe=recipe,
        settings=settings,
        train=_loop(recipe, request.peaks, progress),
        data=request.data,
        notes=notes,
    )
    with (
        policy_held(policy_of(recipe.precision or workload.precision), notes),
        settings_held(recipe, notes),
        strategies_held(strategy, recipe.strategy, notes),
        saved_by_chief(),
        written_aside() if settings.only_losses else contextlib.nullcontext(),
        statistics_on_cpu(),
        strategy.scope() if strategy else contextlib.nullcontext(),
    ):
        return run_workload(loading)


def _loop(recipe: Recipe, peaks: Mapping[str, list[float]], progress: child.Progress) -> Loop:
    """Return the training loop, as ``train.load`` calls it."""
    from tfdyno.runtime.recipe.flops import flops_and_peak
    from tfdyno.runtime.train.loop import train
    from tfdyno.runtime.train.watch import TrainPlan, Watch

    def run(model: Model, arguments: dict[str, Any], settings: RunSettings) -> TrainOutcome:
        flops, peak = flops_and_peak(model, arguments, peaks, recipe) if peaks else (0.0, 0.0)
        plan = TrainPlan(
            recipe=recipe,
            settings=settings,
            watch=Watch(progress),
            progress=progress,
            flops_per_step=flops,
            peak_flops_per_s=peak,
        )
        return train(model, arguments, plan)

    return run


if __name__ == "__main__":
    child.leave(child.serve(handle, TRAIN))
