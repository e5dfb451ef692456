"""Train a workload under a recipe, in a folder from which it goes on after any end."""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.clock import now
from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.choose.workload import TEXT_FILES, Workload, is_text_file
from tfdyno.core.cluster.cluster import ProcessRank
from tfdyno.core.measure.measurement import Environment, Telemetry
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan, check_recipe, check_settings
from tfdyno.core.train.training import RunSettings, TrainOutcome
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.reference import option_words, script_words
from tfdyno.jobs.choose.trace import interpreter
from tfdyno.jobs.train.jax_run import check_script
from tfdyno.jobs.train.resume import differences_from, digest_of
from tfdyno.jobs.train.run import Run, run_session
from tfdyno.probe.base.near import no_such
from tfdyno.probe.machine.revision import revision
from tfdyno.store.run_folder import RUN_FILE, RunFolder, RunRecord, Status, unused

if TYPE_CHECKING:
    from tfdyno.core.recipe.retreat import Retreat

DEFAULT_FOLDER = Path("tfdyno-runs")
MOST_SEED = 2**31
_PLACE = ("output", "resume")
"""Settings that say where a run goes on, not how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What is trained and how."""

    workload: Workload
    recipe: Recipe | None = None
    """None: that of the folder, or the one that changes nothing."""
    settings: RunSettings = field(default_factory=RunSettings)
    given: frozenset[str] = frozenset()
    """Names of the settings that were asked for; a run that goes on keeps its others."""
    data: str = ""
    """``file.py:function`` of data that the workload does not bring."""
    spot: str = ""
    """Cloud whose notices of the end of a spot machine are listened to."""
    jax: JaxPlan | None = None
    """The plan on Keras' JAX backend; None: it runs on TensorFlow's."""
    gpus: int = 0
    """That each process has to have, where an engine has started it."""
    wait_free: bool = False
    """Whether it waits until nobody else is on the cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The other processes of a training that an engine has started."""

    process: ProcessRank
    """The rank of this process, which is the one that writes."""
    meet: Callable[[Run], object]
    """Called before the first step: waits for the others and tells them how it is trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What came out, and where it is."""

    outcome: TrainOutcome
    folder: Path
    recipe: Recipe
    workload: Workload
    environment: Environment
    telemetry: Telemetry
    resume_command: str
    """Empty where nothing is left to train."""


def train(
    request: TrainRequest,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
    workers: Workers | None = None,
) -> Trained:
    """Train to the end, or until somebody ends it.

    Ctrl-C, SIGTERM and a spot notice end it with a checkpoint. What fails carries a note that says
    where the run is kept and how to go on.

    Args:
        request: Workload, recipe and settings.
        progress: Called with a line at every stage, and with events as JSON while it trains.
        output: Called with every line that the user's code prints.
        workers: Others that train with this process, which is the chief then.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or the folder holds another run.
        ToolError: A child crashed, a card or the disk is full, a worker is missing.
    """
    check(request)
    interpreter(request.workload)  # there is one
    folder = RunFolder(Path(request.settings.output or default_folder(request)).absolute())
    record, recipe, notes = _resumed(request, folder) if request.settings.resume else _new(
        request, folder
    )  # fmt: skip
    folder.prepare()
    with folder.held():
        folder.write_recipe(recipe)
        folder.write(record)
        run = Run(
            workload=request.workload,
            recipe=recipe,
            settings=record.settings,
            data=record.data,
            spot=request.spot,
            folder=folder.path,
            process=workers.process if workers else None,
            jax=record.jax,
            gpus=request.gpus,
            wait_free=request.wait_free,
            retreats=record.retreats,
        )

        def keep(retreats: tuple[Retreat, ...]) -> None:
            nonlocal record
            record = replace(record, retreats=retreats)
            folder.write(record)

        try:
            if workers:
                workers.meet(run)
            session = run_session(run, progress=progress, output=output, keep=keep)
        except BaseException as error:
            stopped = not isinstance(error, Exception)
            ended = _ended(record, "stopped" if stopped else "failed", error=_words(error))
            with contextlib.suppress(OSError, TfdynoError):  # the error itself is to be told
                folder.write(ended)
            error.add_note(_kept(replace(request, data=record.data), folder.path, workers))
            raise
        outcome = replace(session.outcome, notes=(*notes, *session.outcome.notes))
        ended = _ended(
            record,
            "stopped" if outcome.stopped else "finished",
            outcome=to_builtins(outcome),
            environment=session.environment,
            telemetry=session.telemetry,
        )
        outcome = replace(outcome, notes=(*outcome.notes, *_written(folder, ended, outcome)))
    return Trained(
        outcome=outcome,
        folder=folder.path,
        recipe=recipe,
        workload=request.workload,
        environment=session.environment,
        telemetry=session.telemetry,
        resume_command=resume_command(replace(request, data=record.data), folder.path)
        if outcome.stopped and not workers
        else "",
    )


def check(request: TrainRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    if request.recipe:
        check_composition(request.recipe)
    if request.jax:
        check_recipe(request.recipe or Recipe())
        check_settings(request.settings)
        check_script(request.workload)
        if request.workload.kind == "task":
            what = f"{request.workload.reference} trains on TensorFlow alone"
            raise UsageError(what, remedy="leave out --backend jax")
    if request.workload.mode != "train" or request.workload.kind == "step_function":
        what = f"{request.workload.reference} cannot be trained"
        raise UsageError(what, why="a single step has no loop", remedy="name a model with its data")
    settings = request.settings
    if settings.resume and not settings.output:
        raise UsageError("--resume needs the folder of a run", remedy="name it with --output")
    _check_data(request)
    if request.spot:
        from tfdyno.probe.machine.spot import SpotWatch

        SpotWatch(request.spot, told=lambda _notice: None).check()


def _check_data(request: TrainRequest) -> None:
    """Refuse a training without data, or with what cannot be it."""
    workload, data = request.workload, request.data
    is_preset = workload.kind == "preset"
    forms = f"{', '.join(TEXT_FILES)} or file.py:function" if is_preset else "file.py:function"
    is_file = is_preset and is_text_file(data)
    if data and (workload.kind == "script" or (":" not in data and not is_file)):
        remedy = f"write --data with {forms}, for a model that brings no data"
        raise UsageError(f"--data {data} is not possible here", remedy=remedy)
    if is_file and not Path(data).is_file():
        raise no_such(Path(data))
    if workload.has_no_data and not (data or request.settings.resume):
        what = f"{workload.reference} brings no data, and train needs data"
        raise UsageError(what, remedy=f"name some with --data: {forms}")


def planned(request: TrainRequest) -> tuple[Recipe, RunSettings]:
    """Return the recipe and the settings that ``train`` would train with; nothing is written.

    Raises:
        UsageError: The folder holds another run, or none to go on with.
    """
    if not request.settings.resume:
        if request.settings.output:
            _refuse_taken(RunFolder(Path(request.settings.output).absolute()))
        return request.recipe or Recipe(), request.settings
    folder = RunFolder(Path(request.settings.output).absolute())
    record, recipe, _ = _resumed(request, folder)
    return recipe, replace(record.settings, output=request.settings.output)


def default_folder(request: TrainRequest) -> Path:
    """Name a new folder in ``tfdyno-runs`` after the workload and the time."""
    reference = request.workload.reference
    place, _, name = reference.partition(":")
    is_preset = request.workload.kind == "preset"
    title = Path(name).name if is_preset else name.partition(":")[0] or Path(place).stem
    plain = re.sub(r"[^\w.-]+", "-", title) or "run"
    return unused(DEFAULT_FOLDER / f"{plain}-{datetime.now(UTC):%Y%m%d-%H%M%S}")


def resume_command(request: TrainRequest, folder: Path) -> str:
    """Return what goes on with the run in ``folder``."""
    workload = request.workload
    words = ["tfdyno", "train", workload.reference, "--output", shown(folder), "--resume"]
    if request.data:
        words += ["--data", request.data]
    words += option_words(workload)
    if request.spot:
        words += ["--spot", request.spot]
    return shlex.join([*words, *script_words(workload)])


def shown(path: Path) -> str:
    """Return a path from where the user stands, if it lies below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _new(request: TrainRequest, folder: RunFolder) -> tuple[RunRecord, Recipe, tuple[str, ...]]:
    _refuse_taken(folder)
    recipe = request.recipe or Recipe()
    seed = secrets.randbelow(MOST_SEED) if recipe.seed is None else recipe.seed
    record = RunRecord(
        workload=request.workload,
        folder=str(Path.cwd()),
        data=request.data,
        jax=request.jax,
        source_sha256=digest_of(request.workload),
        settings=replace(
            request.settings,
            output=str(folder.path),
            resume=False,
            reshuffle=recipe.seed is None,
        ),
        seed=seed,
        started_at=now(),
        tfdyno=revision(),
    )
    return record, replace(recipe, seed=seed), ()


def _refuse_taken(folder: RunFolder) -> None:
    if folder.holds_run:
        raise UsageError(
            f"{shown(folder.path)} holds a run already",
            remedy="go on with it by --resume, or name another folder with --output",
        )
    if folder.path.exists() and not folder.path.is_dir():
        raise UsageError(f"cannot write to {shown(folder.path)}", why="it is a file")


def _resumed(request: TrainRequest, folder: RunFolder) -> tuple[RunRecord, Recipe, tuple[str, ...]]:
    """Return the run of the folder, if it is the one that is asked for."""
    record, recipe = folder.read()
    check_composition(recipe)
    differences = differences_from(
        record, recipe, request.workload, given=request.recipe, data=request.data
    )
    if differences:
        raise UsageError(
            f"{shown(folder.path)} holds another run",
            why="; ".join(differences),
            remedy="leave that out to go on with it, or start anew in another folder",
        )
    asked = {name: getattr(request.settings, name) for name in request.given - set(_PLACE)}
    settings = replace(record.settings, **asked, output=str(folder.path), resume=True)
    notes = []
    if record.jax != request.jax:
        if record.jax is None or request.jax is None:
            names = ["TensorFlow", "JAX"] if record.jax is None else ["JAX", "TensorFlow"]
            what = f"{shown(folder.path)} holds a run on {names[0]}, not on {names[1]}"
            remedy = "leave --backend out to go on with it, or name another folder with --output"
            raise UsageError(what, remedy=remedy)
        notes.append("It goes on with another mesh or layout than before.")
    if record.source_sha256 != digest_of(request.workload):
        notes.append(f"{request.workload.reference} has changed since the run was started.")
    left = folder.take_retreats()
    record = replace(
        record,
        status="running",
        retreats=max(record.retreats, left, key=len),
        settings=settings,
        jax=request.jax,
        sittings=record.sittings + 1,
        ended_at="",
        error="",
    )
    return record, recipe, tuple(notes)


def _written(folder: RunFolder, record: RunRecord, outcome: TrainOutcome) -> tuple[str, ...]:
    """Keep what came out; what was learned is told also where the disk is full now."""
    try:
        folder.write_history(outcome.history)
        folder.write(record)
    except (OSError, TfdynoError) as error:
        return (f"{folder.path / RUN_FILE} could not be written: {error}",)
    return ()


def _ended(record: RunRecord, status: Status, **found: Any) -> RunRecord:
    return replace(record, status=status, ended_at=now(), **found)


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, TfdynoError) else type(error).__name__


def _kept(request: TrainRequest, folder: Path, workers: Workers | None) -> str:
    """Return what is left of a run that failed, and how to go on."""
    markers = list((folder / "checkpoints").glob("step-*.json"))
    if not markers:
        return f"No checkpoint was written; the logs are in {shown(folder)}."
    newest = max(markers, key=lambda path: (path.stat().st_mtime, path.name))
    if workers:
        return f"Its checkpoint {newest.stem} is kept: started again, all go on from there."
    return f"Its checkpoint {newest.stem} is kept; go on with: {resume_command(request, folder)}"
