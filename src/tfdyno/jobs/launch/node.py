"""One process of a training on several nodes, as an engine starts it on each of them."""

from __future__ import annotations

import os
import platform
import secrets
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.base.settings import positive
from tfdyno.core.base.version import VERSION
from tfdyno.core.cluster.cluster import ProcessRank, cluster_of
from tfdyno.core.cluster.launch_plan import check_strategy
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import Retreat
from tfdyno.core.train.jax_plan import JaxPlan, check_recipe
from tfdyno.core.train.training import NAN_LOSS, NAN_WEIGHTS, RunSettings, TrainOutcome
from tfdyno.engines.process import faults
from tfdyno.engines.rendezvous import rendezvous
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.train.resume import digest_of
from tfdyno.jobs.train.run import Run, run_session, visible_cards
from tfdyno.jobs.train.train import Trained, TrainRequest, Workers, check, train
from tfdyno.probe.python.versions import version
from tfdyno.store.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.choose.workload import Workload

SHARED = ".shared"
"""The file in the folder of a run that worker 0 wrote, for the others to see that they share it."""
SHARED_S = 60.0
"""A network file system may show a new file so much later; the variable sets another limit."""
SHARED_VARIABLE = "TFDYNO_SHARED_S"
TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequest:
    """What this process takes part in."""

    request: TrainRequest
    """What is trained; a run that is in the folder already goes on."""
    nodes: int = 0
    """0: as many as the engine tells of."""
    gpus_per_node: int | None = None
    """That the node has to have; None: whatever there is."""
    rank: int | None = None
    port: int = 0
    wait_s: float = rendezvous.WAIT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEnd:
    """What came of it."""

    rank: int
    outcome: TrainOutcome
    trained: Trained | None
    """What was trained, told by worker 0, which writes; None on the others."""

    @property
    def is_unfinished(self) -> bool:
        """Whether it was ended before its end, and goes on when all are started again.

        Only worker 0 says so: engines end the others with the first that does, and it may still be
        writing the last checkpoint when they have done their part.
        """
        return self.rank == 0 and self.outcome.stopped not in ("", NAN_LOSS, NAN_WEIGHTS)


def node(
    asked: NodeRequest,
    *,
    environment: Mapping[str, str],
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> NodeEnd:
    """Find out who this process is, meet the others, and train with them.

    Args:
        asked: What is trained.
        environment: The variables of the process, in which the engine tells of the others.
        progress: Called with every stage and event of training.
        output: Called with every line that the user's code prints.

    Raises:
        UsageError: The plan, the workload or the recipe is wrong, or the nodes do not fit together.
        ToolError: Another process is missing, a port is taken, or training failed.
    """
    process = cluster_of(environment, nodes=asked.nodes, rank=asked.rank, port=asked.port)
    request = _set_up(asked.request, process, asked.gpus_per_node)
    check(request)
    _check_cards(asked.gpus_per_node or 0, environment.get("CUDA_VISIBLE_DEVICES"))
    if process is None:
        return _ended(0, train(request, progress=progress, output=output))
    try:
        return _with_others(asked, request, process, environment, progress, output)
    except UsageError as error:
        if faults.tells_of_a_loss(str(error)):  # nobody's use is wrong, and all may begin again
            raise _lost(process, error) from None
        raise


def _lost(process: ProcessRank, error: UsageError) -> ToolError:
    """Return the sentence of one whose training failed as another process was gone."""
    own = f"worker {process.rank}"
    other = f"worker {1 - process.rank}" if process.size == 2 else "another worker"
    named = faults.accused_in(str(error))
    what = f"{own} lost {named if named and named != own else other} while it trained"
    remedy = "look at what that one said last; when all are started again they go on from the "
    return ToolError(what, why=error.why, remedy=f"{remedy}newest checkpoint")


def _with_others(
    asked: NodeRequest,
    request: TrainRequest,
    process: ProcessRank,
    environment: Mapping[str, str],
    progress: Callable[[str], None],
    output: Callable[[str], None],
) -> NodeEnd:
    facts = facts_of(request.workload, with_jax=request.jax is not None)
    progress(f"worker {process.rank} of {process.size}, as {process.told_by} says")
    if process.rank == 0:
        rendezvous.check_port(process)

        def meet(run: Run) -> None:
            message = _message(run)
            rendezvous.serve_rendezvous(process, facts, message, tell=progress, wait_s=asked.wait_s)

        workers = Workers(process=process, meet=meet)
        return _ended(0, train(request, progress=progress, output=output, workers=workers))
    folder = Path(request.settings.output).absolute()
    message = rendezvous.join_rendezvous(
        process,
        facts,
        lambda told: _check_shared(folder, told, environment),
        tell=progress,
        wait_s=asked.wait_s,
    )
    run = Run(
        workload=request.workload,
        recipe=from_builtins(message["recipe"], Recipe, where="what worker 0 says"),
        settings=replace(
            from_builtins(message["settings"], RunSettings, where="what worker 0 says"),
            output=str(folder),
        ),
        folder=folder,
        data=str(message["data"]),
        spot=request.spot,
        process=process,
        jax=from_builtins(message["jax"], JaxPlan, where="what worker 0 says")
        if message.get("jax")
        else None,
        gpus=request.gpus,
        retreats=from_builtins(
            message["retreats"], tuple[Retreat, ...], where="what worker 0 says"
        ),
    )
    keep = RunFolder(folder).leave_retreats
    session = run_session(run, progress=progress, output=output, keep=keep)
    return NodeEnd(rank=process.rank, outcome=session.outcome, trained=None)


def facts_of(workload: Workload, *, with_jax: bool = False) -> dict[str, str]:
    """Return what has to be the same on all nodes: versions, and the user's own file.

    Args:
        workload: What is trained.
        with_jax: Whether it trains on JAX.
    """
    python = platform.python_version_tuple()
    facts = {"tfdyno": VERSION, "python": ".".join(python[:2])}
    if not workload.python:  # another interpreter has packages of its own
        packages = {"tensorflow": TENSORFLOW, "keras": ("keras",)}
        packages |= {name: (name,) for name in ("jax", "jaxlib") if with_jax}
        facts |= {name: version(*several) or "none" for name, several in packages.items()}
    if digest := digest_of(workload):
        facts[Path(workload.reference.partition(":")[0]).name] = digest[:12]
    return facts


def _set_up(request: TrainRequest, process: ProcessRank | None, gpus: int | None) -> TrainRequest:
    """Return the question with the strategy that so many processes and cards need."""
    if not request.settings.output:
        raise UsageError("a node needs the folder of the run", remedy="name it with --output")
    recipe = request.recipe or Recipe()
    strategy = recipe.strategy
    if request.jax:
        check_recipe(recipe)  # Keras' distribution stands for a strategy
    elif process:
        check_strategy(strategy, process.size)
        strategy = "multiworker"
    elif not strategy and (gpus or 0) > 1:
        strategy = "mirrored"
    holds_run = RunFolder(Path(request.settings.output).absolute()).holds_run
    return replace(
        request,
        recipe=replace(recipe, strategy=strategy),
        gpus=gpus or 0,
        settings=replace(request.settings, resume=holds_run),
    )


def _check_cards(wanted: int, visible: str | None) -> None:
    """Refuse a node without the cards of the plan: TensorFlow would train on its CPU."""
    found = len(visible_cards(visible)) if wanted else 0
    if found < wanted:
        raise UsageError(
            f"{os.uname().nodename} has {found} GPU{'s' * (found != 1)}, and the plan {wanted}",
            why="a process sees no more" if found else "there is none that a process sees",
            remedy="ask the engine for as many, or run tfdyno doctor there",
        )


def _message(run: Run) -> dict[str, Any]:
    """Return what the others need to know; the file lets them see that they share the folder."""
    token = secrets.token_hex(8)
    with OSErrorsAs(ToolError, f"cannot write to {run.folder}"):
        (run.folder / SHARED).write_text(token)
    return {
        "recipe": to_builtins(run.recipe),
        "settings": to_builtins(run.settings),
        "data": run.data,
        "retreats": to_builtins(run.retreats),
        "jax": to_builtins(run.jax) if run.jax else None,
        "token": token,
    }


def _check_shared(folder: Path, message: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Refuse a folder that is not worker 0's: checkpoints and agreements lie in it."""
    limit_s = positive(environment.get(SHARED_VARIABLE) or SHARED_S, SHARED_VARIABLE)
    until_s = time.monotonic() + limit_s
    there = ""
    while there != message["token"]:
        if time.monotonic() > until_s:
            raise UsageError(
                f"{folder} is not the same folder as on worker 0",
                why=f"{os.uname().nodename} does not see what worker 0 has written there",
                remedy="name a folder with --output that all nodes share",
            )
        try:
            there = (folder / SHARED).read_text()
        except OSError:
            there = ""
        if there != message["token"]:
            time.sleep(0.1)


def _ended(rank: int, trained: Trained) -> NodeEnd:
    return NodeEnd(rank=rank, outcome=trained.outcome, trained=trained)
