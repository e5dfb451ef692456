"""One SQLite file that several writers share and a kill leaves whole."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 30.0
"""How long a writer waits for another one; a transaction takes milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteFile:
    """A file with its tables. Each block is one transaction on a connection of its own."""

    path: Path
    what: str
    """It holds, in the plural, for messages: ``results``."""
    schema: str
    """Statements that make its tables, with semicolons between them."""
    version: int
    """The version of the schema; at least 1."""

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Make one transaction, kept where the block ends without an error.

        Raises:
            UsageError: The folder is a file, cannot be written, or holds another program's file.
            ToolError: The disk is full.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._no_folder(error) from None
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
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Connect to one state; also of a folder that may not be written, or where no file is."""
        if self.path.exists():
            with self._told(), contextlib.closing(_readable(self.path)) as database:
                database.execute("BEGIN")
                if self._check_version(database) == self.version:
                    yield database
                    return
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            database.executescript(self.schema)  # nobody made it, or another process is just at it
            yield database

    def _make_tables(self, database: sqlite3.Connection) -> None:
        if self._check_version(database) == self.version:
            return
        for statement in filter(str.strip, self.schema.split(";")):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {self.version}")

    def _check_version(self, database: sqlite3.Connection) -> int:
        """Return the schema's version, 0 for an empty file; refuses another program's."""
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version > self.version:
            raise UsageError(f"{self.path} was written by a newer tfdyno", remedy="update tfdyno")
        if version == 0 and tables:
            raise UsageError(f"{self.path} is not a file of {self.what} of tfdyno",
                             remedy="name another folder")  # fmt: skip
        return version

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._sentence(error) from None

    def _no_folder(self, error: OSError) -> UsageError:
        is_file = isinstance(error, FileExistsError | NotADirectoryError)
        why = "there is a file of that name" if is_file else error.strerror or str(error)
        what = f"{self.what} cannot be kept in {self.path.parent}"
        return UsageError(what, why=why, remedy="name another folder")

    def _sentence(self, error: sqlite3.Error) -> TfdynoError:
        """Return what happened to the file, in words of the user's."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        unwritten = f"{self.what} cannot be written to {self.path}"
        if code == sqlite3.SQLITE_FULL:
            return ToolError(unwritten, why="the disk is full")
        if code == sqlite3.SQLITE_IOERR:
            why = "the disk did not take or give the data: it may be full or broken"
            return ToolError(unwritten, why=why)
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            what = f"{self.path} is not a file of {self.what} of tfdyno"
            remedy = "move it away or name another folder"
            return UsageError(what, why=str(error), remedy=remedy)
        if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
            return UsageError(f"{self.what} cannot be kept in {self.path.parent}",
                              why="it may not be written to",
                              remedy="name another folder")  # fmt: skip
        if _busy(error):
            why = f"another process has held it for {PATIENCE_S:.0f} s"
            return ToolError(unwritten, why=why)
        return ToolError(f"the {self.what} in {self.path} cannot be used", why=str(error))


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    place = f"file:{quote(str(path.absolute()))}?{mode if '=' in mode else f'mode={mode}'}"
    return sqlite3.connect(place, uri=True, timeout=PATIENCE_S, isolation_level=None)


def _share(database: sqlite3.Connection) -> None:
    """Set the write-ahead log; SQLite does not itself wait for others while it changes to that."""
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
