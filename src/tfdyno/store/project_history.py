"""The runs of a project on disk: rows in one SQLite file; outputs lie in folders beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.codec import from_json, to_json
from tfdyno.core.errors import UsageError
from tfdyno.core.project import OUTPUTS, ProjectRun, StepRun
from tfdyno.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    import sqlite3

FILE = "history.sqlite"
SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE run (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, noun TEXT NOT NULL);
CREATE TABLE step (
    run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL, name TEXT NOT NULL, noun TEXT NOT NULL, PRIMARY KEY (run, number),
    UNIQUE (run, name));
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHistory:
    """The history of one project's folder. Every call is one transaction."""

    folder: Path

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self.folder / FILE

    @property
    def _file(self) -> SqliteFile:
        return SqliteFile(path=self.path, what="runs", schema=_SCHEMA, version=SCHEMA_VERSION)

    def output(self, step: StepRun) -> Path:
        """The folder of what a step made."""
        return self.folder / step.output

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

    def runs(self) -> tuple[ProjectRun, ...]:
        """All, newest first; empty where the folder holds no history."""
        if not self.path.exists():
            return ()
        with self._file.reading() as database:
            rows = database.execute("SELECT id, noun FROM run ORDER BY number DESC").fetchall()
            return tuple(self._whole(database, *row) for row in rows)

    def run(self, prefix: str = "") -> ProjectRun:
        """The one whose id begins so; the newest of all for an empty prefix.

        Raises:
            UsageError: There is none, or more than one.
        """
        found = [one for one in self.runs() if one.id.startswith(prefix)]
        if not found:
            what = f"no run {prefix}" if prefix else "no run"
            raise UsageError(
                f"{self.folder} holds {what}", remedy="tfdyno run makes one; tfdyno runs lists them"
            )
        if prefix and len(found) > 1 and found[0].id != prefix:
            names = ", ".join(one.id for one in found[:9])
            raise UsageError(f"{prefix} is the beginning of several: {names}", remedy="give more")
        return found[0]

    def remove(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        """Forget runs.

        Returns:
            The outputs that no other run names: relative folders, to be deleted by the caller.
        """
        with self._file.writing() as database:
            runs = [self._whole(database, *row)
                    for row in database.execute("SELECT id, noun FROM run").fetchall()]  # fmt: skip
            database.executemany("DELETE FROM run WHERE id = ?", [(one,) for one in ids])
        gone = {step.output for run in runs if run.id in ids for step in run.steps}
        left = {step.output for run in runs if run.id not in ids for step in run.steps}
        return tuple(sorted(one for one in gone - left if one.startswith(f"{OUTPUTS}/")))

    def _whole(self, database: sqlite3.Connection, name: str, head: str) -> ProjectRun:
        rows = database.execute("SELECT noun FROM step WHERE run = ? ORDER BY number", (name,))
        where = str(self.path)
        steps = tuple(from_json(row[0].encode(), StepRun, where=where) for row in rows)
        return replace(from_json(head.encode(), ProjectRun, where=where), steps=steps)
