"""What a training left behind, in the words of ``TrainOutcome``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.recipe import Recipe
from tfdyno.core.training import Applied, TrainOutcome
from tfdyno.runtime.train_strategy import is_chief
from tfdyno.runtime.train_watch import NanLoss

if TYPE_CHECKING:
    from tfdyno.core.finding import Finding
    from tfdyno.runtime.train_loop import TrainPlan

MODEL = "model.keras"


@dataclass(slots=True, kw_only=True)
class Counts:
    """Numbers of a training, earlier sittings included where nothing else is said."""

    epochs: int = 0
    step: int = 0
    first_step: int = 0
    """Batches before this sitting."""
    samples_per_step: int = 0
    iterations_before: int = 0
    """Of the optimizer before the training."""
    iterations: int = 0
    accumulation: int = 1
    """Batches per iteration of the optimizer: more than 1 where tfdyno accumulates."""
    compiled: bool = False
    """Whether XLA compiles the step, or that of each replica."""
    nan: NanLoss | None = None


def outcome_of(
    model: Any,  # noqa: ANN401
    plan: TrainPlan,
    counts: Counts,
    *,
    history: dict[str, list[float]],
    stopped: str,
    resumed_from: str,
    checkpoint_folder: Path | None,
    replica_count: int,
    findings: tuple[Finding, ...],
    notes: tuple[str, ...],
) -> TrainOutcome:
    """Put together what is known at the end of a sitting; writes the model where it is whole."""
    watch, settings = plan.watch, plan.settings
    found = sorted(checkpoint_folder.glob("step-*.json")) if checkpoint_folder else []
    taken = counts.iterations - counts.iterations_before
    by_keras = _accumulation_of_keras(model)
    scales = hasattr(model.optimizer, "inner_optimizer")
    skipped = max(0, counts.step // counts.accumulation - taken) if scales else 0
    path = ""
    if settings.output and settings.save_model and not stopped and not counts.nan:
        path, note = _saved(model, Path(settings.output) / MODEL)
        notes = (*notes, *note)
    return TrainOutcome(
        history=history,
        epochs=counts.epochs,
        steps=counts.step,
        updates=taken // by_keras,
        skipped_updates=skipped,
        seconds_s=watch.seconds_s,
        samples_per_s=watch.samples_per_s,
        replica_count=replica_count,
        global_batch_size=counts.samples_per_step,
        seed=plan.recipe.seed,
        parameter_count=int(model.count_params()),
        peak_memory_bytes=watch.memory_bytes,
        memory_kind=watch.memory_kind,
        stopped=stopped,
        resumed_from=resumed_from,
        checkpoints=tuple(map(str, found)),
        model_path=path,
        applied=applied(model, plan.recipe, counts),
        findings=findings,
        notes=notes,
    )


def applied(model: Any, recipe: Recipe, counts: Counts) -> tuple[Applied, ...]:  # noqa: ANN401
    """The settings of the recipe with what TensorFlow and Keras report of them."""
    import tensorflow as tf

    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    strategy = model.distribute_strategy
    reported = {
        "precision": _policies(model),
        "execution": "xla" if counts.compiled else "graph",
        "accumulation": recipe.accumulation,
        "steps_per_execution": int(model.steps_per_execution),
        "ema": inner.ema_momentum if inner.use_ema else 0.0,
        "clip_norm": inner.global_clipnorm or 0.0,
        "strategy": f"{type(strategy).__name__}, {strategy.num_replicas_in_sync} replicas",
        "threads_intra": tf.config.threading.get_intra_op_parallelism_threads(),
        "threads_inter": tf.config.threading.get_inter_op_parallelism_threads(),
    }
    plain = Recipe()
    names = [name for name in reported if getattr(recipe, name) != getattr(plain, name)]
    return tuple(
        Applied(name=name, asked=str(getattr(recipe, name)), reported=str(reported[name]))
        for name in names
    )


def _policies(model: Any) -> str:  # noqa: ANN401
    return ", ".join(sorted({layer.dtype_policy.name for layer in model._flatten_layers()}))


def _accumulation_of_keras(model: Any) -> int:  # noqa: ANN401
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return int(getattr(inner, "gradient_accumulation_steps", None) or 1)


def _saved(model: Any, path: Path) -> tuple[str, tuple[str, ...]]:  # noqa: ANN401
    """Write the model so that a kill leaves the old file or the new."""
    part = path.with_name(f".{path.name}.part.keras")
    try:
        model.save(part)  # all workers: reading the variables is a joint operation
        if not is_chief():
            return "", ()
        part.replace(path)
    except Exception as error:  # a model that cannot be saved is still trained
        part.unlink(missing_ok=True)
        return "", (f"The model was not saved: {error}.",)
    return str(path), ()
