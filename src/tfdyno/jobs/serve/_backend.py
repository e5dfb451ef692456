"""One version in a process of its own: how it is started, what it said, and its end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import as_run
from tfdyno.engines.process.serving_process import ServingProcess, start
from tfdyno.jobs.child.recipe_env import of_execution
from tfdyno.jobs.child.worker import child_environment
from tfdyno.jobs.retreat.retreating import Trial
from tfdyno.jobs.serve._versions import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfdyno.core.recipe.retreat import Retreat
    from tfdyno.engines.process.serving_process import Event

State = Literal["starting", "serving", "leaving"]
MODULE = "tfdyno.serving.model.child"
LONGEST_FOLDER = 26
"""Of temporary files, in characters: below it lie sockets, whose paths hold 107."""


@dataclass(slots=True, kw_only=True, eq=False)
class Backend:
    """A version and the process that runs it."""

    wanted: Wanted
    process: ServingProcess
    scratch: Path
    state: State = "starting"
    ready: dict[str, Any] = field(default_factory=dict)
    """What the process said when it was ready."""
    leaves_s: float = 0.0
    """When a leaving one is ended though requests are in flight, on the monotonic clock."""

    @property
    def row(self) -> dict[str, Any]:
        """Its row in the front's table."""
        return {key: self.ready[key] for key in ("address", "signatures")}

    def clear(self, within_s: float = 0.0) -> None:
        """Wait for its end so long; then nothing of it is left."""
        self.process.end(within_s)
        shutil.rmtree(self.scratch, ignore_errors=True)


def start_backend(
    wanted: Wanted,
    *,
    name: str,
    python: str,
    settings: Mapping[str, Any],
    log: Path | None,
    hear: Callable[[Event], object],
    retreats: Sequence[Retreat] = (),
) -> Backend:
    """Start the process of one version.

    Args:
        wanted: The version.
        name: Of the model.
        python: The interpreter of the serving environment.
        settings: Batching and threads, as ``serve_triton`` reads them.
        log: File that its output is added to.
        hear: Called with what it says.
        retreats: Steps back from compiles that failed inside XLA.
    """
    scratch = scratch_folder()
    trial = Trial(recipe=as_run(Recipe(), retreats), retreats=tuple(retreats))
    try:
        process = start(
            (python, "-m", MODULE), name=f"version {wanted.version}",
            environment=trial.variables(
                serving_variables(python, scratch) | of_execution(trial.recipe, os.environ)
            ),
            hear=hear, log=log,
        )  # fmt: skip
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    process.send({
        "model": str(wanted.path.absolute()), "name": name, "version": str(wanted.version),
        "scratch": str(scratch), "address": f"unix:{scratch / 'http'}", **settings,
    })  # fmt: skip
    return Backend(wanted=wanted, process=process, scratch=scratch)


def scratch_folder() -> Path:
    """A new temporary folder whose path is short enough for PyTriton's sockets."""
    usual = tempfile.gettempdir()
    folder = usual if len(usual) <= LONGEST_FOLDER else "/tmp"
    return Path(tempfile.mkdtemp(prefix="tfdyno-serve-", dir=folder))


def serving_variables(python: str, folder: Path) -> dict[str, str]:
    """All variables of a process in the serving environment.

    Args:
        python: Its interpreter.
        folder: An empty one that lives as long: temporary files of what it starts go there.
    """
    variables = child_environment(python, folder, {"TMPDIR": str(folder)}, hide_gpu=False)
    # What the user lets Python find beside tfdyno was made for another numpy.
    variables["PYTHONPATH"] = str(folder / "path")
    return {key: value for key, value in variables.items() if key not in ("PYTHONHOME",)}


def check_port(host: str, port: int, option: str) -> None:
    """Refuse an address that cannot be listened on; raises ``UsageError``."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(f"there is no address {host}", remedy="check --host") from None
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            remedy = f"stop what uses it, or give another port with {option}"
            raise UsageError(f"cannot listen on {host}:{port}", why=why, remedy=remedy) from None


def error_of(event: Event) -> UsageError | ToolError:
    """Why a process did not get to serve: what it said of itself, else its last words."""
    said = event.content
    if said.get("event") == "failed":
        kind = UsageError if said.get("kind") == "usage" else ToolError
        return kind(said["what"], why=said.get("why", ""), remedy=said.get("remedy", ""))
    process = event.process
    code = process.popen.returncode
    if code == -signal.SIGKILL:
        why = "by SIGKILL (often: out of memory; the kernel's log says)"
        return ToolError(f"{process.name} was killed {why}")
    return ToolError(f"{process.name} ended with exit code {code}", why=process.last_words())
