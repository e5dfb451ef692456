"""How a child process speaks with its parent: one JSON request in, one JSON result out.

Standard library only, because the child may run in the user's own interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, failure_of
from tfdyno.core.messages.child import ERROR
from tfdyno.core.messages.wire import decode, encode

if TYPE_CHECKING:
    from tfdyno.core.messages.child import Answer, Asked, Child

MOST_RAISED = 20_000
"""Characters of an exception that are told; one of XLA may hold a whole program."""
AUTOGRAPH = "__autograph_generated_file"
"""How modules begin that TensorFlow writes into the temporary folder, one for each function that it
traces; it removes them in a handler at exit."""
Progress = Callable[[str], None]


def serve(handle: Callable[[Asked, Progress], Answer], declared: Child[Asked, Answer]) -> int:
    """Read the request, run ``handle`` and write its result (or its error) to the result path.

    The request is one line on standard input; its key ``result`` names the file to write. Standard
    input is then closed to the user's code, and the child ends when the parent is gone.

    Args:
        handle: From the request to the result, both nouns of ``core.messages``.
        declared: The classes of both.

    Returns:
        The exit code: 0, or the one of the error.
    """
    request = json.loads(sys.stdin.readline())
    result = Path(request.pop("result"))
    _end_with_parent()
    outcome: object
    try:
        outcome, code = handle(decode(request, declared.request), _say), 0
    except TfdynoError as error:
        outcome = {ERROR: failure_of(error), "raised": raised_behind(error)}
        code = error.exit_code
    _write(result, encode(outcome).encode())
    return code


def raised_behind(error: TfdynoError) -> str:
    """Type and text of the exception that an error was made of; empty where there was none."""
    cause: BaseException | None = error
    while isinstance(cause, TfdynoError):
        cause = cause.__cause__ or cause.__context__
    return f"{type(cause).__name__}: {cause}"[:MOST_RAISED] if cause else ""


def leave(code: int) -> None:
    """End the process at once: threads and exit handlers of the user's code are not waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    for name, module in list(sys.modules.items()):
        if name.startswith(AUTOGRAPH) and (file := getattr(module, "__file__", None)):
            with contextlib.suppress(OSError):
                Path(file).unlink()
    os._exit(code)


def _say(message: str) -> None:
    print(f"progress: {message}", file=sys.__stderr__, flush=True)


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)


def _end_with_parent() -> None:
    """Watch the pipe from the parent: its end means that nobody waits for an answer any more."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = open(os.devnull)  # noqa: SIM115, PTH123  (open for the life of the process)

    def watch() -> None:
        while os.read(pipe, 1024):
            pass
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
