"""One session of a training: fresh child processes, watched from outside."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.choose.workload import Workload
from tfdyno.core.cluster.cluster import ProcessRank, host_of, tf_config_of
from tfdyno.core.measure.measurement import Environment, Telemetry
from tfdyno.core.messages.train import TRAIN, TRAIN_ON_JAX, Train, TrainOnJax
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import Retreat, told_of
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import (
    CHECKPOINTS,
    MARKERS,
    SPOT_NOTICE,
    RunSettings,
    TrainOutcome,
)
from tfdyno.engines.rendezvous.tf_config import (
    Task,
    chief_of,
    loopback_variables,
    multiworker,
    one_card_each,
    parameter_server,
)
from tfdyno.jobs.child.recipe_env import environment_of, recipe_environment
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.child.workers import run_children
from tfdyno.jobs.choose.trace import interpreter
from tfdyno.jobs.compiled.keeping import Compiling, with_programs
from tfdyno.jobs.holders.card_rates import card_peaks
from tfdyno.jobs.holders.found_cards import count_cards
from tfdyno.jobs.holders.guard import Asked, guarded, visible_to
from tfdyno.jobs.retreat.dumps import without_programs
from tfdyno.jobs.retreat.retreating import Trial, Work, retreating
from tfdyno.jobs.train.jax_run import jax_environment
from tfdyno.probe.cards import cards
from tfdyno.probe.telemetry.telemetry import Sampler
from tfdyno.store.run_events import RunEvents
from tfdyno.store.run_folder import LOGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfdyno.core.base.untyped import Value
    from tfdyno.probe.machine.spot import Notice

STOP_GRACE_S = 600.0
"""The time for the last checkpoint after a request to end; a second Ctrl-C does not wait for it."""
START_LIMIT_S = 600.0
"""The time for each of several processes to show that it runs."""
PORTION_S = 1.0
"""Between two points of telemetry: a training may take weeks."""
MOST_POINTS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is trained in this session."""

    workload: Workload
    recipe: Recipe
    settings: RunSettings
    folder: Path
    data: str = ""
    spot: str = ""
    process: ProcessRank | None = None
    """The rank of this process among others that an engine has started; None: nobody else has."""
    jax: JaxPlan | None = None
    """The plan on Keras' JAX backend; None: it runs on TensorFlow's."""
    gpus: int = 0
    """That this process has to have on JAX, which would train on its CPU without."""
    wait_free: bool = False
    """Whether it waits until nobody else is on the cards."""
    retreats: tuple[Retreat, ...] = ()
    """Steps back from compiles that failed inside XLA, of earlier sittings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What came out of it, and where it ran."""

    outcome: TrainOutcome
    environment: Environment
    telemetry: Telemetry


def run_session(
    run: Run,
    *,
    progress: Callable[[str], None],
    output: Callable[[str], None],
    keep: Callable[[tuple[Retreat, ...]], object] = lambda _all: None,
) -> Session:
    """Train until the end, or until somebody ends it; a step back where XLA fails to compile.

    Args:
        run: What, how and where to.
        progress: Called with the lines of progress of the child, or of the chief of several.
        output: Called with every other line that they print; all of it is in the folder's logs.
        keep: Called with all steps back before the training is begun again under them.

    Raises:
        UsageError: The workload, its data or the recipe is wrong.
        CompilerError: XLA fails to compile the step, and no step back is left or may be taken.
        ToolError: A child crashed, a card is full, a worker is missing.
    """
    shown = without_programs(output)
    work = Work(
        subject=run.workload.reference,
        recipe=run.recipe,
        had=run.retreats,
        has_graph=run.jax is None and run.recipe.strategy != "tpu",
        may=run.process is None,
        tell=output,
        keep=keep,
    )
    session, retreats = retreating(lambda trial: _sat(run, trial, progress, shown), work)
    outcome = session.outcome
    begun = "" if _is_first(outcome) and not run.settings.resume else outcome.resumed_from
    notes = (*outcome.notes, *filter(None, [told_of(retreats)]))
    outcome = replace(outcome, notes=notes, retreats=retreats, resumed_from=begun)
    return replace(session, outcome=outcome)


def _is_first(outcome: TrainOutcome) -> bool:
    """Return whether it went on from the checkpoint that stands before the first step."""
    return Path(outcome.resumed_from).stem.removeprefix("step-").strip("0") == ""


def _sat(
    run: Run, trial: Trial, progress: Callable[[str], None], output: Callable[[str], None]
) -> Session:
    """Make one try, under the steps back that were taken."""
    run = replace(run, recipe=trial.recipe)
    variables = recipe_environment(run.recipe)
    if run.jax:
        variables |= jax_environment(run.jax, run.recipe)
    variables = trial.variables(variables)
    compiling = Compiling(
        workload=run.workload,
        recipe=run.recipe,
        framework="jax" if run.jax else "tensorflow",
        python=interpreter(run.workload),
        variables=variables,
        doing=f"train {to_builtins(run.jax)}" if run.jax else "train",
        data=run.data,
    )
    tries = itertools.count(int(trial.again))

    def sit(programs: Mapping[str, str], heard: Callable[[str], None]) -> Session:
        again = _going_on(run) if next(tries) else run
        return _once(again, variables, programs, progress=heard, output=output)

    session, kept = with_programs(compiling, sit, progress)
    notes = (*session.outcome.notes, *kept.notes)
    return replace(session, outcome=replace(session.outcome, notes=notes))


def _going_on(run: Run) -> Run:
    """Return the run for a second try in this session: from what the first has kept."""
    has_begun = any((run.folder / CHECKPOINTS).glob(MARKERS))
    return replace(run, settings=replace(run.settings, resume=run.settings.resume or has_begun))


def _once(
    run: Run,
    variables: dict[str, str],
    programs: Mapping[str, str],
    *,
    progress: Callable[[str], None],
    output: Callable[[str], None],
) -> Session:
    """Train in one child, or in several at once.

    Args:
        run: What, how and where to.
        variables: To set for it.
        programs: Likewise, of kept programs: no part of what the run is.
        progress: As for ``run_session``.
        output: Likewise.
    """
    visible = visible_to(variables)
    doing = f"training {run.workload.reference}"
    training = Train(
        workload=run.workload,
        recipe=run.recipe,
        settings=run.settings,
        data=run.data,
        peaks={} if run.jax else card_peaks(run.recipe, visible),
    )
    common: dict[str, Any] = {
        "timeout_s": math.inf,
        "python": interpreter(run.workload),
        "doing": doing,
        "hide_gpu": False,
        "stop_grace_s": STOP_GRACE_S,
    }
    notices: list[Notice] = []
    pids: list[int] = []
    asked = Asked(visible=visible, recipe=run.recipe, workload=run.workload,
                  on_jax=run.jax is not None, waits=run.wait_free)  # fmt: skip
    with (
        guarded(asked, tell=output, progress=progress) as room,
        Sampler(visible=visible, interval_s=PORTION_S) as sampler,
        _events_kept(run, sampler) as keep,
        _spot_watched(run, pids, notices),
    ):

        def heard(line: str) -> None:
            progress(line)
            keep(line)

        common["progress"] = heard
        common["env"] = {
            **variables,
            **room.variables,
            **programs,
            **_cluster_variables(run.process),
        }

        def started(pid: int) -> None:
            pids.append(pid)
            sampler.watch(pid)  # of several the first, which is the chief

        own = Task(kind="worker", index=run.process.rank if run.process else 0)
        log = run.folder / LOGS / own.log_name
        if run.jax:
            on_jax = TrainOnJax(
                training=training,
                plan=run.jax,
                addresses=run.process.addresses if run.process else (),
                rank=own.index,
                gpus=run.gpus,
                seen_gpus=count_cards(visible=visible),
            )
            outcome = run_child(
                TRAIN_ON_JAX, on_jax, output=output, log=log, started=started, **common
            )
        elif not run.process and (tasks := _tasks(run.recipe, visible)):
            outcome = run_children(
                TRAIN,
                [training] * len(tasks),
                tasks,
                logs=run.folder / LOGS,
                cards=_cards(tasks, visible),
                start_timeout_s=START_LIMIT_S,
                output=lambda line: _of_chief(line, chief_of(tasks), output),
                started=started,
                **common,
            )
        else:
            outcome = run_child(TRAIN, training, output=output, log=log, started=started, **common)
    outcome = replace(outcome, notes=(*room.notes, *outcome.notes))
    if notices and outcome.stopped:
        said = (*outcome.notes, notices[0].sentence)
        outcome = replace(outcome, stopped=SPOT_NOTICE, notes=said)
    return Session(
        outcome=outcome,
        environment=environment_of(outcome.software, variables),
        telemetry=thinned(sampler.telemetry()),
    )


def thinned(telemetry: Telemetry, most: int = MOST_POINTS) -> Telemetry:
    """Return every so many points, evenly: few enough to be kept and read."""
    every = math.ceil(len(telemetry.at_s) / most)
    if every <= 1:
        return telemetry
    raw = _every(to_builtins(telemetry), every, len(telemetry.at_s))
    raw["interval_s"] = telemetry.interval_s * every
    return from_builtins(raw, Telemetry, where="telemetry")


def _every(raw: Value, every: int, count: int) -> Value:
    if isinstance(raw, dict):
        return {name: _every(value, every, count) for name, value in raw.items()}
    if isinstance(raw, list | tuple) and len(raw) == count:
        return raw[::every]
    many = isinstance(raw, list | tuple)
    return [_every(one, every, count) for one in raw] if many else raw


def _cluster_variables(process: ProcessRank | None) -> dict[str, str]:
    """Return what tells TensorFlow of the others, and keeps its messages away from a proxy."""
    if process is None:
        return {}
    hosts = [host_of(address) for address in process.addresses]
    return {"TF_CONFIG": tf_config_of(process)} | loopback_variables(os.environ, hosts)


def _tasks(recipe: Recipe, visible: str | None) -> tuple[Task, ...]:
    """Return who is who where a strategy needs several processes; else nobody."""
    if recipe.strategy not in ("multiworker", "ps"):
        return ()
    count = recipe.replica_count(len(visible_cards(visible)))
    return multiworker(count) if recipe.strategy == "multiworker" else parameter_server(count)


def _cards(tasks: tuple[Task, ...], visible: str | None) -> dict[Task, str] | None:
    """Return one card for each worker, where there are cards."""
    numbers = visible_cards(visible)
    return one_card_each(tasks, numbers) if numbers else None


def visible_cards(visible: str | None) -> list[str]:
    """Return numbers of the cards of this machine that CUDA_VISIBLE_DEVICES lets a process see."""
    with cards.opened() as nvml:
        return [str(index) for index, _ in cards.handles(nvml, visible)] if nvml else []


def _of_chief(line: str, chief: Task, output: Callable[[str], None]) -> None:
    """Pass on what the chief prints; all of them run the same code and have their own logs."""
    mark = f"[{chief.name}] "
    if line.startswith(mark):
        output(line[len(mark) :])


@contextlib.contextmanager
def _events_kept(run: Run, sampler: Sampler) -> Iterator[Callable[[str], None]]:
    """Keep the events of the training in its folder; of several nodes the first does."""
    if run.process and run.process.rank:
        yield lambda _line: None
        return
    with RunEvents(run.folder, sampler.load) as events:
        yield events.take


@contextlib.contextmanager
def _spot_watched(run: Run, pids: list[int], notices: list[Notice]) -> Iterator[None]:
    """Ask the processes to end when the cloud takes the machine away."""
    if not run.spot:
        yield
        return
    from tfdyno.probe.machine.spot import SpotWatch

    def told(notice: Notice) -> None:
        notices.append(notice)
        # A chief with parameter servers speaks for all; the others end it together.
        for pid in pids[:1] if run.recipe.strategy == "ps" else pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    with SpotWatch(run.spot, told=told):
        yield
