"""What a training would do and what it would cost in time and memory, without training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.core.base.settings import PRECISIONS
from tfdyno.core.train.train_preview import TrainPreview
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose import estimate as estimating
from tfdyno.jobs.choose.trace import trace
from tfdyno.jobs.holders.found_cards import found_cards
from tfdyno.jobs.train.train import check, default_folder, planned, shown
from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.workload import Trace, Workload
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.jobs.train.train import TrainRequest

_OF_MEMORY = (
    "peak_memory_bytes", "memory_parts_bytes", "context_bytes", "device_memory_bytes", "fits",
    "fits_verified", "max_batch_size", "max_batch_verified", "memory_measured_on",
    "process_memory_bytes", "rematerialisation", "max_batch_rematerialisation",
)  # fmt: skip
NO_GPU = say_later("No time or memory: there is no GPU here. Name one with --gpu.")


def preview(
    request: TrainRequest,
    *,
    gpu: str = "",
    reasons: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = silent,
) -> TrainPreview:
    """Trace the workload and estimate its step; nothing is written.

    Args:
        request: What ``train`` would be asked.
        gpu: Estimate for this card; empty: for the machine's own.
        reasons: Why the settings of the recipe are there, where they were chosen.
        progress: Called with a line at every stage.

    Raises:
        UsageError: The question has no answer, or the workload cannot be traced.
        ToolError: A child failed.
    """
    check(request)
    recipe, settings = planned(request)
    cards = () if gpu else found_cards(visible=recipe.visible_devices or None)
    card = find(gpu) if gpu else cards[0].gpu if cards else None
    replicas = recipe.replica_count(len(cards))
    workload, batch_size = request.workload, recipe.batch_size
    if request.jax:
        workload = replace(workload, software="jax")
    found: Estimate | None = None
    notes: tuple[str, ...] = ()
    if card is None:
        traced = trace(workload, progress=progress).trace
        notes = (say(NO_GPU),)
    else:
        asked = estimating.EstimateRequest(
            workload=workload,
            gpus=(card,),
            batch_size=batch_size or _share(workload, replicas, progress),
            replicas=(replicas,),
            precision=recipe.precision if recipe.precision in PRECISIONS else "",
            execution="" if recipe.execution == "auto" else recipe.execution,
        )
        answer = estimating.estimate(asked, progress=progress)
        traced, found, notes = answer.trace, answer.estimates[0], answer.notes
        if _is_counted(recipe):
            again = replace(asked, workload=replace(workload, remat=recipe.remat))
            found = _holding(found, estimating.estimate(again, progress=progress).estimates[0])
    return TrainPreview(
        reference=workload.reference,
        title=traced.title,
        recipe=recipe,
        reasons=dict(reasons or {}),
        parameter_count=traced.parameter_count,
        trainable_parameter_count=traced.trainable_parameter_count,
        loss=traced.loss,
        optimizer=traced.optimizer,
        replicas=replicas,
        batch_size=batch_size or _share_of(traced, replicas),
        samples_per_epoch=traced.samples_per_epoch,
        steps_asked=settings.steps_per_epoch,
        epochs=settings.epochs or traced.epochs or 1,
        output=settings.output or shown(default_folder(request).absolute()),
        goes_on=settings.resume,
        estimate=found,
        gpu_name=card.name if card else "",
        notes=(*notes, *traced.warnings, *_left_out(recipe, found)),
    )


def _share(workload: Workload, replicas: int, progress: Callable[[str], None]) -> int:
    """Return the batch of a replica, where the script's own is shared; 0: the script's own."""
    if replicas == 1:
        return 0
    return _share_of(trace(workload, progress=progress).trace, replicas)


def _share_of(traced: Trace, replicas: int) -> int:
    """Keras shares the batch that the script names among the replicas."""
    return -(-traced.script_batch_size // replicas) if traced.script_batch_size else 0


def _is_counted(recipe: Recipe) -> bool:
    """Return whether what is computed again is alike at any batch, as one trace stands for all."""
    return bool(recipe.remat) and not recipe.remat_budget_bytes


def _holding(plain: Estimate, again: Estimate) -> Estimate:
    """Return the time of a step, and the memory of one that computes parts of itself again."""
    memory = {name: getattr(again, name) for name in _OF_MEMORY}
    made_by = {**plain.made_by, "memory": again.made_by["memory"]}
    return replace(plain, made_by=made_by, **memory)


def _left_out(recipe: Recipe, found: Estimate | None) -> tuple[str, ...]:
    """Return what the recipe asks for and the estimate does not know."""
    counted = _is_counted(recipe)
    names = ["remat"] if recipe.remat and not counted else []
    names += ["ema"] if recipe.ema else []
    names += ["precision = float8"] if recipe.precision == "float8" else []
    if not found:
        return ()
    time = (say("The memory is that with remat; the time leaves out what is computed again."),)
    told = (say("The estimate does not count {what}.", what=say(" and ").join(names)),)
    return (*(time if counted else ()), *(told if names else ()))
