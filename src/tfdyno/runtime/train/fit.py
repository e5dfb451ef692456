"""``tfdyno.fit``: a compiled model trained under a recipe in the user's own process.

The only entry to runtime that is imported instead of started. The loop is that of ``tfdyno train``.
What needs a process that has done nothing else is refused by name, what the user's callbacks or
data raise comes out as it is, and the model is left to Keras' own ``fit`` as it was found.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base import settings as read
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.core.recipe.recipe_file import Given, given_recipe, read_recipe
from tfdyno.core.train.training import CHECKPOINTS, MARKERS, RunSettings, how_often
from tfdyno.runtime.train.fit_refusals import refuse_late, standing_of
from tfdyno.runtime.workload.fit_call import as_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.base.untyped import Dataset, Model
    from tfdyno.core.train.training import TrainOutcome

_RUN = "run.json"
"""What tells a folder of tfdyno train, also where a run has no checkpoint yet."""
_TUPLE = ("x", "y", "sample_weight")


def fit(
    model: Model,
    data: Dataset,
    *,
    recipe: Given,
    settings: RunSettings,
    options: Mapping[str, Any],
    progress: Callable[[str], None],
) -> tuple[TrainOutcome, Recipe]:
    """Train until the end, Ctrl-C, SIGTERM or a loss that is not a number.

    Args:
        model: A compiled Keras model.
        data: What ``fit`` takes as ``x``, or a tuple (x, y, sample_weight).
        recipe: None: that of the folder which is resumed, or the one that changes nothing.
        settings: What the run does beside training.
        options: Other arguments of the model's ``fit`` by name.
        progress: Takes stages, and events as JSON.

    Returns:
        What came out, and the recipe that was taken.

    Raises:
        UsageError: The model, the data, an argument or the recipe is not possible here.
        ToolError: A checkpoint cannot be written.
        KeyboardInterrupt: At the second Ctrl-C; the first one ends with a checkpoint.
    """
    _check_model(model)
    arguments = _arguments(model, data, options)
    taken = _recipe_in(settings, given_recipe(recipe))
    check_composition(taken)
    refuse_late(taken, standing_of(model))
    from tfdyno.runtime.train.fit_session import (
        run_session,  # after the checks: it needs TensorFlow
    )

    return run_session(model, arguments, taken, settings, progress), taken


def read_settings(
    *,
    output: str | Path | None = None,
    resume: bool = False,
    checkpoint_every: int | str | None = None,
    keep: int = 3,
    tensorboard: bool = False,
    norms: int = 0,
) -> RunSettings:
    """Return what a run does beside training, as it is asked for in Python.

    Args:
        output: Its folder; None: none.
        resume: Whether to go on with what is in it.
        checkpoint_every: Steps, or a time as "10min"; None: the default.
        keep: Checkpoints that stay.
        tensorboard: Whether to write logs.
        norms: Steps from one look at the layers to the next; 0: none.

    Raises:
        UsageError: A number is not possible, or there is no folder for what is to be written.
    """
    if not output:
        for name, asked in (("resume", resume), ("tensorboard", tensorboard), ("norms", norms)):
            if asked:
                raise UsageError(f"{name} needs the folder of a run", remedy="name it as output")
    steps, seconds_s = 0, RunSettings().checkpoint_s
    if checkpoint_every is not None:
        steps, seconds_s = how_often(checkpoint_every, "checkpoint_every")
    return RunSettings(
        output=str(Path(output).absolute()) if output else "",
        resume=resume,
        checkpoint_steps=steps,
        checkpoint_s=seconds_s,
        keep=read.whole(keep, "keep"),
        tensorboard=tensorboard or bool(norms),
        norms_steps=read.whole(norms, "norms") if norms else 0,
        save_model=bool(output),
    )


def _check_model(model: Model) -> None:
    """Refuse what is no compiled Keras 3 model on TensorFlow; raises ``UsageError``."""
    import keras

    if not isinstance(model, keras.Model):
        what = f"a {type(model).__module__.partition('.')[0]}.{type(model).__name__}"
        raise UsageError(f"{what} cannot be trained", remedy="give fit a keras.Model of Keras 3")
    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            f"Keras runs on {keras.backend.backend()} here, and fit trains on TensorFlow",
            remedy="set KERAS_BACKEND=tensorflow before Keras is imported",
        )
    if not model.compiled:
        what = f"{model.name} is not compiled"
        raise UsageError(what, remedy="call its compile with an optimizer and a loss first")


def _arguments(model: Model, data: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the model's ``fit`` by name."""
    parameters = inspect.signature(model.fit).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        for name in options:
            read.one_of(name, parameters, "argument of fit")
    if data is None:
        remedy = "give arrays as (x, y), a tf.data.Dataset, a PyDataset or a generator"
        raise UsageError("fit needs data", remedy=remedy)
    if isinstance(data, tuple) and not 1 <= len(data) <= len(_TUPLE):
        what = f"a tuple of {len(data)} is no data for fit"
        raise UsageError(what, remedy="give (x, y) or (x, y, sample_weight), several inputs as x")
    made = as_arguments(data)
    if twice := sorted(made.keys() & options.keys()):
        raise UsageError(f"{' and '.join(twice)} is given twice", why="it is in the data already")
    return {**made, **{name: value for name, value in options.items() if name != "verbose"}}


def _recipe_in(settings: RunSettings, recipe: Recipe | None) -> Recipe:
    """Return the recipe of a run that goes on, or of a new one in a folder without any."""
    folder = Path(settings.output)
    has_run = any((folder / CHECKPOINTS).glob(MARKERS)) or (folder / _RUN).exists()
    if not settings.output or not has_run:
        return recipe or Recipe()
    if not settings.resume:
        remedy = "go on with it by resume=True, or name another folder as output"
        raise UsageError(f"{folder} holds a run already", remedy=remedy)
    kept = read_recipe(folder)
    given = recipe or kept
    given = replace(given, seed=kept.seed if given.seed is None else given.seed)
    if changed := diff(kept, given):
        why = ", ".join(f"its {name} is {was}, not {now}" for name, (was, now) in changed.items())
        remedy = "leave the recipe out to go on with it, or name another folder as output"
        raise UsageError(f"{folder} holds another run", why=why, remedy=remedy)
    return kept
