"""What a training is asked by options, here or where another command starts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import (
    INPUT_SHAPE,
    SET,
    Filled,
    OneOf,
    Whole,
    recipe_from,
    together,
    workload_from,
)
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe, diff, typed
from tfdyno.core.train.training import how_often, seconds_text

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload
    from tfdyno.jobs.train.train import TrainRequest

_EVERY = "--checkpoint-every"


class _Every(click.ParamType[tuple[int, float]]):
    """How often: a number of steps, or a time as 30s, 10min, 1h; as (steps, seconds)."""

    name = "N|TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, float]:
        """Read it; raises ``UsageError``."""
        return value if isinstance(value, tuple) else how_often(value, _EVERY)


WHAT_OPTIONS = together(
    click.option(
        "--recipe", type=Filled(), metavar="FILE|auto",
        help="Settings, TOML or the folder of a run; auto: what estimate advises for this machine.",
    ),
    SET,
    click.option("--epochs", type=Whole("epochs"), help="Instead of the workload's own number."),
    click.option("--steps-per-epoch", type=Whole("steps"), help="Instead of the whole data."),
    click.option(
        "--data", type=Filled(), metavar="FILE.py:FUNCTION",
        help="Returns the data of a model that brings none.",
    ),
    click.option(
        "--output", type=Filled(), metavar="DIR",
        help="Folder of the run.  [default: a new one in tfdyno-runs]",
    ),
)  # fmt: skip
"""What is trained, and where it is kept."""
HOW_OPTIONS = together(
    click.option(
        _EVERY, "every", type=_Every(),
        help="So many steps, or a time as 10min.  [default: 5min, and at each epoch's end]",
    ),
    click.option(
        "--keep", type=Whole("checkpoints"), help="So many checkpoints stay.  [default: 3]"
    ),
    click.option("--tensorboard", is_flag=True, help="Write logs for TensorBoard."),
    click.option(
        "--norms", type=Whole("steps"), metavar="N",
        help="Norms of gradients and activations per layer every N steps, for TensorBoard.",
    ),
    click.option("--no-model", is_flag=True, help="Do not keep the trained model as model.keras."),
    click.option(
        "--spot", type=OneOf("--spot", settings.CLOUDS), metavar="CLOUD",
        help="Listen to aws, gcp or azure for the end of a spot machine.",
    ),
)  # fmt: skip
"""What is kept of it, and how often."""
RUN_OPTIONS = together(WHAT_OPTIONS, HOW_OPTIONS, INPUT_SHAPE)


def workload_of(given: dict[str, Any]) -> Workload:
    """What is trained; raises ``UsageError``."""
    return workload_from({**given, "precision": "", "input_spec": (), "fit_number": 1},
                         mode="train")  # fmt: skip


def kept_settings(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of ``RunSettings`` that were asked for."""
    steps, seconds_s = given["every"] or (None, None)
    asked: dict[str, Any] = {
        "epochs": given["epochs"],
        "steps_per_epoch": given["steps_per_epoch"],
        "keep": given["keep"],
        "norms_steps": given["norms"],
        "tensorboard": given["tensorboard"] or bool(given["norms"]) or None,
        "save_model": False if given["no_model"] else None,
        "checkpoint_steps": steps,
        "checkpoint_s": seconds_s,
    }
    return {name: value for name, value in asked.items() if value is not None}


def question_from(given: dict[str, Any]) -> TrainRequest:
    """What ``RUN_OPTIONS`` ask, with a recipe that is read; raises ``UsageError``."""
    from tfdyno.core.train.training import RunSettings
    from tfdyno.jobs.train.train import TrainRequest

    kept = kept_settings(given)
    return TrainRequest(
        workload=workload_of(given),
        recipe=recipe_given(given),
        settings=RunSettings(output=given["output"] or "", **kept),
        given=frozenset(kept),
        data=given["data"] or "",
        spot=given["spot"] or "",
    )


def recipe_given(given: dict[str, Any]) -> Recipe:
    """The recipe of ``--recipe`` and ``--set``; raises ``UsageError``."""
    if given["recipe"] == "auto":
        what = "--recipe auto asks this machine, and others train"
        remedy = "write it down with tfdyno recipe auto --gpu SLUG, and give the file"
        raise UsageError(what, remedy=remedy)
    return recipe_from(given["recipe"], typed(given["changes"]))


def run_words(given: dict[str, Any]) -> tuple[str, ...]:
    """``RUN_OPTIONS`` as they were given, for a command on another machine.

    The recipe is written out setting by setting, so that its file need not be there.
    """
    words: list[str] = []
    for name, (_, value) in diff(Recipe(), recipe_given(given)).items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        words += ["--set", f"{name}={text}"]
    steps, seconds_s = given["every"] or (None, None)
    plain = {
        "--epochs": given["epochs"],
        "--steps-per-epoch": given["steps_per_epoch"],
        "--data": given["data"],
        _EVERY: steps or (seconds_text(seconds_s) if seconds_s else None),
        "--keep": given["keep"],
        "--norms": given["norms"],
        "--spot": given["spot"],
    }
    for name, value in plain.items():
        words += [name, str(value)] if value else []
    words += ["--tensorboard"] * given["tensorboard"] + ["--no-model"] * given["no_model"]
    for shape in given["input_shapes"]:
        words += ["--input-shape", ",".join(map(str, shape)) or "()"]
    return (*words, *(["--unsafe"] * given["unsafe"]))
