"""``tfdyno tune``: the fastest recipe of a workload by measured trials, and the proof."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tfdyno.cli.answer import Answer, noted
from tfdyno.cli.backend_options import EITHER, backend_of
from tfdyno.cli.command import TEXT, command, flag, group, many, option
from tfdyno.cli.options import (
    LANG,
    RECIPE,
    SET,
    WAIT_FREE,
    Filled,
    OneOf,
    Positive,
    Telling,
    Whole,
    recipe_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.cli.workload_options import CodeOptions, WorkloadOptions, workload_from
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.measure.measurement import DataMode
from tfdyno.core.recipe.recipe import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.train.tuning import Tuning
    from tfdyno.jobs.tune.request import TuneRequest

FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(WorkloadOptions):
    backend: str | None = EITHER
    recipe: Path | None = RECIPE
    changes: tuple[str, ...] = SET
    space: tuple[str, ...] = many(
        type=TEXT, metavar="KEY=A,B,C",
        help="Values of a setting to try, beside the start's own; many.",
    )  # fmt: skip
    trials: int | None = option(
        type=Whole("trials"), help="Trials that are run, at most.  [default: 20]"
    )
    runs: int | None = option(
        type=Whole("runs", least=2), help="Fresh processes a trial.  [default: 3]"
    )
    seconds: float | None = option(
        type=Positive("seconds"), metavar="S", help="Of steps in a run, at most.  [default: 20]"
    )
    data: DataMode | None = option(
        type=OneOf("data", get_args(DataMode)), help="Default: own; synthetic for a model alone."
    )
    memory_limit: str | None = option(
        type=Filled(), metavar="SIZE",
        help="Of a run without a GPU, as 8GiB.  [default: 90 % of this machine's]",
    )  # fmt: skip
    keep_batch: bool = flag(help="Leave the samples of an update as they are.")
    gpu: str | None = option(
        type=Filled(), metavar="SLUG", help="With --dry-run: plan for this card."
    )
    dry_run: bool = flag(help="List the trials with their estimates; run nothing.")
    output: str | None = option(type=Filled(), metavar="DIR", help="Folder of the study.")
    resume: bool = flag(help="Go on with the study in the folder.")
    on: str = option(
        type=OneOf("engine", ("local", "ray")), default="local", show_default=True,
        help="Where trials run: here, or one on each node of a Ray cluster.",
    )  # fmt: skip
    address: str | None = option(type=Filled(), metavar="HOST:PORT", help="Of the Ray cluster.")
    seed: int = option(type=Whole("seed", least=0), default=0, help="Of the order of trials.")
    wait_free: bool = WAIT_FREE
    code: CodeOptions = group(CodeOptions)
    told: Telling = group(Telling)
    lang: Language | None = LANG


@command(_Options)
def tune(options: _Options) -> Answer:
    """Find the fastest recipe by measured trials, and prove it.

    WORKLOAD is script.py, file.py:function, model.keras, keras:ResNet50 or a standard task.
    Arguments of a script follow after --. Optuna chooses the trials; each is measured as tfdyno
    bench does, in fresh processes. A trial that surely does not fit, that is surely slower or that
    was there before is not run. The fastest is then measured in turns with the recipe that it
    started from; where that is not proven, the start stays the answer.

    Only speed is tuned: a larger batch is marked, since it changes what is learned. The folder
    (tfdyno-tuning without --output) gets recipe.toml, tuning.json and the study.
    """
    _check(options)
    request, note = _request(options)
    if options.dry_run:
        return _plan(request, options, note)
    from tfdyno.jobs.tune.tune import tune as trials_of
    from tfdyno.jobs.tune.write import written

    last: Tuning | None = None
    stop: BaseException | None = None
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        _tell(progress, note)
        try:
            for so_far in _on_engine(options, request, progress, trials_of):
                last = so_far
        except BaseException as error:  # told after the answer so far
            if last is None:
                raise
            stop, last = error, replace(last, ended="stopped")
    assert last
    files = written(request.folder, last)
    if stop:
        noted(stop, f"the trials are kept in {request.folder}; the same command with --resume "
                    "goes on.")  # fmt: skip
    told = _answer(last, str(request.folder), tuple(map(str, files)))
    # Without a best one there is no answer.
    return replace(told, error=stop, exit_code=FAILED if last.best is None else 0)


def _check(options: _Options) -> None:
    """Refuse options that need another one; raises ``UsageError``."""
    if options.gpu and not options.dry_run:
        raise UsageError("--gpu needs --dry-run", why="trials are measured on this machine",
                         remedy="add --dry-run, or leave it out")  # fmt: skip
    if options.dry_run and not options.gpu:
        raise UsageError("--dry-run needs --gpu", why="there are estimates for cards only",
                         remedy="name a card, as --gpu l4")  # fmt: skip
    if options.dry_run and options.resume:
        raise UsageError("--resume cannot go with --dry-run", why="a plan keeps no study",
                         remedy="leave one of them out")  # fmt: skip
    if options.wait_free and (options.on == "ray" or options.dry_run):
        other = "--on ray" if options.on == "ray" else "--dry-run"
        raise UsageError(f"--wait-free cannot go with {other}", why="it waits for cards of this "
                         "machine", remedy="leave one of them out")  # fmt: skip
    if options.address and options.on != "ray":
        raise UsageError("--address needs --on ray", remedy="add --on ray, or leave it out")


def _tell(progress: Callable[[str], None], note: str) -> None:
    """Tell what is to be known of the backend, which stays on the screen."""
    if note:
        progress(Lasting(note))


def _request(options: _Options) -> tuple[TuneRequest, str]:
    """Return what is asked, and what is to be told of the backend that was found."""
    from tfdyno.core.train.search_space import read_space
    from tfdyno.jobs.bench.bench import default_data
    from tfdyno.jobs.tune.request import DEFAULT_FOLDER, MOST_S, RUNS, TRIALS, TuneRequest

    workload = workload_from(options, options.code)
    backend, note = backend_of(workload, options.backend)
    recipe = recipe_from(options.recipe, typed(options.changes))
    request = TuneRequest(
        workload=workload,
        recipe=recipe,
        backend=backend,
        named=read_space(options.space, recipe),
        trials=options.trials or TRIALS,
        runs=options.runs or RUNS,
        seconds_s=options.seconds or MOST_S,
        data=options.data or default_data(workload),
        memory_limit_bytes=_limit(options.memory_limit),
        keep_batch=options.keep_batch,
        folder=Path(options.output) if options.output else DEFAULT_FOLDER,
        resume=options.resume,
        seed=options.seed,
        wait_free=options.wait_free,
    )
    return request, note


def _limit(typed_size: str | None) -> int:
    from tfdyno.core.base.units import parse_bytes

    found = parse_bytes(typed_size) if typed_size else 0.0
    if typed_size and not 1 <= found < math.inf:
        raise UsageError(f"--memory-limit {typed_size} is not possible", remedy="give 8GiB or so")
    return int(found)


def _on_engine(
    options: _Options,
    request: TuneRequest,
    progress: Callable[[str], None],
    trials_of: Callable[..., Iterator[Tuning]],
) -> Iterator[Tuning]:
    if options.on == "local":
        return trials_of(request, progress=progress)
    from tfdyno.jobs.tune.ray import ray_nodes

    nodes = ray_nodes(request, address=options.address or "", progress=progress)
    return trials_of(request, progress=progress, engine=nodes)


def _plan(request: TuneRequest, options: _Options, note: str) -> Answer:
    from tfdyno.catalog.gpus import find
    from tfdyno.jobs.tune.plan import planned

    assert options.gpu
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        _tell(progress, note)
        return _answer(planned(request, find(options.gpu), progress=progress))


def _answer(told: Tuning, folder: str = "", files: tuple[str, ...] = ()) -> Answer:
    from tfdyno.view.train.tune_text import tune_text
    from tfdyno.words.train.tune_document import tune_document

    return Answer(
        document=partial(tune_document, told, folder=folder),
        text=partial(tune_text, told, folder=folder, files=files),
    )
