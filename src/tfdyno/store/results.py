"""Measurements on disk: one SQLite file that several writers share and a kill leaves whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import BenchRun, Measurement
from tfdyno.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    import sqlite3

FILE = "results.sqlite"
SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE measurement (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, key TEXT NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0, noun TEXT NOT NULL);
CREATE TABLE run (
    measurement TEXT NOT NULL REFERENCES measurement (id) ON DELETE CASCADE,
    number INTEGER NOT NULL, noun TEXT NOT NULL, PRIMARY KEY (measurement, number));
CREATE INDEX measurement_by_key ON measurement (key);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The measurements of one folder. Every call is one transaction on a connection of its own."""

    folder: Path

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self.folder / FILE

    @property
    def _file(self) -> SqliteFile:
        return SqliteFile(path=self.path, what="results", schema=_SCHEMA, version=SCHEMA_VERSION)

    def prepare(self) -> None:
        """Make the folder and its file, and write to it once, before minutes are measured.

        Raises:
            UsageError: The folder is a file, cannot be written, or holds another program's file.
            ToolError: The disk is full.
        """
        with self._file.writing() as database:
            database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")  # writes, changes nothing

    def start(self, measurement: Measurement, *, key: str) -> None:
        """Store a measurement and the runs that it has.

        Args:
            measurement: Its ``id`` is new.
            key: What ``unfinished`` finds it by: a digest of all that was asked for.

        Raises:
            TfdynoError: As ``prepare`` does.
        """
        head = to_json(replace(measurement, runs=())).decode()
        with self._file.writing() as database:
            database.execute(
                "INSERT INTO measurement (id, key, noun) VALUES (?, ?, ?)",
                (measurement.id, key, head),
            )
            for run in measurement.runs:
                _insert(database, measurement.id, run)

    def add_run(self, measurement_id: str, run: BenchRun) -> None:
        """Store one more run; raises ``TfdynoError`` as ``prepare`` does."""
        with self._file.writing() as database:
            _insert(database, measurement_id, run)

    def finish(self, *measurement_ids: str) -> None:
        """Mark measurements as complete: ``unfinished`` finds them no more."""
        with self._file.writing() as database:
            marks = [(one,) for one in measurement_ids]
            database.executemany("UPDATE measurement SET finished = 1 WHERE id = ?", marks)

    def measurements(self) -> tuple[Measurement, ...]:
        """Return all that have a run, newest first; empty where the folder holds no results."""
        with self._file.reading() as database:
            rows = database.execute("SELECT noun, id FROM measurement ORDER BY number DESC")
            found = [self._whole(database, *row) for row in rows.fetchall()]
        return tuple(one for one in found if one.runs)

    def measurement(self, prefix: str = "") -> Measurement:
        """Return the one whose id begins so; the newest of all for an empty prefix.

        Raises:
            UsageError: There is none, or more than one.
        """
        if not self.path.exists():
            raise UsageError(f"{self.folder} holds no results", remedy="tfdyno bench makes them")
        with self._file.reading() as database:
            return self._whole(database, *self._one(database, prefix))

    def unfinished(self, key: str) -> tuple[Measurement, ...]:
        """Return the measurements of the newest session with this key that did not come to its end.

        Both sides of an A/B, in the order in which they were started; empty where there are none.
        """
        return self._newest_session(key, finished=0)

    def running(self, most: int = 20) -> tuple[Measurement, ...]:
        """Return the newest that did not come to their end: they run, or were ended early."""
        with self._file.reading() as database:
            query = (
                "SELECT noun, id FROM measurement WHERE finished = 0 ORDER BY number DESC LIMIT ?"
            )
            return tuple(self._whole(database, *row) for row in database.execute(query, (most,)))

    def holds_unfinished(self) -> bool:
        """Return whether anything here did not come to its end, whatever was asked."""
        with self._file.reading() as database:
            query = "SELECT EXISTS (SELECT 1 FROM measurement WHERE finished = 0)"
            return bool(database.execute(query).fetchone()[0])

    def finished(self, key: str) -> tuple[Measurement, ...]:
        """Return the same of the newest session with this key that came to its end."""
        return self._newest_session(key, finished=1)

    def _newest_session(self, key: str, *, finished: int) -> tuple[Measurement, ...]:
        with self._file.reading() as database:
            rows = database.execute(
                "SELECT noun, id FROM measurement WHERE key = ? AND finished = ? ORDER BY number",
                (key, finished),
            )
            found = [self._whole(database, *row) for row in rows.fetchall()]
        return tuple(one for one in found if one.session == found[-1].session)

    def _one(self, database: sqlite3.Connection, prefix: str) -> tuple[str, str]:
        """Return head and id of the one that is meant."""
        literal = "".join(f"\\{mark}" if mark in "%_\\" else mark for mark in prefix)
        found = database.execute(
            "SELECT noun, id FROM measurement WHERE id LIKE ? ESCAPE '\\' "
            "AND EXISTS (SELECT 1 FROM run WHERE measurement = id) ORDER BY number DESC LIMIT 9",
            (f"{literal}%",),
        ).fetchall()
        if not found:
            what = f"no measurement {prefix}" if prefix else "no measurement"
            raise UsageError(f"{self.folder} holds {what}")
        if prefix and len(found) > 1:
            names = ", ".join(str(row[1]) for row in found)
            raise UsageError(f"{prefix} is the beginning of several: {names}", remedy="give more")
        head, name = found[0]
        return str(head), str(name)

    def _whole(self, database: sqlite3.Connection, head: str, name: str) -> Measurement:
        rows = database.execute(
            "SELECT noun FROM run WHERE measurement = ? ORDER BY number", (name,)
        )
        runs = [from_json(row[0].encode(), BenchRun, where=str(self.path)) for row in rows]
        noun = from_json(head.encode(), Measurement, where=str(self.path))
        return replace(noun, runs=tuple(runs))


def _insert(database: sqlite3.Connection, measurement_id: str, run: BenchRun) -> None:
    database.execute(
        "INSERT INTO run (measurement, number, noun) SELECT ?, count(*), ? FROM run "
        "WHERE measurement = ?",
        (measurement_id, to_json(run).decode(), measurement_id),
    )
