"""One version in a process of its own: how it is started, what it said, and its end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.messages.serve import Failed, ModelReady, ServeModel, VersionFacts
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import as_run
from tfdyno.engines.process.serving_process import ServingProcess, start
from tfdyno.jobs.child.recipe_env import of_execution
from tfdyno.jobs.child.worker import child_environment
from tfdyno.jobs.retreat.retreating import Trial
from tfdyno.jobs.serve._versions import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.recipe.retreat import Retreat
    from tfdyno.engines.process.serving_process import Event

State = Literal["starting", "serving", "leaving"]
MODULE = "tfdyno.serving.model.child"
LONGEST_FOLDER = 26
"""The longest folder of temporary files, in characters: below it lie sockets, whose paths hold 107.
"""


@dataclass(slots=True, kw_only=True, eq=False)
class Backend:
    """A version and the process that runs it."""

    wanted: Wanted
    process: ServingProcess
    request: ServeModel
    """What the process was told."""
    state: State = "starting"
    ready: ModelReady | None = None
    """What the process said when it was."""
    leaves_s: float = 0.0
    """When a leaving one is ended though requests are in flight, on the monotonic clock."""

    @property
    def row(self) -> VersionFacts:
        """Its row in the front's table."""
        signatures = self.ready.signatures if self.ready else {}
        return VersionFacts(address=self.request.address, signatures=signatures)

    def clear(self, within_s: float = 0.0) -> None:
        """Wait for its end so long; then nothing of it is left."""
        self.process.end(within_s)
        shutil.rmtree(self.request.scratch, ignore_errors=True)


def start_backend(
    wanted: Wanted,
    request: ServeModel,
    *,
    python: str,
    log: Path | None,
    hear: Callable[[Event], object],
    retreats: Sequence[Retreat] = (),
) -> Backend:
    """Start the process of one version.

    Args:
        wanted: The version.
        request: What the process is told; its folder is gone with the process.
        python: The interpreter of the serving environment.
        log: File that its output is added to.
        hear: Called with what it says.
        retreats: Steps back from compiles that failed inside XLA.
    """
    scratch = request.scratch
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
    process.send(request)
    return Backend(wanted=wanted, process=process, request=request)


def scratch_folder() -> Path:
    """Return a new temporary folder whose path is short enough for PyTriton's sockets."""
    usual = tempfile.gettempdir()
    folder = usual if len(usual) <= LONGEST_FOLDER else "/tmp"
    return Path(tempfile.mkdtemp(prefix="tfdyno-serve-", dir=folder))


def serving_variables(python: str, folder: Path) -> dict[str, str]:
    """Return all variables of a process in the serving environment.

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


def error_of(event: Event) -> TfdynoError:
    """Return why a process did not get to serve: what it said of itself, else its last words."""
    if isinstance(event.said, Failed):
        return event.said.error
    process = event.process
    code = process.popen.returncode
    if code == -signal.SIGKILL:
        why = "by SIGKILL (often: out of memory; the kernel's log says)"
        return ToolError(f"{process.name} was killed {why}")
    return ToolError(f"{process.name} ended with exit code {code}", why=process.last_words())
