"""The runs of a project on disk: rows in one SQLite file; outputs lie in folders beside it.

What a step printed is kept in the file as well, by the making that it came of: a folder of outputs
holds the newest making of a key only, and anybody may delete it.
"""

from __future__ import annotations

import contextlib
import shlex
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.output import FILE as MADE
from tfdyno.core.project.output import Made
from tfdyno.core.project.project import DOCUMENT, ProjectRun, StepRun
from tfdyno.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    import sqlite3

FILE = "history.sqlite"
SCHEMA_VERSION = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, noun TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS step (
    run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL, name TEXT NOT NULL, noun TEXT NOT NULL, PRIMARY KEY (run, number),
    UNIQUE (run, name));
CREATE TABLE IF NOT EXISTS document (stamp TEXT PRIMARY KEY, packed BLOB NOT NULL);
"""
MOST_BYTES = 16 * 2**20
"""The most bytes of a document that is kept here as well; a larger one lies in its output alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHistory:
    """The history of one project's folder. Every call is one transaction."""

    folder: Path
    project: str = ""
    """Name of the project that is asked about, where several share the folder; empty: all. The
    rows of all are read, since they share the outputs, too."""

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self.folder / FILE

    @property
    def _file(self) -> SqliteFile:
        return SqliteFile(path=self.path, what="runs", schema=_SCHEMA, version=SCHEMA_VERSION)

    def output(self, step: StepRun) -> Path:
        """Return the folder of what a step made; another making may be in it by now."""
        return self.folder / step.output

    def made(self, step: StepRun) -> Made | None:
        """Return what a step's output says of itself; None: nothing that is whole."""
        try:
            return from_json((self.output(step) / MADE).read_bytes(), Made, where=MADE)
        except (OSError, UsageError, ValueError):
            return None

    def document(self, step: StepRun) -> bytes | None:
        """Return what a step printed in the making that its run took; None: it is not kept here."""
        if not step.stamp:
            return None
        with self._file.reading() as database:
            row = database.execute(
                "SELECT packed FROM document WHERE stamp = ?", (step.stamp,)
            ).fetchone()
        try:
            return zlib.decompress(row[0]) if row else None
        except (zlib.error, TypeError):
            return None

    def write(self, run: ProjectRun) -> None:
        """Keep a run as it stands now, its steps included, in place of how it stood.

        Raises:
            UsageError: The folder is a file, cannot be written, or holds another program's file.
            ToolError: The disk is full.
        """
        head = to_json(replace(run, steps=())).decode()
        with self._file.writing() as database:
            database.execute(
                "INSERT INTO run (id, noun) VALUES (?, ?) "
                "ON CONFLICT (id) DO UPDATE SET noun = excluded.noun",
                (run.id, head),
            )
            database.execute("DELETE FROM step WHERE run = ?", (run.id,))
            database.executemany(
                "INSERT INTO step (run, number, name, noun) VALUES (?, ?, ?, ?)",
                [
                    (run.id, number, step.step, to_json(step).decode())
                    for number, step in enumerate(run.steps)
                ],
            )
            for step in run.steps:
                self._keep_document(database, step)

    def _keep_document(self, database: sqlite3.Connection, step: StepRun) -> None:
        """Keep what a step printed, where that is not kept and what it made still stands."""
        known = "SELECT 1 FROM document WHERE stamp = ?"
        if not step.stamp or database.execute(known, (step.stamp,)).fetchone():
            return
        made, path = self.made(step), self.output(step) / DOCUMENT
        if made is None or made.stamp != step.stamp:
            return
        with contextlib.suppress(OSError):
            if path.stat().st_size <= MOST_BYTES:
                packed = zlib.compress(path.read_bytes())
                database.execute("INSERT INTO document VALUES (?, ?)", (step.stamp, packed))

    def runs(self) -> tuple[ProjectRun, ...]:
        """Return all, newest first; empty where the folder holds no history.

        Raises:
            UsageError: One cannot be read; the sentence names it.
        """
        found = self.readable()
        for name, run in found.items():
            if isinstance(run, UsageError):
                raise UsageError(f"run {name} in {self.path} cannot be read", why=str(run),
                                 remedy=f"{self.forgetting(name)} forgets it")  # fmt: skip
        return tuple(run for run in found.values() if isinstance(run, ProjectRun))

    def forgetting(self, name: str) -> str:
        """Return the command that forgets a run."""
        return f"tfdyno runs rm {name} --project {shlex.quote(str(self.folder))}"

    def readable(self) -> dict[str, ProjectRun | UsageError]:
        """Return all by id, newest first; in place of a damaged one, what is wrong with it."""
        with self._file.reading() as database:
            return self._rows(database)

    def remove(self, ids: tuple[str, ...]) -> None:
        """Forget runs, and the documents of makings that no run names any more."""
        with self._file.writing() as database:
            database.executemany("DELETE FROM run WHERE id = ?", [(one,) for one in ids])
            left = self._rows(database).values()
            named = {step.stamp for run in left if isinstance(run, ProjectRun)
                     for step in run.steps}  # fmt: skip
            kept = database.execute("SELECT stamp FROM document").fetchall()
            database.executemany(
                "DELETE FROM document WHERE stamp = ?", [row for row in kept if row[0] not in named]
            )

    def _rows(self, database: sqlite3.Connection) -> dict[str, ProjectRun | UsageError]:
        rows = database.execute(
            "SELECT id, CAST(noun AS BLOB) FROM run ORDER BY number DESC"
        ).fetchall()
        return {name: _whole(database, name, head) for name, head in rows}


def _whole(database: sqlite3.Connection, name: str, head: bytes) -> ProjectRun | UsageError:
    rows = database.execute(
        "SELECT CAST(noun AS BLOB) FROM step WHERE run = ? ORDER BY number", (name,)
    ).fetchall()
    try:
        steps = tuple(from_json(row[0], StepRun, where="a step") for row in rows)
        return replace(from_json(head, ProjectRun, where="its row"), steps=steps)
    except UsageError as error:
        return error
    except ValueError as error:  # no text at all
        return UsageError("its row is no text", why=str(error))
