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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tfdyno.core.base.errors import Failure, ToolError
from tfdyno.core.measure.fix_proof import Agreement
from tfdyno.core.measure.measurement import Environment, Measured
from tfdyno.core.messages.tune import LOST, NodeAnswer, NodeWork, RayBegun, RunDone, RunWanted
from tfdyno.core.messages.wire import decode, encode
from tfdyno.engines.process.local import together
from tfdyno.engines.process.process import Command
from tfdyno.jobs.child.worker import PROGRESS, silent
from tfdyno.jobs.tune.request import Node, NodeLost, TuneRequest
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.messages.bench import MeasureHere
    from tfdyno.core.messages.tune import LookHere, Pair, RayNode
    from tfdyno.engines.process.process import Process

DRIVER = "tfdyno.jobs.tune._ray_driver"
START_S = 300.0
"""The time for Ray to be there, or to say why not."""
END_S = 30.0
"""The time for the driver, and the Ray that it has started, to end."""
LOOK_S = 0.5
Found = TypeVar("Found", Measured, Environment, Agreement)
Event = TypeVar("Event", RayBegun, NodeAnswer)


@contextlib.contextmanager
def ray_nodes(
    request: TuneRequest, *, address: str = "", progress: Callable[[str], None] = silent
) -> Iterator[tuple[Node, ...]]:
    """Give nodes that measure, alike in CPUs and cards; gone when the block ends.

    Nothing is started before the block is entered.

    Args:
        request: What is tuned; its files are at the same paths on all nodes.
        address: Of a running cluster; empty: that of ``RAY_ADDRESS``, else a Ray of its own here.
        progress: Called with a line at every stage.

    Raises:
        UsageError: Ray is not installed.
        ToolError: The cluster cannot be reached.
    """
    progress(say("starting Ray"))
    talk = _Talk(request)
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
            if (one.cpus, one.gpus, one.kinds) == (first.cpus, first.gpus, first.kinds)
        ]  # fmt: skip
        if len(alike) < len(found):
            names = ", ".join(one.name for one in found if one not in alike)
            progress(say("left out, since they are other machines: {names}", names=names))
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

    def __init__(self, request: TuneRequest) -> None:
        self._request = request
        self._runs, self._trials = itertools.count(), itertools.count()
        self._first: queue.SimpleQueue[RayBegun] = queue.SimpleQueue()
        self._answers: dict[int, queue.SimpleQueue[NodeAnswer]] = {}
        self._stopped = threading.Event()

    def heard(self, line: str) -> None:
        """Take a line of the driver."""
        event = json.loads(line)
        if "run" in event:
            done = decode(event, RunDone)
            self._answers[done.run].put(done.answer)
        else:
            self._first.put(decode(event, RayBegun))

    def nodes(self, driver: Process, address: str) -> list[RayNode]:
        """Return what Ray has; raises ``UsageError``, ``ToolError``."""
        event = self._answer(self._first, driver, START_S, address)
        if event.failed:
            raise event.failed.error
        found = [one for one in event.nodes if one.cpus]
        if not found:
            raise ToolError("the Ray cluster has no node with a CPU")
        return found

    def node(self, driver: Process, told: RayNode) -> Node:
        """Return a node that measures."""
        trial: list[int] = []

        def ask(work: LookHere | MeasureHere | Pair, kind: type[Found]) -> Found:
            """Return what the node answers to work of its trial, or of a new one."""
            number = next(self._runs)
            if not trial:
                trial.append(next(self._trials))
            answers = self._answers[number] = queue.SimpleQueue()
            asked = NodeWork(work=work, folder=str(Path.cwd()), on_cpu=not told.gpus)
            wanted = RunWanted(run=number, trial=trial[0], node=told.id, work=asked)
            driver.send(encode(wanted))
            found = self._answer(answers, driver).found
            del self._answers[number]
            if isinstance(found, Failure):
                if found.kind == LOST:
                    raise NodeLost(found.what, why=found.why, remedy=found.remedy)
                raise found.error
            assert isinstance(found, kind)
            return found

        def run(work: MeasureHere, progress: Callable[[str], None]) -> Measured:
            progress(say("on node {node}", node=told.name))
            return ask(replace(work, limit_bytes=self._request.memory_limit_bytes), Measured)

        def look(work: LookHere, progress: Callable[[str], None]) -> Environment:
            progress(say("on node {node}", node=told.name))
            try:
                return ask(work, Environment)
            finally:
                ended()

        def compare(pair: Pair, progress: Callable[[str], None]) -> Agreement:
            progress(say("comparing losses on node {node}", node=told.name))
            return ask(pair, Agreement)

        def ended() -> None:
            if trial:
                driver.send(encode(RunWanted(trial=trial.pop())))

        return Node(run=run, look=look, compare=compare, name=told.name, ended=ended,
                    stop=self._stopped.set)  # fmt: skip

    def _answer(
        self,
        answers: queue.SimpleQueue[Event],
        driver: Process,
        patience_s: float = float("inf"),
        address: str = "",
    ) -> Event:
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
