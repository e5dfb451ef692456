"""What a tuning is asked: the workload, where it starts, the space, and how a trial is measured."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.fix_proof import Agreement
from tfdyno.core.measure.measurement import DataMode, Environment, Protocol
from tfdyno.core.measure.software import Backend
from tfdyno.core.messages.tune import LookHere, Pair
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.core.train.jax_plan import check_recipe
from tfdyno.core.train.search_space import Value, typed_value
from tfdyno.jobs.bench import bench
from tfdyno.jobs.bench.run import Measuring
from tfdyno.jobs.child.worker import Progress
from tfdyno.jobs.tune._losses import compare_here
from tfdyno.jobs.tune._place import look_here
from tfdyno.store.cache import sha256_of
from tfdyno.store.results import FILE as RESULTS_FILE
from tfdyno.store.tuning_study import FILE, has_begun
from tfdyno.words.bench.measurement import BACKENDS

DEFAULT_FOLDER = Path("tfdyno-tuning")
TRIALS, RUNS = 20, 3
LEAST_S, MOST_S = 3.0, 20.0
"""The time of steady steps in a run, and of all its steps: as for the fixes of ``diagnose``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    """What is tuned and how."""

    workload: Workload
    recipe: Recipe = field(default_factory=Recipe)
    """The recipe from which it starts."""
    backend: Backend = "tensorflow"
    """Of Keras."""
    named: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    """Values of settings that the user named; others have usual ones."""
    trials: int = TRIALS
    """That are run, at most; those that need no run are not counted."""
    runs: int = RUNS
    """Fresh processes of a trial that is measured to its end."""
    seconds_s: float = MOST_S
    data: DataMode = "own"
    memory_limit_bytes: int = 0
    """Resident memory of a run on CPUs, where more ends it; 0: most of what there is."""
    keep_batch: bool = False
    """Whether every update keeps its samples."""
    folder: Path = DEFAULT_FOLDER
    resume: bool = False
    seed: int = 0
    """The seed of the sampler."""
    wait_free: bool = False
    """Whether it waits, before the first trial here, until nobody else is on the cards."""

    @property
    def protocol(self) -> Protocol:
        """The protocol of each trial: one run after the other, each a fresh process."""
        return Protocol(
            data=self.data,
            least_runs=1,
            most_runs=self.runs,
            target_ratio=0.0,  # all of them, however well they agree
            least_s=min(LEAST_S, self.seconds_s),
            most_s=self.seconds_s,
        )


class NodeLost(ToolError):  # noqa: N818  (it is what happened)
    """What measures is gone: no trial's fault."""


def _nothing() -> None:
    """End nothing: there is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine that measures one trial at a time."""

    run: Measuring
    look: Callable[[LookHere, Progress], Environment] = look_here
    """Tells where a run would be made."""
    compare: Callable[[Pair, Progress], Agreement] = compare_here
    """Trains a few steps under two recipes."""
    name: str = ""
    """Empty: this machine."""
    ended: Callable[[], None] = _nothing
    """Called after the last run of a trial: what is run next is another one."""
    stop: Callable[[], None] = _nothing
    """Ends what it runs, from another thread."""


def check(request: TuneRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    if request.workload.mode != "train":
        raise UsageError(f"{request.workload.reference} cannot be tuned", why="it is not trained")
    asked = bench.BenchRequest(
        workload=request.workload, recipe=request.recipe, protocol=request.protocol,
        backend=request.backend,
    )  # fmt: skip
    bench.check(asked)
    if request.backend == "jax":
        _check_jax(request)
    made_up = request.data.startswith("synthetic")
    if made_up and (names := [name for name in request.named if name.startswith("input.")]):
        raise UsageError(f"{names[0]} cannot be tuned with made-up data",
                         why="it has no pipeline", remedy="leave it out")  # fmt: skip
    if request.keep_batch and "accumulation" in request.named:
        raise UsageError("--keep-batch and values of accumulation do not go together",
                         why="accumulation is what keeps the batch of an update",
                         remedy="leave one of them out")  # fmt: skip


def _check_jax(request: TuneRequest) -> None:
    """Refuse a value of a setting that means nothing on JAX; raises ``UsageError``."""
    for name, values in request.named.items():
        for value in values:
            check_recipe(from_settings({name: typed_value(value)}, request.recipe))


def prepare_folder(request: TuneRequest) -> None:
    """Make the folder of a study; raises ``UsageError`` where it holds another or none."""
    folder = request.folder
    has_study = has_begun(folder)
    if request.resume and not (folder / FILE).exists() and not (folder / RESULTS_FILE).exists():
        raise UsageError(f"there is nothing to resume in {folder}", why="it holds no study",
                         remedy="leave --resume out, or name the folder with --output")  # fmt: skip
    if has_study and not request.resume:
        raise UsageError(f"{folder} holds a study already",
                         remedy="go on with it by --resume, or give another --output")  # fmt: skip
    with OSErrorsAs(UsageError, f"cannot write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)


def key_of(request: TuneRequest) -> str:
    """Return all that decides what a trial is; not how many there are."""
    place = Path(request.workload.reference.partition(":")[0])
    content = sha256_of(place) if place.is_file() else ""
    named = sorted((name, tuple(map(repr, values))) for name, values in request.named.items())
    parts: tuple[object, ...] = (
        request.workload,
        request.recipe,
        named,
        request.protocol,
        request.keep_batch,
        request.memory_limit_bytes,
    )
    if request.backend == "jax":  # so that studies from before there was a choice go on
        parts = (*parts, request.backend)
    return hashlib.sha256(repr((*parts, content)).encode()).hexdigest()


def check_kept(kept_key: str, place: Environment | None, request: TuneRequest) -> None:
    """Raise ``UsageError`` where the study of the folder is another than the one asked for.

    Args:
        kept_key: Of the study; empty: it has not begun.
        place: Where it is measured; None: the same.
        request: What is asked now.
    """
    if kept_key and kept_key != key_of(request):
        kept: Backend = "jax" if place and place.jax else "tensorflow"
        if kept != request.backend:
            names = f"{BACKENDS[kept]}, not on {BACKENDS[request.backend]}"
            raise UsageError(
                f"{request.folder} holds a study on {names}",
                remedy=f"go on with it by --backend {kept}, or give another --output",
            )
        raise UsageError(
            f"{request.folder} holds another study",
            why="the workload, its file, the recipe, the space or the runs are not as they were",
            remedy="repeat the command as it was, with --resume, or give another --output",
        )
