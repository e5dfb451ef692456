"""``tfdyno tune``: the fastest recipe of a workload by measured trials, and the proof."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from tfdyno.cli.options import (
    CODE,
    RECIPE,
    SET,
    TOLD,
    WAIT_FREE,
    WORKLOAD,
    Filled,
    OneOf,
    Positive,
    Whole,
    recipe_from,
    workload_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import DataMode
from tfdyno.core.recipe.recipe import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.train.tuning import Tuning
    from tfdyno.jobs.tune.request import TuneRequest

FAILED = 1


@click.command()
@WORKLOAD
@RECIPE
@SET
@click.option(
    "--space", multiple=True, metavar="KEY=A,B,C",
    help="Values of a setting to try, beside the start's own; many.",
)  # fmt: skip
@click.option("--trials", type=Whole("trials"), help="Trials that are run, at most.  [default: 20]")
@click.option("--runs", type=Whole("runs", least=2), help="Fresh processes a trial.  [default: 3]")
@click.option(
    "--seconds", type=Positive("seconds"), metavar="S",
    help="Of steps in a run, at most.  [default: 20]",
)  # fmt: skip
@click.option(
    "--data", type=OneOf("data", get_args(DataMode)),
    help="Default: own; synthetic for a model alone.",
)  # fmt: skip
@click.option(
    "--memory-limit", type=Filled(), metavar="SIZE",
    help="Of a run without a GPU, as 8GiB.  [default: 90 % of this machine's]",
)  # fmt: skip
@click.option("--keep-batch", is_flag=True, help="Leave the samples of an update as they are.")
@click.option("--gpu", type=Filled(), metavar="SLUG", help="With --dry-run: plan for this card.")
@click.option("--dry-run", is_flag=True, help="List the trials with their estimates; run nothing.")
@click.option("--output", type=Filled(), metavar="DIR", help="Folder of the study.")
@click.option("--resume", is_flag=True, help="Go on with the study in the folder.")
@click.option(
    "--on", type=OneOf("engine", ("local", "ray")), default="local", show_default=True,
    help="Where trials run: here, or one on each node of a Ray cluster.",
)  # fmt: skip
@click.option("--address", type=Filled(), metavar="HOST:PORT", help="Of the Ray cluster.")
@click.option("--seed", type=Whole("seed", least=0), default=0, help="Of the order of trials.")
@WAIT_FREE
@CODE
@TOLD
def tune(**given: Any) -> None:
    """Find the fastest recipe by measured trials, and prove it.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50 or a standard task.
    Arguments of a script follow after --. Optuna chooses the trials; each is measured as tfdyno
    bench does, in fresh processes. A trial that surely does not fit, that is surely slower or that
    was there before is not run. The fastest is then measured in turns with the recipe that it
    started from; where that is not proven, the start stays the answer.

    Only speed is tuned: a larger batch is marked, since it changes what is learned. The folder
    (tfdyno-tuning without --output) gets recipe.toml, tuning.json and the study.
    """
    _check(given)
    question = _question(given)
    if given["dry_run"]:
        _plan(question, given)
        return
    from tfdyno.jobs.tune.tune import tune as trials_of

    last: Tuning | None = None
    stop: BaseException | None = None
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        try:
            for so_far in _on_engine(given, question, progress, trials_of):
                last = so_far
        except BaseException as error:  # told after the answer so far
            if last is None:
                raise
            stop, last = error, replace(last, ended="stopped")
    assert last
    _answer(last, question.folder, given)
    if stop:
        stop.add_note(f"the trials are kept in {question.folder}; the same command with --resume "
                      "goes on.")  # fmt: skip
        raise stop
    if last.best is None:  # there is no answer
        click.get_current_context().exit(FAILED)


def _check(given: dict[str, Any]) -> None:
    """Refuse options that need another one; raises ``UsageError``."""
    if given["gpu"] and not given["dry_run"]:
        raise UsageError("--gpu needs --dry-run", why="trials are measured on this machine",
                         remedy="add --dry-run, or leave it out")  # fmt: skip
    if given["dry_run"] and not given["gpu"]:
        raise UsageError("--dry-run needs --gpu", why="there are estimates for cards only",
                         remedy="name a card, as --gpu l4")  # fmt: skip
    if given["dry_run"] and given["resume"]:
        raise UsageError("--resume cannot go with --dry-run", why="a plan keeps no study",
                         remedy="leave one of them out")  # fmt: skip
    if given["wait_free"] and (given["on"] == "ray" or given["dry_run"]):
        other = "--on ray" if given["on"] == "ray" else "--dry-run"
        raise UsageError(f"--wait-free cannot go with {other}", why="it waits for cards of this "
                         "machine", remedy="leave one of them out")  # fmt: skip
    if given["address"] and given["on"] != "ray":
        raise UsageError("--address needs --on ray", remedy="add --on ray, or leave it out")


def _question(given: dict[str, Any]) -> TuneRequest:
    from tfdyno.core.train.search_space import read_space
    from tfdyno.jobs.bench.bench import default_data
    from tfdyno.jobs.tune.request import DEFAULT_FOLDER, MOST_S, RUNS, TRIALS, TuneRequest

    workload = workload_from({**given, "precision": ""}, mode="train")
    recipe = recipe_from(given["recipe"], typed(given["changes"]))
    return TuneRequest(
        workload=workload,
        recipe=recipe,
        named=read_space(given["space"], recipe),
        trials=given["trials"] or TRIALS,
        runs=given["runs"] or RUNS,
        seconds_s=given["seconds"] or MOST_S,
        data=given["data"] or default_data(workload),
        memory_limit_bytes=_limit(given["memory_limit"]),
        keep_batch=given["keep_batch"],
        folder=Path(given["output"]) if given["output"] else DEFAULT_FOLDER,
        resume=given["resume"],
        seed=given["seed"],
        wait_free=given["wait_free"],
    )


def _limit(typed_size: str | None) -> int:
    from tfdyno.core.base.units import parse_bytes

    found = parse_bytes(typed_size) if typed_size else 0.0
    if typed_size and not 1 <= found < math.inf:
        raise UsageError(f"--memory-limit {typed_size} is not possible", remedy="give 8GiB or so")
    return int(found)


def _on_engine(
    given: dict[str, Any],
    question: TuneRequest,
    progress: Callable[[str], None],
    trials_of: Callable[..., Iterator[Tuning]],
) -> Iterator[Tuning]:
    if given["on"] == "local":
        return trials_of(question, progress=progress)
    from tfdyno.jobs.tune.ray import ray_nodes

    nodes = ray_nodes(question, address=given["address"] or "", progress=progress)
    return trials_of(question, progress=progress, engine=nodes)


def _plan(question: TuneRequest, given: dict[str, Any]) -> None:
    from tfdyno.catalog.gpus import find
    from tfdyno.jobs.tune.plan import planned

    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = planned(question, find(given["gpu"]), progress=progress)
    _print(found, "", (), given)


def _answer(told: Tuning, folder: Path, given: dict[str, Any]) -> None:
    from tfdyno.jobs.tune.write import written

    files = written(folder, told)
    _print(told, str(folder), tuple(map(str, files)), given)


def _print(told: Tuning, folder: str, files: tuple[str, ...], given: dict[str, Any]) -> None:
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.train.tune_document import tune_document

        click.echo(to_json(tune_document(told, folder=folder), indent=2).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.train.tune_text import tune_text

    click.echo(tune_text(told, folder=folder, files=files, width=terminal_width(),
                         colour=colour_wanted()))  # fmt: skip
