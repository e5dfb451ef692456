"""The only door to ``runtime``: starts a child, waits for it and turns its end into words."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import tfdyno
from tfdyno.core.errors import ToolError, UsageError

Progress = Callable[[str], None]
Started = Callable[[int], object]

PROGRESS = "progress: "
HIDE_GPU = {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
OUTPUT_LINES = 40


def silent(_message: str) -> None:
    """Report progress to nobody."""


def nobody(_pid: int) -> None:
    """Tell nobody that the child has started."""


class ChildCrash(ToolError):  # noqa: N818  (it is what happened)
    """A child ended without a result.

    Attributes:
        child_exit_code: As ``subprocess`` gives it, negative for a signal; None after a time-out.
    """

    child_exit_code: int | None = None


def run_child(
    module: str,
    request: Mapping[str, Any],
    *,
    progress: Progress = silent,
    timeout_s: float,
    python: str | None = None,
    env: Mapping[str, str] | None = None,
    doing: str = "",
    hide_gpu: bool = True,
    output: Progress = silent,
    started: Started = nobody,
) -> dict[str, Any]:
    """Run ``python -m MODULE`` on one JSON request and return its JSON result.

    The local GPU is hidden unless its use is the child's job. The child's standard output and the
    lines of its standard error are kept for the message of a failure.

    Args:
        module: A module of ``tfdyno.runtime`` whose main calls ``child.serve``.
        request: JSON; the key ``result`` (a path) is added.
        progress: Called with every line that the child marks ``progress:``.
        timeout_s: After so many seconds the child and all it started are killed.
        python: Interpreter; the one that runs tfdyno when empty.
        env: Environment variables that are set over the usual ones.
        doing: What the child does, for messages: ``tracing train.py``.
        hide_gpu: Whether the child sees no GPU and TensorFlow keeps silent.
        output: Called with every other line that the child prints.
        started: Called with the identifier of the child's process before it gets the request.

    Raises:
        UsageError: The child says that the request is wrong.
        ChildCrash: It crashed, ran out of memory, or took longer than ``timeout_s``.
        ToolError: It says that it failed.
    """
    task = doing or f"the child process {module}"
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
        result = Path(folder) / "result.json"
        lines: deque[str] = deque(maxlen=OUTPUT_LINES)
        variables = {**(HIDE_GPU if hide_gpu else {}), **(env or {})}
        with _started(module, python or sys.executable, Path(folder), variables, task) as child:
            started(child.pid)
            _send(child, {**request, "result": str(result)})
            code = _wait(child, lines, progress, output, timeout_s)
        if code is None:
            limit = f"no result within {timeout_s:.0f} s"
            raise ChildCrash(f"{task} was stopped", why=_with_output(limit, lines))
        return _result(result, code, task, lines)


@contextlib.contextmanager
def _started(
    module: str, python: str, folder: Path, env: Mapping[str, str], task: str
) -> Iterator[subprocess.Popen[str]]:
    """A child in a process group of its own, which is gone when the block ends."""
    variables = {**os.environ, **env, "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"}
    variables["PYTHONPATH"] = _python_path(python, folder, variables.get("PYTHONPATH", ""))
    try:
        child = subprocess.Popen(
            [python, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=variables,
            start_new_session=True,
        )
    except OSError as error:
        remedy = "check --python"
        raise UsageError(f"cannot run {python} for {task}", why=str(error), remedy=remedy) from None
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):
                _close(pipe)


def _close(pipe: IO[str] | None) -> None:
    if pipe:
        pipe.close()


def _python_path(python: str, folder: Path, given: str) -> str:
    """Let another interpreter import tfdyno, but nothing that is installed beside it."""
    if python == sys.executable:
        return given
    (folder / "path").mkdir()
    (folder / "path" / "tfdyno").symlink_to(Path(tfdyno.__file__).parent)
    return os.pathsep.join(filter(None, [str(folder / "path"), given]))


def _send(child: subprocess.Popen[str], request: Mapping[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        assert child.stdin
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()


def _wait(
    child: subprocess.Popen[str],
    lines: deque[str],
    progress: Progress,
    output: Progress,
    timeout_s: float,
) -> int | None:
    """The exit code; None when the time was over."""
    reader = threading.Thread(
        target=_read, args=(child.stdout, lines, progress, output), daemon=True
    )
    reader.start()
    deadline = time.monotonic() + timeout_s
    try:
        code = child.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return None
    reader.join(timeout=max(0.1, min(1.0, deadline - time.monotonic())))
    return code


def _read(pipe: IO[str], lines: deque[str], progress: Progress, output: Progress) -> None:
    with contextlib.suppress(ValueError):  # the pipe is closed when the child is killed
        for line in pipe:
            if line.startswith(PROGRESS):
                progress(line[len(PROGRESS) :].strip())
            elif line.strip():
                lines.append(line.rstrip())
                output(line.rstrip())


def _result(path: Path, code: int, task: str, lines: deque[str]) -> dict[str, Any]:
    try:
        outcome: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        raise _crash(code, task, lines) from None
    if error := outcome.get("error"):
        kind = UsageError if error["kind"] == "usage" else ToolError
        raise kind(error["what"], why=error["why"], remedy=error["remedy"])
    return outcome


def _crash(code: int, task: str, lines: deque[str]) -> ChildCrash:
    remedy = ""
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        why = "it was killed, most likely because this machine ran out of memory"
        remedy = "close other programs or use a larger machine"
    elif code < 0:
        why = _with_output(f"the process crashed ({_signal_name(-code)})", lines)
    else:
        why = f"the process ended with exit code {code} and without a result"
        why = _with_output(why, lines)
    crash = ChildCrash(f"{task} failed", why=why, remedy=remedy)
    crash.child_exit_code = code
    return crash


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _with_output(why: str, lines: deque[str]) -> str:
    return f"{why}; its last line was {lines[-1]!r}" if lines else why
