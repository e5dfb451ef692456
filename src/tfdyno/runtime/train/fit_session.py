"""One session of ``tfdyno.fit``: the loop of a training around the user's own objects."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe_file import FILE_NAME, to_toml
from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.recipe.strategy import is_chief
from tfdyno.runtime.train.after_fit import saved_by_chief
from tfdyno.runtime.train.finished_fit import trained_once
from tfdyno.runtime.train.loop import train
from tfdyno.runtime.train.watch import TrainPlan, Watch
from tfdyno.runtime.workload.input_stages import kind, walk
from tfdyno.runtime.workload.rebatch import rebatched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Dataset, Model, Tensor
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.training import RunSettings, TrainOutcome

_HEAD = ("The recipe of a run of tfdyno.fit, which goes on with resume=True.",)
_NOT_EXACT = (
    "Without a seed a run that is resumed goes on with the same weights, but may meet the data in "
    "another order."
)
_OWN_ORDER = (
    "The dataset shuffles without a seed and was made before the seed of the recipe was set, so a "
    "run that is resumed meets it in another order: call keras.utils.set_random_seed before."
)

_OF_COMPILE = ("run_eagerly", "jit_compile", "steps_per_execution")
"""What ``compile`` sets and a recipe changes; XLA after eager, which excludes it."""


def run_session(
    model: Model,
    arguments: dict[str, Any],
    recipe: Recipe,
    settings: RunSettings,
    progress: Callable[[str], None],
) -> TrainOutcome:
    """Train until the end or a stop, and leave the model to Keras as it was found.

    Args:
        model: Compiled.
        arguments: Of its ``fit``, by name.
        recipe: With nothing that comes too late.
        settings: What the run does beside training.
        progress: Takes stages, and events as JSON.

    Raises:
        UsageError: The data is empty, or does not go with the recipe.
        ToolError: A checkpoint cannot be written.
        KeyboardInterrupt: At the second Ctrl-C.
    """
    arguments, notes = rebatched(arguments, recipe.batch_size * replicas(model), whole_only=False)
    notes = (*notes, *_notes_on_seed(recipe, settings, arguments["x"]))
    if recipe.seed is not None:
        keras.utils.set_random_seed(recipe.seed)
    if settings.output and is_chief():
        _write(recipe, Path(settings.output))

    def trained(arguments: dict[str, Any], settings: RunSettings) -> TrainOutcome:
        watch = Watch(progress)
        plan = TrainPlan(recipe=recipe, settings=settings, watch=watch, progress=progress)
        outcome = train(model, arguments, plan)
        if not (outcome.steps or outcome.stopped):
            raise UsageError("the data is empty", why="it ended before the first batch")
        return outcome

    with _as_found(model), _tf32_held(recipe), saved_by_chief():
        outcome = trained_once(model, arguments, settings, trained)
    notes = (*notes, *outcome.notes, *_notes_on_stop(outcome, settings))
    return replace(outcome, notes=notes)


def _write(recipe: Recipe, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}", why=error.strerror or str(error)) from None
    write_atomic(folder / FILE_NAME, to_toml(recipe, head=_HEAD).encode())


def _notes_on_seed(recipe: Recipe, settings: RunSettings, x: Tensor) -> Iterator[str]:
    if recipe.seed is not None:
        yield f"keras.utils.set_random_seed({recipe.seed}) was called at the start."
    if not settings.output:
        return
    if recipe.seed is None:
        yield _NOT_EXACT
    elif isinstance(x, tf.data.Dataset) and any(_has_own_order(stage) for stage in walk(x)):
        yield _OWN_ORDER


def _has_own_order(stage: Dataset) -> bool:
    """Return whether a stage draws its order without any seed."""
    if kind(stage) != "shuffle":
        return False
    return not any(tf.get_static_value(seed) for seed in (stage._seed, stage._seed2))


def _notes_on_stop(outcome: TrainOutcome, settings: RunSettings) -> Iterator[str]:
    if outcome.stopped and outcome.checkpoints:
        yield f"Call fit again with output={settings.output!r} and resume=True to go on."
    elif outcome.stopped:
        yield "No output was given: what was learned is in the model in memory alone."


@contextlib.contextmanager
def _tf32_held(recipe: Recipe) -> Iterator[None]:
    """Hold TF32 as the recipe has it: a switch that TensorFlow takes at any time."""
    if recipe.precision not in ("float32", "tf32"):
        yield
        return
    experimental = tf.config.experimental
    before = experimental.tensor_float_32_execution_enabled()
    experimental.enable_tensor_float_32_execution(recipe.precision == "tf32")
    try:
        yield
    finally:
        experimental.enable_tensor_float_32_execution(before)


@contextlib.contextmanager
def _as_found(model: Model) -> Iterator[None]:
    """Give the model back as its ``compile`` left it, whatever ends the block.

    What a recipe set on the optimizer stays: its variables were made with it.
    """
    before = [(name, getattr(model, name)) for name in _OF_COMPILE]
    try:
        yield
    finally:
        for name, value in before:
            if getattr(model, name) != value:
                setattr(model, name, value)
        model.train_function = model.test_function = model.predict_function = None
