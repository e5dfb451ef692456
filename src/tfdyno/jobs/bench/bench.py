"""Measure a workload by the protocol: fresh processes, every run stored at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.offers import data_dir
from tfdyno.core.base.clock import now
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.measurement import DataMode, Measured, Measurement, Protocol
from tfdyno.core.measure.software import Backend
from tfdyno.core.messages.bench import MeasureHere
from tfdyno.core.recipe.composition import check_composition, refuse_trainer_settings
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import check_recipe
from tfdyno.jobs.bench.run import Measuring, measured
from tfdyno.jobs.bench.sides import Side, check_same, new_sides, next_turn
from tfdyno.jobs.child.recipe_env import recipe_environment
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.trace import interpreter
from tfdyno.jobs.holders.guard import Asked, announced, visible_to
from tfdyno.jobs.train.jax_run import check_script
from tfdyno.model.measure.statistics import median
from tfdyno.model.measure.steady_part import run_medians_s
from tfdyno.store.cache import sha256_of
from tfdyno.store.results import Results
from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import say
from tfdyno.words.base.stages import under
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.bench.told import stage_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_RUNS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """What is measured and how."""

    workload: Workload
    recipe: Recipe = field(default_factory=Recipe)
    against: Recipe | None = None
    """Measured in turns with ``recipe``; None: only that."""
    backend: Backend = "tensorflow"
    """Of Keras."""
    against_backend: Backend = "tensorflow"
    """Of ``against``. Where they differ, all runs begin with the same weights and a seed, and
    their first losses are kept."""
    protocol: Protocol = field(default_factory=Protocol)
    folder: Path | None = None
    """The folder of the results; None: the user's own, see ``default_folder``."""
    resume: bool = False
    label: str = ""
    wait_free: bool = False
    """Whether it waits, before the first run, until nobody else is on the cards."""

    @property
    def asked(self) -> list[tuple[Recipe, Backend]]:
        """Return the recipe of each side and its backend; with a seed where backends differ."""
        sides = [(self.recipe, self.backend)]
        if self.against is None:
            return sides
        sides.append((self.against, self.against_backend))
        if not self.is_of_backends:
            return sides
        return [(replace(one, seed=one.seed or 0), backend) for one, backend in sides]

    @property
    def is_of_backends(self) -> bool:
        """Whether two backends are measured in turns."""
        return self.against is not None and self.against_backend != self.backend


def default_folder() -> Path:
    """Return where results go that name no folder: ``results`` in the user's data folder."""
    return data_dir() / "results"


def default_data(workload: Workload) -> DataMode:
    """Return the workload's own data if it comes with some; made-up batches for a model alone."""
    return "own" if workload.kind in {"script", "function", "step_function"} else "synthetic"


def bench(
    request: BenchRequest,
    *,
    progress: Callable[[str], None] = silent,
    enough: Callable[[Sequence[Measurement]], bool] = lambda _sides: False,
    run: Measuring = measured,
) -> tuple[Measurement, ...]:
    """Run until the protocol is met; one measurement, or two where ``against`` is asked for.

    Every run is stored as soon as it ended. What stops the bench midway carries a note that says
    how many runs are kept and how to go on.

    Args:
        request: The workload, recipes and protocol.
        progress: Called with a line at every stage.
        enough: Whether what is measured suffices before the protocol is met; asked when all
            sides have the least runs, and as many.
        run: Makes one run in a fresh process, here or on another machine.

    Raises:
        UsageError: A setting is not possible, the workload fails, there is nothing to resume, or
            the results' folder cannot be used.
        ToolError: A child crashed, a card is full, the machine changed, or the disk is full.
    """
    check(request)
    interpreter(request.workload)  # there is one
    results = Results(folder=request.folder or default_folder())
    results.prepare()
    sides = _resumed(request, results) if request.resume else new_sides(request.asked)
    _look_for_room(request, progress)
    try:
        while (turn := next_turn(sides, request.protocol)) is not None:
            counts = [side.count for side in sides]
            is_even = min(counts) == max(counts) >= request.protocol.least_runs
            if is_even and enough([side.measurement() for side in sides]):
                break
            weights = _first_weights(sides[0], results)
            found = _one(request, sides, turn, str(weights), progress, run)
            sides[turn] = _kept(results, sides[turn], found, request)
    except BaseException as error:
        if not any(side.count for side in sides):
            _first_weights(sides[0], results).unlink(missing_ok=True)
        _note(error, sides, request, results)
        raise
    results.finish(*(side.id for side in sides))
    _first_weights(sides[0], results).unlink(missing_ok=True)
    return tuple(side.measurement() for side in sides)


def kept_answer(request: BenchRequest) -> tuple[Measurement, ...]:
    """Find what the newest bench of this question measured to its end; empty: there is none."""
    results = Results(folder=request.folder or default_folder())
    return results.finished(_key(request))


def unfinished_answer(request: BenchRequest) -> tuple[Measurement, ...]:
    """Find what the newest such bench measured that stopped midway; empty: none did."""
    results = Results(folder=request.folder or default_folder())
    return results.unfinished(_key(request))


def check(request: BenchRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    for recipe, backend in request.asked:
        refuse_trainer_settings(recipe, made_up=request.protocol.data.startswith("synthetic"))
        check_composition(recipe)
        if backend == "jax":
            _check_jax(request.workload, recipe, request.protocol)
    protocol = request.protocol
    if not 1 <= protocol.least_runs <= protocol.most_runs <= MOST_RUNS:
        raise UsageError(
            f"{protocol.least_runs} to {protocol.most_runs} runs are not possible",
            remedy=f"give 1 to {MOST_RUNS} with --runs, and no fewer with --max-runs",
        )
    if protocol.target_metric and protocol.data.startswith("synthetic"):
        raise UsageError("--target needs real data", why="made-up data teaches nothing")
    if protocol.data == "real" and request.workload.kind != "task":
        raise UsageError("--data real goes with a standard task",
                         remedy="give task:NAME, or leave --data out")  # fmt: skip


def _check_jax(workload: Workload, recipe: Recipe, protocol: Protocol) -> None:
    """Refuse what Keras on JAX cannot run, or what means nothing there."""
    check_recipe(recipe)
    check_script(workload)
    if workload.kind == "step_function":
        what = f"{workload.reference} is a step of TensorFlow, which JAX cannot run"
        raise UsageError(what, remedy="name a model, or leave --backend jax out")
    if protocol.data == "synthetic-device":
        what = "--data synthetic-device is for TensorFlow"
        raise UsageError(what, why="Keras on JAX hands each step its batch",
                         remedy="use --data synthetic")  # fmt: skip


def _first_weights(side: Side, results: Results) -> Path:
    """Return the file with the weights of a session on two backends; ``--resume`` takes it."""
    return results.folder.absolute() / f"first-weights-{side.session}.npz"


def _resumed(request: BenchRequest, results: Results) -> list[Side]:
    """Return the sides of the newest bench of the same question that did not come to its end."""
    found = results.unfinished(_key(request))
    if not found:
        raise UsageError(
            f"there is nothing to resume in {results.folder}",
            why="no bench with this workload and these options stopped midway",
            remedy="leave --resume out, or name the folder with --output",
        )
    sides = [replace(side, session=found[0].session) for side in new_sides(request.asked)]
    for place, so_far in enumerate(found):  # A is always stored before B
        sides[place] = replace(sides[place], id=so_far.id, so_far=so_far)
    return sides


def _one(
    request: BenchRequest,
    sides: Sequence[Side],
    turn: int,
    first_weights: str,
    progress: Callable[[str], None],
    run: Measuring,
) -> Measured:
    side, protocol = sides[turn], request.protocol
    number = side.count + 1
    title = _title(side, number, protocol)
    progress(under(title, say("starting")))
    asked = MeasureHere(
        workload=request.workload,
        recipe=side.recipe,
        protocol=protocol,
        backend=side.backend,
        first_weights=first_weights if request.is_of_backends else "",
        order=sum(each.count for each in sides),
        doing=f"run {number}{f' of {side.name}' if side.name else ''} of "
              f"{request.workload.reference}",
        had=side.so_far.task.retreats if side.so_far else (),
    )  # fmt: skip
    return run(asked, lambda stage: progress(under(title, stage_words(stage))))


def _title(side: Side, number: int, protocol: Protocol) -> str:
    """Return which run it is, of how many, and what came of those before it."""
    early = number <= protocol.least_runs
    title = say(
        "run {number} of {count}" if early else "run {number} of at most {count}",
        number=number,
        count=protocol.least_runs if early else protocol.most_runs,
    )
    if side.name:
        title = say(", ||clauses").join([side.name, title])
    if side.so_far:
        time = seconds_words(median(run_medians_s(side.so_far.runs)))
        title += say(" ({time} so far)", time=time)
    return title


def _kept(results: Results, side: Side, found: Measured, request: BenchRequest) -> Side:
    """Store a run at once; the first of a side brings the task and the environment."""
    if side.so_far:
        check_same(side.so_far, found)
        results.add_run(side.id, found.run)
        runs = (*side.so_far.runs, found.run)
        return replace(side, so_far=replace(side.so_far, runs=runs))
    first = Measurement(
        id=side.id,
        protocol=request.protocol,
        task=found.task,
        recipe=side.recipe,
        environment=found.environment,
        runs=(found.run,),
        session=side.session,
        label=request.label,
        created_at=now(),
    )
    results.start(first, key=_key(request))
    return replace(side, so_far=first)


def _key(request: BenchRequest) -> str:
    """Digest of all that decides what is measured, the workload's own file included."""
    place = Path(request.workload.reference.partition(":")[0])
    content = sha256_of(place) if place.is_file() else ""
    where = "" if request.workload.kind == "application" else str(Path.cwd())
    parts: tuple[object, ...] = (
        request.workload, request.recipe, request.against, request.protocol,
    )  # fmt: skip
    if "jax" in (backends := (request.backend, request.against_backend)):
        parts = (*parts, backends)  # so that a digest from before there was a choice stays
    return hashlib.sha256(repr((*parts, content, where)).encode()).hexdigest()


def _look_for_room(request: BenchRequest, progress: Callable[[str], None]) -> None:
    """Tell who else is on the cards, once where both sides use the same."""
    sides = {visible_to(recipe_environment(one)): (one, backend)
             for one, backend in reversed(request.asked)}  # fmt: skip
    for visible, (recipe, backend) in sides.items():
        workload = request.workload if request.workload.mode == "train" else None
        announced(
            Asked(visible=visible, recipe=recipe, workload=workload, on_jax=backend == "jax",
                  waits=request.wait_free),
            tell=progress,
        )  # fmt: skip


def _note(
    error: BaseException, sides: Sequence[Side], request: BenchRequest, results: Results
) -> None:
    """Say with the error what is kept, for whoever tells the user."""
    count = sum(side.count for side in sides)
    if count:
        least = request.protocol.least_runs * len(sides)
        runs = f"{count} of {least} runs" if count < least else plural(count, "run")
        error.add_note(
            f"{runs} {'is' if count == 1 else 'are'} kept in {results.folder}; "
            "the same command with --resume goes on."
        )
