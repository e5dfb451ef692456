"""What a training left behind, in the words of ``TrainOutcome``."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import MARKERS, MODEL, Applied, TrainOutcome
from tfdyno.runtime.base.step_hooks import has_own_step
from tfdyno.runtime.recipe.apply import reported
from tfdyno.runtime.recipe.strategy import is_chief
from tfdyno.runtime.train.watch import NanLoss

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.runtime.train.watch import TrainPlan


@dataclass(slots=True, kw_only=True)
class Counts:
    """Numbers of a training, earlier sittings included where nothing else is said."""

    epochs: int = 0
    step: int = 0
    samples_per_step: int = 0
    iterations_before: int = 0
    """Of the optimizer before the training."""
    iterations: int = 0
    accumulation: int = 1
    """Batches per iteration of the optimizer: more than 1 where tfdyno accumulates."""
    compiled: bool = False
    """Whether XLA compiles the step, or that of each replica."""
    nan: NanLoss | None = None


@dataclass(slots=True, kw_only=True)
class Session:
    """What this session knows while it runs."""

    history: dict[str, list[float]] = field(default_factory=dict)
    stop: str = ""
    """The signal that asked for the end."""
    before_validation: list[tuple[Any, Any]] = field(default_factory=list)
    """Metrics of the training while those of the validation are computed."""
    notes: list[str] = field(default_factory=list)
    is_verified: bool = False
    random: dict[str, Any] = field(default_factory=dict)
    """The random generators before anything of the data was read."""


def outcome_of(
    model: Model,
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
    """Put together what is known at the end of a session; writes the model where it is whole."""
    watch, settings = plan.watch, plan.settings
    found = sorted(checkpoint_folder.glob(MARKERS)) if checkpoint_folder else []
    taken = counts.iterations - counts.iterations_before
    if not has_own_step(model):  # that may update several times in a step
        # At the end of data without a length Keras counts an update that it did not make.
        taken = min(taken, counts.step // counts.accumulation)
    by_keras = _accumulation_of_keras(model)
    scales = hasattr(model.optimizer, "inner_optimizer")
    skipped = max(0, counts.step // counts.accumulation - taken) if scales else 0
    path = ""
    if settings.output and settings.save_model and not stopped and not counts.nan:
        path, note = saved(model, Path(settings.output) / MODEL)
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
        parameter_count=sum(math.prod(weight.shape) for weight in model.weights),
        peak_memory_bytes=watch.memory_bytes,
        memory_kind=watch.memory_kind,
        stopped=stopped,
        resumed_from=resumed_from,
        checkpoints=tuple(map(str, found)),
        model_path=path,
        applied=applied(model, plan.recipe, counts),
        findings=findings,
        notes=notes,
        pace=watch.pace.pace(),
    )


def applied(model: Model, recipe: Recipe, counts: Counts) -> tuple[Applied, ...]:
    """The settings of the recipe with what TensorFlow and Keras report of them."""
    import tensorflow as tf

    cards = len(tf.config.list_physical_devices("GPU"))
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    strategy = model.distribute_strategy
    found = {
        "precision": _policies(model) + _tf32(recipe),
        "execution": "xla" if counts.compiled else "graph",
        "accumulation": recipe.accumulation,
        "steps_per_execution": int(model.steps_per_execution),
        "ema": inner.ema_momentum if inner.use_ema else 0.0,
        "clip_norm": inner.global_clipnorm or 0.0,
        "strategy": f"{type(strategy).__name__}, {strategy.num_replicas_in_sync} replicas",
        # Parameter servers run a step on each worker by itself.
        "devices": getattr(strategy, "_num_workers", strategy.num_replicas_in_sync),
        "visible_devices": f"{cards or 'no'} card{'s' * (cards != 1)}",
        **reported(recipe),
    }
    plain = Recipe()
    names = [name for name in found if getattr(recipe, name) != getattr(plain, name)]
    return tuple(
        Applied(name=name, asked=_told(getattr(recipe, name)), reported=_told(found[name]))
        for name in names
    )


def _told(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _policies(model: Model) -> str:
    return ", ".join(sorted({layer.dtype_policy.name for layer in model._flatten_layers()}))


def _tf32(recipe: Recipe) -> str:
    import tensorflow as tf

    if recipe.precision not in ("float32", "tf32"):
        return ""
    is_on = tf.config.experimental.tensor_float_32_execution_enabled()
    return f", TF32 {'on' if is_on else 'off'}"


def _accumulation_of_keras(model: Model) -> int:
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return int(getattr(inner, "gradient_accumulation_steps", None) or 1)


def saved(model: Model, path: Path) -> tuple[str, tuple[str, ...]]:
    """Write the model so that a kill leaves the old file or the new; its path, and notes.

    Of one that Keras cannot write, or that was never called, the models in it are written too.
    """
    error = _written(model, path)
    notes = () if model.built and not error else _saved_parts(model, path)
    if error:  # a model that cannot be saved is still trained
        notes = (f"The model was not saved: {error}.", *notes)
    return str(path) if is_chief() and not error else "", notes


def _written(model: Model, path: Path) -> str:
    """Write one file whole; why that failed, in half a sentence."""
    part = path.with_name(f".{path.name}.part.keras")
    try:
        with warnings.catch_warnings():  # of a model that was never called, whose parts have all
            warnings.filterwarnings("ignore", message=".*model that has not yet been built")
            model.save(part)  # all workers: reading the variables is a joint operation
        if is_chief():
            part.replace(path)
    except Exception as error:
        part.unlink(missing_ok=True)
        # Keras tells how to write code behind it.
        return " ".join(str(error).split()).partition(". ")[0].rstrip(".")
    return ""


def _saved_parts(model: Model, path: Path) -> tuple[str, ...]:
    """Write the models that a model keeps, each by the name that its code has for it; notes."""
    import keras

    parts = {name: one for name, one in vars(model).items() if isinstance(one, keras.Model)}
    named = {name: path.with_name(f"{path.stem}.{name}{path.suffix}") for name in parts}
    files = [file.name for name, file in named.items() if not _written(parts[name], file)]
    if not files:
        return ()
    return (f"Models in it, which Keras loads by themselves: {', '.join(files)}.",)
