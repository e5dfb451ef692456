"""What Ray Train runs in each of its workers: ``tfdyno node`` as a child, watched from a thread.

The child is a process of its own because TensorFlow, once it has lost another worker, cannot be
used again in its process, and because nothing of TensorFlow is left when Ray kills a worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, ToolError, failure_of
from tfdyno.core.cluster.cluster import RANK, TOLD_BY, WORKERS
from tfdyno.engines.process.faults import Fault
from tfdyno.engines.process.local import ECHO_S, together
from tfdyno.engines.process.process import Command, Process
from tfdyno.engines.rendezvous.tf_config import free_ports, loopback_variables
from tfdyno.jobs.child.worker import PROGRESS
from tfdyno.jobs.launch._ray_board import Kind, Said
from tfdyno.jobs.launch._ray_failures import NodeFailed
from tfdyno.jobs.launch.local import WAIT, event_of, judged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value

FLUSH_S = 0.2
MEET_S = 300.0
"""The time for the other workers of a group, which Ray starts at once."""
OF_RAY = ("OMP_NUM_THREADS",)
"""Variables that Ray sets for its own workers; where the user has not, TensorFlow shall choose."""
POINTER = "tfdyno-run.json"
"""What Ray keeps as the checkpoint of an epoch."""


def work(config: dict[str, Any]) -> dict[str, Any]:
    """Train as one of Ray Train's workers, from its start to its end.

    Args:
        config: ``board``, the name of the actor, and ``worker`` of ``render.launch.ray.ray_plan``.

    Returns:
        What ended it before its end, as ``stopped``.

    Raises:
        NodeFailed: It failed.
    """
    import ray
    from ray.train import get_context

    context = get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    board = ray.get_actor(config["board"])
    talk = Talk(rank, lambda said: ray.get(board.say.remote(said)))
    command = command_of(config["worker"], rank, _addresses(board, context, config["worker"]))
    try:
        process, error = _trained(command, talk, config["worker"])
    except TfdynoError as failure:  # it could not be started
        raise NodeFailed(failure_of(failure), False) from None
    if error:
        is_echo = Fault(process=process, error=error).is_echo
        if is_echo:
            time.sleep(ECHO_S)  # whoever is at fault shall be heard first
        raise NodeFailed(failure_of(error), is_echo)
    ended: dict[str, Any] = event_of(process.said)
    return {"stopped": ended.get("stopped", ""), "workers": size}


def _trained(
    command: Command, talk: Talk, worker: dict[str, Any]
) -> tuple[Process, TfdynoError | None]:
    """Start the node, wait for its end, and judge it."""
    with (
        together(
            [command], chief=0, mark=PROGRESS, progress=talk.heard, output=talk.output
        ) as crew,
        talk.told_to(crew.chief),
    ):
        talk.say("started", json.dumps({"host": os.uname().nodename, "pid": os.getpid()}))
        _attend(crew.chief, talk, lambda metrics: _report(metrics, worker))
        return crew.chief, judged(crew.chief)


class Talk:
    """What a worker says, passed on some times a second, and the wish to stop that comes back."""

    def __init__(self, rank: int, send: Callable[[list[Said]], bool]) -> None:
        """Begin.

        Args:
            rank: Of the worker.
            send: Passes on; says whether the worker is asked to end.
        """
        self._rank, self._send = rank, send
        self._lock = threading.Lock()
        self._waiting: list[Said] = []
        self._ended = threading.Event()
        self.epochs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        """Metrics of epochs that were not reported to Ray yet."""

    def say(self, kind: Kind, text: str) -> None:
        """Say one thing, which is passed on a moment later."""
        with self._lock:
            self._waiting.append(Said(rank=self._rank, kind=kind, text=text))

    def output(self, line: str) -> None:
        """Take a line that is no progress."""
        self.say("output", line)

    def heard(self, line: str) -> None:
        """Take a line of progress; all workers tell the same, so only worker 0 is passed on."""
        event = event_of(line)
        if event.get("event") == "epoch":
            self.epochs.put(metrics_of(event))
        if self._rank == 0 and event.get("event") not in ("done", "failed"):
            self.say("progress", line)

    @contextlib.contextmanager
    def told_to(self, process: Process) -> Value:
        """Pass on until the block ends; a process that is not wanted any more is asked to end."""
        thread = threading.Thread(target=self._pass_on, args=(process,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _pass_on(self, process: Process) -> None:
        is_asked = False
        while True:
            is_last = self._ended.wait(FLUSH_S)
            with self._lock:
                said, self._waiting = self._waiting, []
            try:
                stops = self._send(said)
            except Exception:  # the driver is gone, and with it whoever wanted this training
                process.kill()
                return
            if stops and not is_asked:
                process.terminate()
            is_asked = is_asked or stops
            if is_last:
                return


def command_of(worker: dict[str, Any], rank: int, addresses: tuple[str, ...]) -> Command:
    """Return the process of one rank.

    Args:
        worker: ``words``, ``folder``, ``environment``, ``purpose``, and ``unset``, what the
            driver's own environment does not have.
        rank: Of the worker.
        addresses: Of all of them.
    """
    own = {name: value for name, value in os.environ.items() if name not in TOLD_BY}
    for name in worker["unset"]:
        own.pop(name, None)
    own |= {"PYTHONUNBUFFERED": "1", **worker["environment"]}
    own |= loopback_variables(own, [one.rpartition(":")[0] for one in addresses])
    if len(addresses) > 1:
        own |= {WORKERS: ",".join(addresses), RANK: str(rank)}
    words = list(worker["words"])
    place = words.index("--nodes") + 1
    words[place] = str(len(addresses))
    return Command(
        words=(sys.executable, "-m", "tfdyno", words[0], "--events", "--wait", WAIT, *words[1:]),
        environment=own,
        purpose=worker["purpose"],
        name=f"worker {rank}" if len(addresses) > 1 else "",
        cwd=worker["folder"],
    )


def metrics_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return what Ray keeps of the end of an epoch: numbers by name."""
    kept = {name: event[name] for name in ("epoch", "samples_per_s") if name in event}
    return {**kept, **{n: v for n, v in event["metrics"].items() if v is not None}}


def _addresses(board: Value, context: Value, worker: dict[str, Any]) -> tuple[str, ...]:
    """Return where all workers of this group listen, by rank."""
    import ray
    from ray.train.collective import broadcast_from_rank_zero

    rank, size = context.get_world_rank(), context.get_world_size()
    group = broadcast_from_rank_zero(secrets.token_hex(8))
    port = worker["port"] + context.get_local_rank() if worker["port"] else free_ports(1)[0]
    host = ray.util.get_node_ip_address()
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    until_s = time.monotonic() + MEET_S
    while not (found := ray.get(board.meet.remote(group, rank, address, size))):
        if time.monotonic() > until_s:
            why = f"not all {size} have told where they listen within {MEET_S:.0f} s"
            lost = ToolError("the workers did not meet", why=why)
            raise NodeFailed(failure_of(lost), True)
        time.sleep(FLUSH_S)
    return tuple(found)


def _attend(process: Process, talk: Talk, report: Callable[[dict[str, Any]], None]) -> None:
    """Wait for the end; each epoch is reported, which waits for the same of the others."""
    while process.runs or not talk.epochs.empty():
        with contextlib.suppress(queue.Empty):
            report(talk.epochs.get(timeout=FLUSH_S))


def _report(metrics: dict[str, Any], worker: dict[str, Any]) -> None:
    """Give the metrics of an epoch to Ray; worker 0 adds where the checkpoints are.

    They stay where they are: Ray gets a file that points to them, as it keeps metrics of
    checkpoints only.
    """
    from ray.train import Checkpoint, get_context, report

    if get_context().get_world_rank():
        report(metrics)
        return
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
        run = Path(worker["folder"], worker["output"])
        (Path(folder) / POINTER).write_text(json.dumps({"checkpoints": str(run / "checkpoints")}))
        report(metrics, checkpoint=Checkpoint.from_directory(folder))
