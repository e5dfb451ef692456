"""The nodes of a Ray cluster as places that measure trials, or this machine with a Ray of its own.

Ray Tune runs the trials; the study stays here, with the sampler: each node gets the next trial
when it is free, and after each of its runs it is judged here whether it goes on, so that a hopeless
trial ends as early as it does on one machine.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.base.errors import ToolError, UsageError, error_of_kind
from tfdyno.core.measure.fix_proof import Agreement
from tfdyno.core.measure.measurement import Environment
from tfdyno.engines.process.local import together
from tfdyno.engines.process.process import Command
from tfdyno.jobs.bench.run import Measured
from tfdyno.jobs.child.worker import PROGRESS, silent
from tfdyno.jobs.tune.request import Node, NodeLost, TuneRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.measurement import Protocol
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.recipe.retreat import Retreat
    from tfdyno.engines.process.process import Process
    from tfdyno.jobs.tune._losses import Pair

DRIVER = "tfdyno.jobs.tune._ray_driver"
START_S = 300.0
"""For Ray to be there, or to say why not."""
END_S = 30.0
"""For the driver, and the Ray that it has started, to end."""
LOOK_S = 0.5


@contextlib.contextmanager
def ray_nodes(
    question: TuneRequest, *, address: str = "", progress: Callable[[str], None] = silent
) -> Iterator[tuple[Node, ...]]:
    """Nodes that measure, alike in CPUs and cards; gone with all they run when the block ends.

    Nothing is started before the block is entered.

    Args:
        question: What is tuned; its files are at the same paths on all nodes.
        address: Of a running cluster; empty: that of ``RAY_ADDRESS``, else a Ray of its own here.
        progress: Called with a line at every stage.

    Raises:
        UsageError: Ray is not installed.
        ToolError: The cluster cannot be reached.
    """
    progress("starting Ray")
    talk = _Talk(question)
    command = Command(
        words=(sys.executable, "-m", DRIVER),
        environment={**os.environ, "PYTHONUNBUFFERED": "1"},
        purpose="giving trials to Ray",
    )
    with (
        together([command], chief=0, mark=PROGRESS, progress=talk.heard, output=silent) as crew,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(_leave, crew.chief)
        crew.chief.send(json.dumps({"address": address}))
        found = talk.nodes(crew.chief, address or os.environ.get("RAY_ADDRESS", ""))
        first = found[0]
        alike = [
            one for one in found
            if (one["cpus"], one["gpus"], one["kinds"])
            == (first["cpus"], first["gpus"], first["kinds"])
        ]  # fmt: skip
        if len(alike) < len(found):
            names = ", ".join(one["name"] for one in found if one not in alike)
            progress(f"left out, since they are other machines: {names}")
        yield tuple(talk.node(crew.chief, one) for one in alike)


def _leave(driver: Process) -> None:
    """Let the driver end Ray, and wait so long for it; what is left is killed by the caller."""
    with contextlib.suppress(OSError):
        if driver.popen.stdin:
            driver.popen.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        driver.popen.wait(END_S)


class _Talk:
    """What is asked of the driver, and which answer belongs to what."""

    def __init__(self, question: TuneRequest) -> None:
        self._question = question
        self._runs, self._trials = itertools.count(), itertools.count()
        self._first: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._stopped = threading.Event()

    def heard(self, line: str) -> None:
        """A line of the driver."""
        event = json.loads(line)
        if "run" in event:
            self._answers[event["run"]].put(event)
        else:
            self._first.put(event)

    def nodes(self, driver: Process, address: str) -> list[dict[str, Any]]:
        """What Ray has; raises ``UsageError``, ``ToolError``."""
        event = self._answer(self._first, driver, START_S, address)
        if said := event.get("failed"):
            kind = UsageError if said["kind"] == "usage" else ToolError
            raise kind(said["what"], why=said["why"], remedy=said["remedy"])
        found = [one for one in event["nodes"] if one["cpus"]]
        if not found:
            raise ToolError("the Ray cluster has no node with a CPU")
        return found

    def node(self, driver: Process, told: dict[str, Any]) -> Node:
        """A node that measures."""
        trial: list[int] = []

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            """What the node answers to a request of its trial, or of a new one."""
            number = next(self._runs)
            if not trial:
                trial.append(next(self._trials))
            answers = self._answers[number] = queue.SimpleQueue()
            request |= {"folder": str(Path.cwd()), "on_cpu": not told["gpus"]}
            asked = {"run": number, "trial": trial[0], "node": told["id"], "request": request}
            driver.send(json.dumps(asked))
            answer = self._answer(answers, driver)
            del self._answers[number]
            if said := answer.get("error"):
                if said["kind"] == "lost":
                    raise NodeLost(said["what"], why=said["why"], remedy=said["remedy"])
                raise error_of_kind(said["kind"], said["what"], said["why"], said["remedy"])
            return answer

        def run(
            workload: Workload,
            recipe: Recipe,
            protocol: Protocol,
            /,
            *,
            order: int,
            doing: str,
            progress: Callable[[str], None],
            had: tuple[Retreat, ...] = (),
        ) -> Measured:
            progress(f"on node {told['name']}")
            request = {
                "workload": to_builtins(workload), "recipe": to_builtins(recipe),
                "protocol": to_builtins(protocol), "order": order, "doing": doing,
                "limit_bytes": self._question.memory_limit_bytes, "had": to_builtins(had),
            }  # fmt: skip
            answer = ask(request)
            return from_builtins(answer["measured"], Measured, where="the result of a run")

        def look(
            workload: Workload, recipe: Recipe, /, *, progress: Callable[[str], None]
        ) -> Environment:
            progress(f"on node {told['name']}")
            try:
                answer = ask({"workload": to_builtins(workload), "recipe": to_builtins(recipe)})
            finally:
                ended()
            return from_builtins(answer["place"], Environment, where="the look at a node")

        def compare(pair: Pair, /, *, progress: Callable[[str], None]) -> Agreement:
            progress(f"comparing losses on node {told['name']}")
            answer = ask({"pair": to_builtins(pair)})
            return from_builtins(answer["agreement"], Agreement, where="the losses")

        def ended() -> None:
            if trial:
                driver.send(json.dumps({"ended": trial.pop()}))

        return Node(run=run, look=look, compare=compare, name=told["name"], ended=ended,
                    stop=self._stopped.set)  # fmt: skip

    def _answer(
        self,
        answers: queue.SimpleQueue[dict[str, Any]],
        driver: Process,
        patience_s: float = float("inf"),
        address: str = "",
    ) -> dict[str, Any]:
        waited_s = 0.0
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Empty):
                return answers.get(timeout=LOOK_S)
            waited_s += LOOK_S
            if not driver.runs and answers.empty():
                raise NodeLost("Ray has ended", why=driver.last_words())
            if waited_s > patience_s:
                who = f"the Ray cluster at {address}" if address else "Ray"
                raise NodeLost(f"{who} does not answer",
                               why=f"it said nothing for {patience_s:.0f} s",
                               remedy="check that it runs, and the address")  # fmt: skip
        raise NodeLost("the run was ended")
