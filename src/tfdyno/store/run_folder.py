"""The folder of a training run: its recipe, what was asked, how it stands, and what came out.

``run.json`` is written as a whole each time, so that a reader, or a crash, never sees half of it.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.codec import from_json, to_json, write_atomic
from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.base.lock import FileLock, lock_folder
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.measurement import Environment, Telemetry
from tfdyno.core.recipe.recipe_file import FILE_NAME, read_recipe, to_toml
from tfdyno.core.recipe.retreat import Retreat
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import History, RunSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.recipe.recipe import Recipe

RUN_FILE, HISTORY_FILE, LOCK_FILE, LOGS = "run.json", "history.json", ".run.lock", "logs"
RETREATS_FILE = ".retreats.json"
Status = Literal["running", "finished", "stopped", "failed"]
HEAD = (
    "The recipe of this run of tfdyno, its seed included.",
    "--resume goes on with it; --recipe with this folder repeats it elsewhere.",
)


def unused(folder: Path) -> Path:
    """Return the folder, with a number behind its name where there is one already."""
    found, number = folder, 1
    while found.exists():
        number += 1
        found = folder.with_name(f"{folder.name}-{number}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What ``run.json`` says."""

    version: int = 1
    status: Status = "running"
    """``running`` also where the run was killed."""
    workload: Workload
    folder: str = ""
    """Where the command was given: the workload's path is relative to it."""
    data: str = ""
    """``file.py:function`` of data that the workload does not bring."""
    source_sha256: str = ""
    """The digest of the workload's own file, at the first start."""
    settings: RunSettings = field(default_factory=RunSettings)
    jax: JaxPlan | None = None
    """Where it trains on Keras' JAX backend; None: on TensorFlow's."""
    seed: int = 0
    started_at: str = ""
    ended_at: str = ""
    """The end of the last session; empty while it runs."""
    sittings: int = 1
    tfdyno: str = ""
    error: str = ""
    retreats: tuple[Retreat, ...] = ()
    """Steps back from compiles that failed inside XLA: a run that goes on begins with them."""
    outcome: dict[str, object] = field(default_factory=dict)
    """The fields of the last session's ``TrainOutcome``; a loss that is no number is null."""
    environment: Environment | None = None
    telemetry: Telemetry | None = None
    """The telemetry of the last session, in few enough points to be read."""


class RunFolder:
    """One folder, and the one command that trains in it."""

    def __init__(self, path: Path) -> None:
        """Take the folder; nothing is made yet."""
        self.path = path

    @property
    def holds_run(self) -> bool:
        """Whether a run was started here."""
        return (self.path / RUN_FILE).exists()

    def read(self) -> tuple[RunRecord, Recipe]:
        """Return the record and the recipe of the run here.

        Raises:
            UsageError: There is none, or a file is damaged.
        """
        file = self.path / RUN_FILE
        try:
            data = file.read_bytes()
        except OSError as error:
            why = "there is no run in it" if error.errno == errno.ENOENT else error.strerror or ""
            remedy = "leave --resume out, or name the folder of a run with --output"
            raise UsageError(f"cannot resume in {self.path}", why=why, remedy=remedy) from None
        return from_json(data, RunRecord, where=str(file)), read_recipe(self.path)

    def prepare(self) -> None:
        """Make the folder.

        Raises:
            UsageError: It cannot be made or written, or is something else.
        """
        with OSErrorsAs(UsageError, f"cannot write to {self.path}"):
            (self.path / LOGS).mkdir(parents=True, exist_ok=True)
        if not os.access(self.path, os.W_OK):
            raise UsageError(f"cannot write to {self.path}", why="permission denied")

    def held(self) -> FileLock:
        """Keep other commands out until the block ends, or this process.

        Raises:
            UsageError: Another one trains here.
            ToolError: The folder cannot be written.
        """
        return lock_folder(self.path, LOCK_FILE)

    def write_recipe(self, recipe: Recipe) -> None:
        """Keep the recipe; raises ``UsageError`` where it cannot be written."""
        write_atomic(self.path / FILE_NAME, to_toml(recipe, head=HEAD).encode())

    def leave_retreats(self, retreats: tuple[Retreat, ...]) -> None:
        """Keep steps back for whoever goes on with the run, where another process writes it."""
        write_atomic(self.path / RETREATS_FILE, to_json(retreats))

    def take_retreats(self) -> tuple[Retreat, ...]:
        """Take what was left so, once."""
        file = self.path / RETREATS_FILE
        try:
            found = from_json(file.read_bytes(), tuple[Retreat, ...], where=str(file))
            file.unlink()
        except OSError:
            return ()
        return found

    def write_history(self, history: History) -> None:
        """Keep the metrics by epoch for other programs; raises ``UsageError``, ``OSError``."""
        write_atomic(self.path / HISTORY_FILE, to_json(history, indent=2) + b"\n")

    def write(self, record: RunRecord) -> None:
        """Keep the record; raises ``UsageError`` where it cannot be written."""
        write_atomic(self.path / RUN_FILE, to_json(record, indent=2) + b"\n")
