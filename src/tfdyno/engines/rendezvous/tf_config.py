"""Who is who in a cluster of TensorFlow processes on this machine: tasks, ports, ``TF_CONFIG``."""

from __future__ import annotations

import contextlib
import json
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.cluster.cluster import LOOPBACK, NO_CARD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["chief", "worker", "ps", "evaluator"]

NAMES = {"ps": "parameter server"}
"""What people call a kind; the others are called as TensorFlow writes them."""
PROXY_KEYS = ("no_proxy", "NO_PROXY")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Task:
    """One process of a cluster."""

    kind: Kind
    index: int = 0

    @property
    def name(self) -> str:
        """As in messages: ``worker 1``, ``parameter server 0``, ``chief``."""
        return task_name(self.kind, self.index)

    @property
    def log_name(self) -> str:
        """The file of its output: ``worker-1.log``."""
        return f"{self.kind}-{self.index}.log"


def task_name(kind: str, index: int) -> str:
    """Return what people call a task; there is but one chief."""
    return kind if kind == "chief" else f"{NAMES.get(kind, kind)} {index}"


def multiworker(count: int) -> tuple[Task, ...]:
    """Make workers that are all alike; the first is the chief.

    Raises:
        UsageError: There is none.
    """
    if count < 1:
        raise UsageError(f"{count} processes cannot train", remedy="ask for one or more")
    return tuple(Task(kind="worker", index=index) for index in range(count))


def parameter_server(workers: int = 2, servers: int = 1) -> tuple[Task, ...]:
    """Make a chief that schedules the steps, workers that take them, servers with the weights.

    Raises:
        UsageError: There is no worker or no server.
    """
    if workers < 1 or servers < 1:
        why = f"it has {workers} workers and {servers} parameter servers"
        raise UsageError("a cluster with parameter servers needs one of each", why=why)
    trainers = [Task(kind="worker", index=index) for index in range(workers)]
    keepers = [Task(kind="ps", index=index) for index in range(servers)]
    return (Task(kind="chief"), *trainers, *keepers)


def chief_of(tasks: Sequence[Task]) -> Task:
    """Return the task whose result is the result of all: the chief, or else the first worker.

    Raises:
        UsageError: There is neither, or a task comes twice.
    """
    twice = sorted(task.name for task in set(tasks) if tasks.count(task) > 1)
    if twice:
        raise UsageError(f"{twice[0]} is there twice", remedy="give each task its own index")
    first_worker = Task(kind="worker")
    for task in (Task(kind="chief"), first_worker):
        if task in tasks:
            return task
    raise UsageError("the cluster has no chief and no worker 0")


def never_ends(task: Task, tasks: Sequence[Task]) -> bool:
    """Return whether the task works for the chief until it is ended: all others beside a server."""
    has_servers = any(one.kind == "ps" for one in tasks)
    return task.kind == "ps" or (has_servers and task.kind == "worker")


def addresses(tasks: Sequence[Task], ports: Sequence[int]) -> dict[Task, str]:
    """Return where each task listens on this machine."""
    return {task: f"{LOOPBACK}:{port}" for task, port in zip(tasks, ports, strict=True)}


def tf_config(task: Task, where: Mapping[Task, str]) -> str:
    """Write ``TF_CONFIG`` of a task; an evaluator stands outside the cluster, as TensorFlow asks.

    Args:
        task: Whose it is.
        where: The address of every task.
    """
    cluster: dict[str, list[str]] = {}
    for one in sorted(where, key=lambda other: other.index):
        if one.kind != "evaluator":
            cluster.setdefault(one.kind, []).append(where[one])
    return json.dumps({"cluster": cluster, "task": {"type": task.kind, "index": task.index}})


def loopback_variables(
    environment: Mapping[str, str], hosts: Sequence[str] = ("localhost", LOOPBACK)
) -> dict[str, str]:
    """Return variables that keep the cluster's own messages away from a proxy of the network.

    Args:
        environment: The variables so far.
        hosts: Of the cluster; those of this machine where nothing else is said.
    """
    variables = {}
    for key in PROXY_KEYS:
        kept = [part for part in environment.get(key, "").split(",") if part.strip()]
        missing = [host for host in dict.fromkeys(hosts) if host not in kept]
        variables[key] = ",".join(kept + missing)
    return variables


def one_card_each(tasks: Sequence[Task], cards: Sequence[str]) -> dict[Task, str]:
    """Return ``CUDA_VISIBLE_DEVICES`` of each task: one card for a worker, none for all others.

    Raises:
        UsageError: There are fewer cards than workers.
    """
    workers = sorted(task for task in tasks if task.kind == "worker")
    if len(cards) < len(workers):
        raise UsageError(
            f"{len(workers)} workers need {len(workers)} GPUs",
            why=f"this run has {len(cards)}",
            remedy="ask for fewer processes, or train on the CPU",
        )
    own = dict(zip(workers, cards, strict=False))
    return {task: own.get(task, NO_CARD) for task in tasks}


def free_ports(count: int) -> tuple[int, ...]:
    """Return ports of this machine that nothing listens on, all of them different.

    They are free when they are found; another program may take one before it is used.

    Raises:
        ToolError: The machine has no port left.
    """
    with contextlib.ExitStack() as stack:
        ports = []
        try:
            for _ in range(count):
                # On all addresses, as TensorFlow's own servers listen.
                taken = stack.enter_context(socket.socket())
                taken.bind(("", 0))
                ports.append(taken.getsockname()[1])
        except OSError as error:
            raise ToolError(f"cannot find {count} free ports", why=str(error.strerror)) from None
        return tuple(ports)
