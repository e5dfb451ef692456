"""What a training is asked by options, here or where another command starts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.cli.command import flag, group, option
from tfdyno.cli.options import JSON, SET, Filled, OneOf, Read, Whole, recipe_from
from tfdyno.cli.workload_options import (
    INPUT_SHAPES,
    CodeOptions,
    FineTuneOptions,
    WorkloadOptions,
    fine_tune_from,
    workload_from,
)
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe, diff, typed
from tfdyno.core.train.training import how_often, seconds_text

if TYPE_CHECKING:
    from tfdyno.jobs.train.train import TrainRequest

_EVERY = "--checkpoint-every"


@dataclass(frozen=True, slots=True, kw_only=True)
class What:
    """What is trained, and where it is kept."""

    recipe: str | None = option(
        type=Filled(), metavar="FILE|auto",
        help="Settings, TOML or the folder of a run; auto: what estimate advises for this machine.",
    )  # fmt: skip
    changes: tuple[str, ...] = SET
    epochs: int | None = option(type=Whole("epochs"), help="Instead of the workload's own number.")
    steps_per_epoch: int | None = option(type=Whole("steps"), help="Instead of the whole data.")
    data: str | None = option(
        type=Filled(), metavar="FILE.py:FUNCTION|FILE",
        help="Returns the data of a model that brings none; texts of a preset: a .txt, .csv, .tsv "
        "or .jsonl.",
    )  # fmt: skip
    output: str | None = option(
        type=Filled(), metavar="DIR", help="Folder of the run.  [default: a new one in tfdyno-runs]"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What is kept of it, and how often."""

    every: tuple[int, float] | None = option(
        _EVERY, type=Read("N|TIME", lambda value: how_often(value, _EVERY)),
        help="So many steps, or a time as 10min.  [default: 5min, and at each epoch's end]",
    )  # fmt: skip
    keep: int | None = option(
        type=Whole("checkpoints"), help="So many checkpoints stay.  [default: 3]"
    )
    tensorboard: bool = flag(help="Write logs for TensorBoard.")
    norms: int | None = option(
        type=Whole("steps"), metavar="N",
        help="Norms of gradients and activations per layer every N steps, for TensorBoard.",
    )  # fmt: skip
    no_model: bool = flag(help="Do not keep the trained model as model.keras.")
    spot: str | None = option(
        type=OneOf("--spot", settings.CLOUDS), metavar="CLOUD",
        help="Listen to aws, gcp or azure for the end of a spot machine.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A training as a node is asked for it."""

    what: What = group(What)
    how: How = group(How)
    fine_tune: FineTuneOptions = group(FineTuneOptions)
    input_shapes: tuple[tuple[int, ...], ...] = INPUT_SHAPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """How much is told of a training, and in which form."""

    as_json: bool = JSON
    quiet: bool = flag("-q", "--quiet", help="Nothing on stderr but what is wrong.")
    verbose: bool = flag("-v", "--verbose", help="Show every stage and event as a line.")


def kept_settings(what: What, how: How) -> dict[str, Any]:
    """Return the fields of ``RunSettings`` that were asked for."""
    steps, seconds_s = how.every or (None, None)
    asked: dict[str, Any] = {
        "epochs": what.epochs,
        "steps_per_epoch": what.steps_per_epoch,
        "keep": how.keep,
        "norms_steps": how.norms,
        "tensorboard": how.tensorboard or bool(how.norms) or None,
        "save_model": False if how.no_model else None,
        "checkpoint_steps": steps,
        "checkpoint_s": seconds_s,
    }
    return {name: value for name, value in asked.items() if value is not None}


def question_from(
    named: WorkloadOptions, run: Run, *, python: str | None, unsafe: bool
) -> TrainRequest:
    """Return what is asked, with a recipe that is read; raises ``UsageError``."""
    from tfdyno.core.train.training import RunSettings
    from tfdyno.jobs.train.train import TrainRequest

    what, kept = run.what, kept_settings(run.what, run.how)
    code = CodeOptions(input_shapes=run.input_shapes, python=python, unsafe=unsafe)
    return TrainRequest(
        workload=workload_from(named, code, fine_tune=run.fine_tune),
        recipe=recipe_given(what),
        settings=RunSettings(output=what.output or "", **kept),
        given=frozenset(kept),
        data=what.data or "",
        spot=run.how.spot or "",
    )


def recipe_given(what: What) -> Recipe:
    """Return the recipe of ``--recipe`` and ``--set``; raises ``UsageError``."""
    if what.recipe == "auto":
        told = "--recipe auto asks this machine, and others train"
        remedy = "write it down with tfdyno recipe auto --gpu SLUG, and give the file"
        raise UsageError(told, remedy=remedy)
    return recipe_from(what.recipe, typed(what.changes))


def run_words(run: Run, *, unsafe: bool) -> tuple[str, ...]:
    """Return a training as it was given, for a command on another machine.

    The recipe is written out setting by setting, so that its file need not be there.
    """
    from tfdyno.jobs.choose.reference import fine_tune_words

    words: list[str] = []
    what, how = run.what, run.how
    for name, (_, value) in diff(Recipe(), recipe_given(what)).items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        words += ["--set", f"{name}={text}"]
    steps, seconds_s = how.every or (None, None)
    plain = {
        "--epochs": what.epochs,
        "--steps-per-epoch": what.steps_per_epoch,
        "--data": what.data,
        _EVERY: steps or (seconds_text(seconds_s) if seconds_s else None),
        "--keep": how.keep,
        "--norms": how.norms,
        "--spot": how.spot,
    }
    for name, value in plain.items():
        words += [name, str(value)] if value else []
    words += ["--tensorboard"] * how.tensorboard + ["--no-model"] * how.no_model
    words += fine_tune_words(fine_tune_from(run.fine_tune))
    for shape in run.input_shapes:
        words += ["--input-shape", ",".join(map(str, shape)) or "()"]
    return (*words, *(["--unsafe"] * unsafe))
