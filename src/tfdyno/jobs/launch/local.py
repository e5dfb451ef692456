"""Train on several processes of this machine, each of which stands for a node."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.base.errors import Failure, RetreatAsked, TfdynoError, ToolError, UsageError
from tfdyno.core.cluster.cluster import TOLD_BY
from tfdyno.core.cluster.launch_plan import UNFINISHED, LaunchPlan, node_words
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import TrainOutcome
from tfdyno.engines.process.local import Crew, Limits, attend, together
from tfdyno.engines.process.process import Command, Process
from tfdyno.engines.rendezvous.tf_config import free_ports, loopback_variables
from tfdyno.jobs.child.worker import PROGRESS, crash_of, silent
from tfdyno.jobs.holders.guard import visible_to
from tfdyno.jobs.holders.room import wait_for_room
from tfdyno.jobs.train.run import STOP_GRACE_S
from tfdyno.render.launch.local import node_variables, with_cards
from tfdyno.store.run_folder import RunFolder, RunRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WAIT = "5min"
"""The time for all processes to be there: they start at once."""
END_S = 5.0
"""The time for the processes of a failed training to end; what they started ends with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """What came of it."""

    folder: Path
    outcome: TrainOutcome
    record: RunRecord
    recipe: Recipe
    failures: tuple[str, ...] = ()
    """The failures after which it was started again, in words."""


def launch_local(
    plan: LaunchPlan,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
    started: Callable[[int, int], object] = lambda _rank, _pid: None,
    wait_free: bool = False,
) -> Launched:
    """Run the plan to its end, or until somebody ends it.

    The first process that fails ends all. As often as the plan has restarts they begin again from
    the newest checkpoint, unless what was asked is wrong or the time is over. After the time limit,
    which is one for all tries, it ends as with Ctrl-C.

    Args:
        plan: What is to run.
        progress: Called with the progress of worker 0.
        output: Called with every other line of all: ``[worker 1] …``.
        started: Called with rank and process identifier of each.
        wait_free: Whether it waits first until nobody else is on the cards; each process tells by
            itself who is on its own.

    Raises:
        UsageError: The workload, its data or the recipe is wrong.
        ToolError: A process failed more often than the plan has restarts.
    """
    if wait_free and plan.gpus_per_node:
        wait_for_room(visible_to(dict(plan.environment)), progress=progress)
    plan = with_cards(plan, os.environ)
    until_s = time.monotonic() + (plan.time_limit_s or math.inf)
    folder = Path(plan.folder or ".", plan.output).absolute()
    failures: list[str] = []
    while True:
        try:
            _run(plan, until_s, progress, output, started)
            break
        except RetreatAsked as error:  # each has another step back: this ends
            output(str(error))
        except ToolError as error:
            is_over = was_asked(error) or time.monotonic() >= until_s
            if len(failures) >= plan.restarts or is_over:
                note(error, folder, failures)
                raise
            failures.append(str(error))
            left = plan.restarts - len(failures)
            output(f"{error} All begin again from the newest checkpoint, {left} more times.")
    return launched(folder, failures)


def launched(folder: Path, failures: list[str]) -> Launched:
    """Return what the run in a folder has come to.

    Args:
        folder: Of the run.
        failures: After which it was started again, in words.
    """
    record, recipe = RunFolder(folder).read()
    outcome = from_builtins(_finite(record.outcome), TrainOutcome, where=str(folder))
    return Launched(
        folder=folder, outcome=outcome, record=record, recipe=recipe, failures=tuple(failures)
    )


def _run(
    plan: LaunchPlan,
    until_s: float,
    progress: Callable[[str], None],
    output: Callable[[str], None],
    started: Callable[[int, int], object],
) -> None:
    """Start all once and wait for their end."""
    ports = free_ports(plan.nodes)
    if plan.port:
        ports = tuple(range(plan.port, plan.port + plan.nodes))
    purpose = f"training {plan.reference}"
    own = {name: value for name, value in os.environ.items() if name not in TOLD_BY}
    base = {**own, "PYTHONUNBUFFERED": "1"}
    base |= loopback_variables(base)
    words = node_words(plan)
    place = words.index("node") + 1
    words = (*words[:place], "--events", "--wait", WAIT, *words[place:])
    commands = [
        Command(
            words=words,
            environment=base | node_variables(plan, rank, ports),
            purpose=purpose,
            name=f"worker {rank}" if plan.nodes > 1 else "",
            cwd=plan.folder,
        )
        for rank in range(plan.nodes)
    ]
    limits = Limits(
        run_s=math.inf, work_s=max(0.0, until_s - time.monotonic()), stop_s=STOP_GRACE_S,
        end_s=END_S, peers_s=STOP_GRACE_S,
    )  # fmt: skip
    with together(commands, chief=0, mark=PROGRESS, progress=progress, output=output) as crew:
        for rank, process in enumerate(crew.processes):
            started(rank, process.popen.pid)
        attend(crew, judged, limits)
        _check_peers(crew)


def was_asked(error: ToolError) -> bool:
    """Return whether it is what came of Ctrl-C: ``attend`` raises that from what stopped it."""
    return not isinstance(error.__cause__, Exception | None)


def judged(process: Process) -> TfdynoError | None:
    """Return what the end of a node means: None where it did its part."""
    said = event_of(process.said)
    # The code alone says little: without tfdyno in it an interpreter ends with one, too.
    if process.exit_code in (0, UNFINISHED) and said.get("event") == "done":
        return None
    if said.get("event") != "failed":
        return crash_of(process)
    told: dict[str, Any] = dict(said["error"])
    notes = told.pop("notes", ())
    failure, name = Failure(**told), process.command.name
    if name and not failure.what.startswith(name):
        failure = replace(failure, what=f"{name}: {failure.what}")
    error = failure.error
    if isinstance(error, UsageError):  # else ``note`` says what is kept
        for one in notes:
            error.add_note(one)
    return error


def _check_peers(crew: Crew) -> None:
    """Check after the chief's good end that the others have ended well, too."""
    for process in crew.processes:
        if not process.runs and (error := judged(process)):
            raise error


def event_of(line: str) -> dict[str, Any]:
    """Return the event that a line of progress tells; empty where it is a sentence."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def note(error: TfdynoError, folder: Path, failures: list[str]) -> None:
    """Add to an error how often it was tried, and whether the same command goes on."""
    if failures:
        error.add_note(f"It was started {len(failures) + 1} times.")
    if any((folder / "checkpoints").glob("step-*.json")):
        error.add_note("The same command goes on from its newest checkpoint.")


def _finite(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Read null, which stands for a loss that is no number, as a number again."""
    history = {
        name: [math.nan if value is None else value for value in values]
        for name, values in outcome.get("history", {}).items()
    }
    return {**outcome, "history": history}
