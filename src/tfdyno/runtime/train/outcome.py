"""What a training left behind: updates, the settings that held, and the model as a file."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import Applied
from tfdyno.runtime.base.keras_internals import all_layers
from tfdyno.runtime.base.step_hooks import has_own_step
from tfdyno.runtime.checkpoint.state import optimizers_of
from tfdyno.runtime.recipe.apply import reported
from tfdyno.runtime.recipe.strategy import is_chief

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tfdyno.core.base.untyped import Model, Optimizer


def iterations_of(model: Model) -> int:
    """Return batches that the optimizer has taken (updates, where tfdyno accumulates)."""
    return max(map(_iterations, optimizers_of(model)), default=0)


def _iterations(optimizer: Optimizer) -> int:
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    variable = getattr(inner, "_iterations", None)
    return int(variable.numpy()) if variable is not None else 0


def updates_of(model: Model, taken: int, steps: int, accumulation: int) -> tuple[int, int]:
    """Return updates of the weights, and those that an overflow has skipped.

    Args:
        model: After its training.
        taken: Iterations that its optimizer has counted.
        steps: Of the training.
        accumulation: Batches per iteration: more than 1 where tfdyno accumulates.
    """
    if not has_own_step(model):  # that may update several times in a step
        # At the end of data without a length Keras counts an update that it did not make.
        taken = min(taken, steps // accumulation)
    scales = hasattr(model.optimizer, "inner_optimizer")
    skipped = max(0, steps // accumulation - taken) if scales else 0
    return taken // _accumulation_of_keras(model), skipped


def applied(model: Model, recipe: Recipe, *, compiled: bool) -> tuple[Applied, ...]:
    """Return the settings of the recipe with what TensorFlow and Keras report of them.

    Args:
        model: After its training.
        recipe: What was asked for.
        compiled: Whether XLA compiled the step, or that of each replica.
    """
    import tensorflow as tf

    cards = len(tf.config.list_physical_devices("GPU"))
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    strategy = model.distribute_strategy
    found = {
        "precision": policies(model) + _tf32(recipe),
        "execution": "xla" if compiled else "graph",
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
    return beside_asked(recipe, found)


def beside_asked(recipe: Recipe, found: Mapping[str, object]) -> tuple[Applied, ...]:
    """Return settings other than the plain recipe's, with what was found of each."""
    plain = Recipe()
    return tuple(
        Applied(name=name, asked=_told(getattr(recipe, name)), reported=_told(value))
        for name, value in found.items()
        if getattr(recipe, name) != getattr(plain, name)
    )


def _told(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def policies(model: Model) -> str:
    """List the names of the dtype policies of all layers.

    Saving a quantized model takes the names of its policies away (Keras' ``DTypePolicyMap``).
    """
    names = {layer.dtype_policy.name for layer in all_layers(model)}
    return ", ".join(sorted(filter(None, names)))


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
