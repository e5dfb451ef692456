"""Several children of ``runtime`` as one job: a cluster of TensorFlow processes on this machine."""

from __future__ import annotations

import math
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.messages.wire import decode
from tfdyno.engines.process.faults import Fault
from tfdyno.engines.process.local import END_S, Limits, attend, together
from tfdyno.engines.process.process import Command, Process
from tfdyno.engines.rendezvous.tf_config import (
    Task,
    addresses,
    chief_of,
    free_ports,
    loopback_variables,
    never_ends,
    tf_config,
)
from tfdyno.jobs.child.worker import (
    PROGRESS,
    Progress,
    Started,
    child_environment,
    error_of,
    line_of,
    nobody,
    result_of,
    silent,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.messages.child import Answer, Asked, Child


class _PortTaken(Exception):  # noqa: N818  (it is what happened)
    """A process could not listen on the port that was chosen for it."""

    def __init__(self, task: Task, port: int, fault: TfdynoError) -> None:
        super().__init__(f"port {port} of {task.name}")
        self.task, self.port, self.fault = task, port, fault


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What is the same for every try."""

    commands: tuple[Command, ...]
    tasks: tuple[Task, ...]
    requests: tuple[object, ...]
    results: tuple[Path, ...]
    limits: Limits
    progress: Progress
    output: Progress
    started: Started


def run_children(
    child: Child[Asked, Answer],
    requests: Sequence[Asked],
    roles: Sequence[Task],
    *,
    progress: Progress = silent,
    output: Progress = silent,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    python: str | None = None,
    doing: str = "",
    logs: Path,
    hide_gpu: bool = True,
    cards: Mapping[Task, str] | None = None,
    started: Started = nobody,
    stop_grace_s: float = 0.0,
    start_timeout_s: float = math.inf,
) -> Answer:
    """Run ``python -m MODULE`` once for each role and return the result of the chief.

    Every process gets its ``TF_CONFIG`` with free ports of this machine, and a request as
    ``run_child`` sends it. The first that fails ends all others; a process that only lost another
    one is not blamed. Parameter servers, and the workers beside them, are ended with the chief.

    Args:
        child: The declaration that its module gives to ``process.child.serve``.
        requests: What each role is asked.
        roles: Who is who: ``tf_config.multiworker`` or ``tf_config.parameter_server``.
        progress: Called with the progress of the chief.
        output: Called with every other line of every process: ``[worker 1] …``.
        timeout_s: After so many seconds all are ended.
        env: Environment variables of all processes, set over the usual ones.
        python: Interpreter; the one that runs tfdyno when empty.
        doing: What they do, for messages: ``training train.py``.
        logs: Folder of the logs, one for each process, to which is added.
        hide_gpu: Whether the processes see no GPU and TensorFlow keeps silent.
        cards: ``CUDA_VISIBLE_DEVICES`` of each role (``tf_config.one_card_each``), set over all.
        started: Called with the identifier of every process, the chief's first, before any of them
            gets its request.
        stop_grace_s: After Ctrl-C or SIGTERM the processes are told to end, and the chief's result
            is waited for so long; a second Ctrl-C kills them. 0 kills them at once.
        start_timeout_s: Until every process must have told a progress.

    Raises:
        UsageError: A process says that the request is wrong, or the roles are.
        ChildCrash: A process crashed or ran out of memory, or all took longer than ``timeout_s``.
        ToolError: A process says that it failed or never started, or a port is taken.
    """
    chief = chief_of(roles)
    if len(requests) != len(roles):
        raise UsageError(f"{len(roles)} processes cannot share {len(requests)} requests")
    interpreter = python or sys.executable
    purpose = doing or f"the child process {child.module}"
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as name:
        folder = Path(name)
        variables = child_environment(interpreter, folder, env, hide_gpu=hide_gpu)
        variables |= loopback_variables(variables)
        order = sorted(range(len(roles)), key=lambda position: roles[position] != chief)
        tasks = tuple(roles[position] for position in order)
        job = _Job(
            commands=tuple(
                Command(
                    words=(interpreter, "-m", child.module),
                    environment=variables | _visible(task, cards),
                    purpose=purpose,
                    name=task.name,
                    serves=never_ends(task, roles),
                    log=logs / task.log_name,
                )
                for task in tasks
            ),
            tasks=tasks,
            requests=tuple(requests[position] for position in order),
            results=tuple(folder / f"{task.kind}-{task.index}.json" for task in tasks),
            limits=Limits(
                run_s=timeout_s, start_s=start_timeout_s, stop_s=stop_grace_s, end_s=END_S
            ),
            progress=progress,
            output=output,
            started=started,
        )
        return decode(_run(job), child.result)


def _visible(task: Task, cards: Mapping[Task, str] | None) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": cards[task]} if cards and task in cards else {}


def _run(job: _Job, *, again: bool = True) -> Value:
    """Try once more with new ports: one may be taken between its choice and its use."""
    try:
        return _try(job, free_ports(len(job.tasks)))
    except _PortTaken as taken:
        what = f"port {taken.port} of {taken.task.name} is taken"
        if not again:
            why = f"TF_CONFIG gave it that port of this machine, but {taken.fault.why}"
            remedy = "try again, or end the program that listens there"
            raise ToolError(what, why=why, remedy=remedy) from taken.fault
        job.output(f"{what}: starting again with other ports")
    return _run(job, again=False)


def _try(job: _Job, ports: Sequence[int]) -> Value:
    """Start all processes on these ports and wait for the result of the first, the chief."""
    where = addresses(job.tasks, ports)
    commands = [
        _with_config(command, tf_config(task, where))
        for command, task in zip(job.commands, job.tasks, strict=True)
    ]
    for result in job.results:
        result.unlink(missing_ok=True)
    places: dict[str, int] = {task.name: place for place, task in enumerate(job.tasks)}

    def judge(process: Process) -> Exception | None:
        place = places[process.command.name]
        error = error_of(process, job.results[place])
        if not isinstance(error, TfdynoError):
            return error
        if Fault(process=process, error=error).is_port_taken:
            return _PortTaken(job.tasks[place], ports[place], error)
        error.add_note(f"Its log is {process.command.log}.")
        return error

    with together(
        commands, chief=0, mark=PROGRESS, progress=job.progress, output=job.output
    ) as crew:
        for process in crew.processes:
            job.started(process.popen.pid)
        for process, request, result in zip(crew.processes, job.requests, job.results, strict=True):
            process.send(line_of(request, result))
        attend(crew, judge, job.limits)
    return result_of(crew.chief, job.results[0])


def _with_config(command: Command, config: str) -> Command:
    return replace(command, environment={**command.environment, "TF_CONFIG": config})
