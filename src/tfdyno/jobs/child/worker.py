"""The only door to ``runtime``: starts a child, waits for it and turns its end into words."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import Failure, ToolError, UsageError
from tfdyno.core.base.version import PACKAGE
from tfdyno.core.messages.child import ERROR
from tfdyno.core.messages.wire import decode, encode, fields_of
from tfdyno.engines.process.local import END_S, LAST_LINES, Limits, attend, together
from tfdyno.engines.process.oom_kills import SIGKILLED, oom_kills, why_killed
from tfdyno.engines.process.process import ChildCrash as ChildCrash
from tfdyno.engines.process.process import Command, Process

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.core.messages.child import Answer, Asked, Child

Progress = Callable[[str], None]
Started = Callable[[int], object]

PROGRESS = "progress: "
HIDE_GPU = {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}


def silent(_message: str) -> None:
    """Report progress to nobody."""


def nobody(_pid: int) -> None:
    """Tell nobody that the child has started."""


def run_child(
    child: Child[Asked, Answer],
    request: Asked,
    *,
    progress: Progress = silent,
    timeout_s: float,
    python: str | None = None,
    env: Mapping[str, str] | None = None,
    doing: str = "",
    hide_gpu: bool = True,
    output: Progress = silent,
    log: Path | None = None,
    started: Started = nobody,
    stop_grace_s: float = 0.0,
) -> Answer:
    """Run ``python -m MODULE`` on one request and return its result.

    The local GPU is hidden unless its use is the child's job. The child's standard output and the
    lines of its standard error are kept for the message of a failure.

    Args:
        child: The declaration that its module gives to ``process.child.serve``.
        request: What it is asked.
        progress: Called with every line that the child marks ``progress:``.
        timeout_s: After so many seconds the child and all it started are killed.
        python: Interpreter; the one that runs tfdyno when empty.
        env: Environment variables that are set over the usual ones.
        doing: What the child does, for messages: ``tracing train.py``.
        hide_gpu: Whether the child sees no GPU and TensorFlow keeps silent.
        output: Called with every other line that the child prints.
        log: File that those lines are added to.
        started: Called with the identifier of the child's process before it gets the request.
        stop_grace_s: After Ctrl-C or SIGTERM the child is told to end, and its result is waited
            for so long; a second Ctrl-C kills it. 0 kills it at once.

    Raises:
        UsageError: The child says that the request is wrong.
        ChildCrash: It crashed, ran out of memory, or took longer than ``timeout_s``.
        ToolError: It says that it failed.
    """
    purpose = doing or f"the child process {child.module}"
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
        result = Path(folder) / "result.json"
        interpreter = python or sys.executable
        command = Command(
            words=(interpreter, "-m", child.module),
            environment=child_environment(interpreter, Path(folder), env, hide_gpu=hide_gpu),
            purpose=purpose,
            log=log,
        )
        limits = Limits(
            run_s=timeout_s, stop_s=stop_grace_s, end_s=END_S if stop_grace_s > 0 else 0.0
        )
        with together([command], chief=0, mark=PROGRESS, progress=progress, output=output) as crew:
            started(crew.chief.popen.pid)
            crew.chief.send(line_of(request, result))
            attend(crew, lambda process: error_of(process, result), limits)
        return decode(result_of(crew.chief, result), child.result)


def line_of(request: object, result: Path) -> str:
    """Write the line that a child reads: what it is asked, and the file for its result."""
    return encode({**fields_of(request), "result": result})


def child_environment(
    python: str, folder: Path, env: Mapping[str, str] | None, *, hide_gpu: bool
) -> dict[str, str]:
    """Return all variables of a child.

    Args:
        python: The interpreter that runs it.
        folder: An empty folder that lives as long as the child.
        env: Variables that are set over the usual ones.
        hide_gpu: Whether the child sees no GPU and TensorFlow keeps silent.
    """
    variables = {**os.environ, **(HIDE_GPU if hide_gpu else {}), **(env or {})}
    variables |= {"PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"}
    variables["PYTHONPATH"] = _python_path(python, folder, variables.get("PYTHONPATH", ""))
    return variables


def _python_path(python: str, folder: Path, given: str) -> str:
    """Let another interpreter import tfdyno, but nothing that is installed beside it."""
    if python == sys.executable:
        return given
    (folder / "path").mkdir(exist_ok=True)
    if not (folder / "path" / "tfdyno").exists():
        (folder / "path" / "tfdyno").symlink_to(PACKAGE)
    return os.pathsep.join(filter(None, [str(folder / "path"), given]))


def error_of(process: Process, result: Path) -> Exception | None:
    """Return what the end of a child means: None when it has left a result."""
    try:
        result_of(process, result)
    except (UsageError, ToolError) as error:
        return error
    return None


def result_of(process: Process, result: Path) -> Value:
    """Return the result of an ended child, as JSON has it; raises as ``run_child`` does."""
    try:
        outcome: Value = json.loads(result.read_bytes())
    except (OSError, ValueError):
        raise crash_of(process) from None
    if isinstance(outcome, dict) and (error := outcome.get(ERROR)):
        failure, name = decode(error, Failure), process.command.name
        told = replace(failure, what=f"{name}: {failure.what}" if name else failure.what).error
        told.raised, told.at = outcome["raised"], process.said
        raise told
    return outcome


def crash_of(process: Process) -> ChildCrash:
    """Say what the end of a child without a result means, by exit code and last words."""
    code, command = process.exit_code, process.command
    assert code is not None
    words = process.last_words(LAST_LINES if command.name else 1)
    remedy = ""
    if code in SIGKILLED:
        why, remedy = why_killed(process.oom_kills, oom_kills())
    elif code < 0:
        why = _joined(f"the process crashed ({_signal_name(-code)})", words)
    else:
        why = _joined(f"the process ended with exit code {code} and without a result", words)
    where = f" in {command.name}" if command.name else ""
    crash = ChildCrash(f"{command.purpose} failed{where}", why=why, remedy=remedy)
    crash.child_exit_code = code
    crash.raised, crash.at = "\n".join(process.lines), process.said
    return crash


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
