"""Measurements on disk: one SQLite file that several writers share and a kill leaves whole."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tfdyno.core.codec import from_json, to_json
from tfdyno.core.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.measurement import BenchRun, Measurement

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "results.sqlite"
SCHEMA_VERSION = 1
PATIENCE_S = 30.0
"""How long a writer waits for another one; a transaction takes milliseconds."""
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

    def prepare(self) -> None:
        """Make the folder and its file, and write to it once, before minutes are measured.

        Raises:
            UsageError: The folder is a file, cannot be written, or holds another program's file.
            ToolError: The disk is full.
        """
        with self._writing() as database:
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
        with self._writing() as database:
            database.execute(
                "INSERT INTO measurement (id, key, noun) VALUES (?, ?, ?)",
                (measurement.id, key, head),
            )
            for run in measurement.runs:
                _insert(database, measurement.id, run)

    def add_run(self, measurement_id: str, run: BenchRun) -> None:
        """Store one more run; raises ``TfdynoError`` as ``prepare`` does."""
        with self._writing() as database:
            _insert(database, measurement_id, run)

    def finish(self, *measurement_ids: str) -> None:
        """Mark measurements as complete: ``unfinished`` finds them no more."""
        with self._writing() as database:
            marks = [(one,) for one in measurement_ids]
            database.executemany("UPDATE measurement SET finished = 1 WHERE id = ?", marks)

    def measurements(self) -> tuple[Measurement, ...]:
        """All that have a run, newest first; empty where the folder holds no results."""
        if not self.path.exists():
            return ()
        with self._reading() as database:
            rows = database.execute("SELECT noun, id FROM measurement ORDER BY number DESC")
            found = [self._whole(database, *row) for row in rows.fetchall()]
        return tuple(one for one in found if one.runs)

    def measurement(self, prefix: str = "") -> Measurement:
        """The one whose id begins so; the newest of all for an empty prefix.

        Raises:
            UsageError: There is none, or more than one.
        """
        if not self.path.exists():
            raise UsageError(f"{self.folder} holds no results", remedy="tfdyno bench makes them")
        with self._reading() as database:
            return self._whole(database, *self._one(database, prefix))

    def unfinished(self, key: str) -> tuple[Measurement, ...]:
        """The measurements of the newest session with this key that did not come to its end.

        Both sides of an A/B, in the order in which they were started; empty where there are none.
        """
        return self._newest_session(key, finished=0)

    def finished(self, key: str) -> tuple[Measurement, ...]:
        """The same of the newest session with this key that came to its end."""
        return self._newest_session(key, finished=1)

    def _newest_session(self, key: str, *, finished: int) -> tuple[Measurement, ...]:
        if not self.path.exists():
            return ()
        with self._reading() as database:
            rows = database.execute(
                "SELECT noun, id FROM measurement WHERE key = ? AND finished = ? ORDER BY number",
                (key, finished),
            )
            found = [self._whole(database, *row) for row in rows.fetchall()]
        return tuple(one for one in found if one.session == found[-1].session)

    def _one(self, database: sqlite3.Connection, prefix: str) -> tuple[str, str]:
        """Head and id of the one that is meant."""
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

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, kept where the block ends without an error."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _no_folder(self.folder, error) from None
        with self._told(), contextlib.closing(_opened(self.path, "rwc")) as database:
            _share(database)
            database.execute("PRAGMA synchronous = FULL")
            database.execute("PRAGMA foreign_keys = ON")
            database.execute("BEGIN IMMEDIATE")
            try:
                self._make_tables(database)
                yield database
                database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that shows one state; also of a folder that may not be written."""
        with self._told(), contextlib.closing(_readable(self.path)) as database:
            database.execute("BEGIN")
            if self._check_version(database) == SCHEMA_VERSION:
                yield database
                return
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            database.executescript(_SCHEMA)  # another process is just making the file
            yield database

    def _make_tables(self, database: sqlite3.Connection) -> None:
        if self._check_version(database) == SCHEMA_VERSION:
            return
        for statement in filter(str.strip, _SCHEMA.split(";")):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check_version(self, database: sqlite3.Connection) -> int:
        """The schema's version, 0 for an empty file; refuses another program's."""
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise UsageError(f"{self.path} was written by a newer tfdyno", remedy="update tfdyno")
        if version == 0 and tables:
            raise UsageError(f"{self.path} is not a file of results of tfdyno",
                             remedy="name another folder")  # fmt: skip
        return version

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _sentence(self.path, error) from None


def _insert(database: sqlite3.Connection, measurement_id: str, run: BenchRun) -> None:
    database.execute(
        "INSERT INTO run (measurement, number, noun) SELECT ?, count(*), ? FROM run "
        "WHERE measurement = ?",
        (measurement_id, to_json(run).decode(), measurement_id),
    )


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    place = f"file:{quote(str(path.absolute()))}?{mode if '=' in mode else f'mode={mode}'}"
    return sqlite3.connect(place, uri=True, timeout=PATIENCE_S, isolation_level=None)


def _share(database: sqlite3.Connection) -> None:
    """Write-ahead log; SQLite does not itself wait for others while it changes to that."""
    deadline_s = time.monotonic() + PATIENCE_S
    while database.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _busy(error) or time.monotonic() > deadline_s:
                raise
            time.sleep(0.02)


def _readable(path: Path) -> sqlite3.Connection:
    """Open for reading; a folder that may not be written needs a file that nobody writes to."""
    database = _opened(path, "ro")
    try:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        database.close()
        if _busy(error):
            raise
        return _opened(path, "immutable=1")
    return database


def _busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED,
    }  # fmt: skip


def _no_folder(folder: Path, error: OSError) -> UsageError:
    is_file = isinstance(error, FileExistsError | NotADirectoryError)
    why = "there is a file of that name" if is_file else error.strerror or str(error)
    return UsageError(f"results cannot be kept in {folder}", why=why, remedy="name another folder")


def _sentence(path: Path, error: sqlite3.Error) -> TfdynoError:
    """What happened to the file, in words of the user's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return ToolError(f"results cannot be written to {path}", why="the disk is full")
    if code == sqlite3.SQLITE_IOERR:
        why = "the disk did not take or give the data: it may be full or broken"
        return ToolError(f"results cannot be written to {path}", why=why)
    if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        remedy = "move it away or name another folder"
        return UsageError(f"{path} is not a file of results of tfdyno", why=str(error),
                          remedy=remedy)  # fmt: skip
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return UsageError(f"results cannot be kept in {path.parent}",
                          why="it may not be written to",
                          remedy="name another folder")  # fmt: skip
    if _busy(error):
        why = f"another process has held it for {PATIENCE_S:.0f} s"
        return ToolError(f"results cannot be written to {path}", why=why)
    return ToolError(f"the results in {path} cannot be used", why=str(error))
