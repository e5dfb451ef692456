"""Versions of models: rows in one SQLite file, artefacts in folders beside it.

The files come first and the row last, in one transaction: what a kill leaves is a copy that no row
names, which the next collection removes.
"""

from __future__ import annotations

import difflib
import itertools
from typing import TYPE_CHECKING

from tfdyno.core.codec import from_json, to_json
from tfdyno.core.errors import ToolError, UsageError
from tfdyno.core.model_version import (
    KEEP,
    PRODUCTION,
    Collected,
    ModelVersion,
    Promotion,
    VersionRecord,
    checked_name,
    collectable,
    in_use,
)
from tfdyno.store.model_files import ModelFiles
from tfdyno.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

    from tfdyno.core.model_version import ArtefactKind, Lineage

FILE = "models.sqlite"
SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE model (name TEXT PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE version (
    name TEXT NOT NULL REFERENCES model (name), number INTEGER NOT NULL, digest TEXT NOT NULL,
    label TEXT NOT NULL DEFAULT '', noun TEXT NOT NULL, PRIMARY KEY (name, number));
CREATE TABLE promotion (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, alias TEXT NOT NULL,
    noun TEXT NOT NULL);
CREATE INDEX version_by_digest ON version (digest);
"""


class ModelStore:
    """The models of one folder. Every change is one transaction."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; nothing is made yet."""
        self.folder = folder
        self._artefacts = ModelFiles(folder=folder)
        self._file = SqliteFile(
            path=folder / FILE, what="models", schema=_SCHEMA, version=SCHEMA_VERSION
        )

    def add(
        self,
        name: str,
        source: Path,
        *,
        kind: ArtefactKind,
        lineage: Lineage,
        added_at: str,
        label: str = "",
        without: str = "",
    ) -> tuple[ModelVersion, bool]:
        """Keep a file or a folder as the next version of a model.

        Files that are a version of it already make no new one. Of a folder, the file that is
        called ``without`` is left out: a time in it would make equal models two.

        Returns:
            The version, and whether it is new.

        Raises:
            UsageError: The name cannot be used, or the source not be read.
            ToolError: There is no room.
        """
        checked_name(name)
        with self._file.writing():  # before gigabytes are copied: whether it may be written
            pass
        with self._artefacts.shared():
            artefact = self._artefacts.put(source, kind, without=without)
            record = VersionRecord(artefact=artefact, lineage=lineage, added_at=added_at)
            with self._file.writing() as database:
                found = _by_digest(database, name, artefact.digest)
                version = found or _insert(database, name, record, label)
        return self.version(name, version), not found

    def names(self) -> tuple[str, ...]:
        """Of all models that have a version, by the alphabet."""
        return tuple(dict.fromkeys(one.name for one in self.versions()))

    def versions(self, name: str = "") -> tuple[ModelVersion, ...]:
        """Of one model, the oldest first; of all for an empty name.

        Raises:
            UsageError: There is no such model.
        """
        if not self._file.path.exists():
            if name:
                raise self._unknown(name, ())
            return ()
        with self._file.reading() as database:
            rows = database.execute(
                "SELECT name, number, label, noun FROM version WHERE ? IN ('', name) "
                "ORDER BY name, number",
                (name,),
            ).fetchall()
            piles = {one: _pile(database, one) for one in {row[0] for row in rows}}
            if name and not rows:
                raise self._unknown(name, _names(database))
        return tuple(self._whole(row, piles[row[0]]) for row in rows)

    def version(self, name: str, version: int) -> ModelVersion:
        """One version; its files are not looked at. Raises ``UsageError`` as ``find`` does."""
        every = self.versions(name)
        for one in every:
            if one.version == version:
                return one
        known = ", ".join(str(one.version) for one in every[-9:])
        more = "…, " if len(every) > 9 else ""
        raise UsageError(f"{name} has no version {version}", why=f"it has {more}{known}")

    def find(self, name: str, version: int | None = None) -> ModelVersion:
        """A version whose files are what was added; without a number the promoted, else the newest.

        Raises:
            UsageError: There is no such model or version; names what is near.
            ToolError: A file of it is missing or damaged; names the file.
        """
        if version is None:
            version = self.promoted(name) or self.versions(name)[-1].version
        found = self.version(name, version)
        faults = self._artefacts.faults(found.artefact)
        if faults:
            raise ToolError(
                f"{found.id} is damaged",
                why="; ".join(faults[:3]),
                remedy="add the same files again, which heals it, or take another version",
            )
        return found

    def faults(self, version: ModelVersion) -> tuple[str, ...]:
        """What is wrong with its files; empty: nothing."""
        return self._artefacts.faults(version.artefact)

    def promoted(self, name: str) -> int | None:
        """The version in use; None: none was promoted. Raises ``UsageError``: no such model."""
        return next((one.version for one in self.versions(name) if one.promoted), None)

    def before(self, name: str) -> int | None:
        """The version that a roll-back goes to; None: there is none."""
        if not self._file.path.exists():
            return None
        with self._file.reading() as database:
            return next(iter(_pile(database, name)[-2:-1]), None)

    def history(self, name: str) -> tuple[Promotion, ...]:
        """Promotions and roll-backs of a model, the oldest first."""
        if not self._file.path.exists():
            return ()
        with self._file.reading() as database:
            return _history(database, name)

    def promote(self, name: str, version: int, *, at: str) -> bool:
        """Let a version be the one in use; whether it was not yet.

        Raises:
            UsageError: There is no such version.
        """
        self.version(name, version)
        with self._file.writing() as database:
            if (name, version) not in _numbers(database, name):
                raise UsageError(f"{name}:{version} has just been removed")
            if _pile(database, name)[-1:] == (version,):
                return False
            _add_promotion(database, name, Promotion(action="promote", version=version, at=at))
        return True

    def roll_back(self, name: str, *, at: str) -> tuple[int, int]:
        """Go back to the version that was in use before; the numbers of both, new one first.

        Raises:
            UsageError: No version was in use before.
        """
        self.versions(name)
        with self._file.writing() as database:
            pile = _pile(database, name)
            if len(pile) < 2:
                why = f"{name}:{pile[0]} is the first" if pile else "none was ever promoted"
                raise UsageError(f"{name} has no version to go back to", why=why,
                                 remedy=f"tfdyno models promote {name}:V")  # fmt: skip
            _add_promotion(database, name, Promotion(action="rollback", version=pile[-2], at=at))
        return pile[-2], pile[-1]

    def set_label(self, name: str, version: int, label: str) -> ModelVersion:
        """Label a version, or take its label off; raises ``UsageError`` as ``version`` does."""
        self.version(name, version)
        with self._file.writing() as database:
            database.execute(
                "UPDATE version SET label = ? WHERE name = ? AND number = ?", (label, name, version)
            )
        return self.version(name, version)

    def collect(self, *, keep: int = KEEP, name: str = "", dry: bool = False) -> Collected:
        """Remove versions that are neither promoted, new nor labelled, and what kills left.

        Args:
            keep: So many of the newest of each model stay.
            name: Of one model; empty: of all.
            dry: Only say what would go.
        """
        self.versions(name)
        if not self._file.path.exists():
            return Collected(versions=(), freed_bytes=0)
        with self._artefacts.alone():
            every = self.versions(name)
            doomed = tuple(
                one for model in dict.fromkeys(one.name for one in every)
                for one in self._collectable(model, every, keep)
            )  # fmt: skip
            return self._removed(doomed, dry=dry)

    def remove(self, name: str, version: int | None = None, *, dry: bool = False) -> Collected:
        """Remove one version, or a whole model with its history.

        Raises:
            UsageError: There is none such, or it is in use and others are left.
        """
        self.versions(name)  # before anything is made: whether there is such a model
        with self._artefacts.alone():
            every = self.versions(name)
            doomed = every if version is None else (self.version(name, version),)
            if version is not None and doomed[0].promoted:
                raise UsageError(
                    f"{doomed[0].id} is the promoted version",
                    remedy="promote another first, or remove the whole model by its name",
                )
            return self._removed(doomed, dry=dry)

    def disk_bytes(self) -> int:
        """Of all artefacts, equal files counted once."""
        return self._artefacts.disk_bytes()

    def _collectable(
        self, name: str, every: Sequence[ModelVersion], keep: int
    ) -> tuple[ModelVersion, ...]:
        with self._file.reading() as database:
            pile = _pile(database, name)
        return collectable([one for one in every if one.name == name], pile, keep)

    def _removed(self, doomed: Sequence[ModelVersion], *, dry: bool) -> Collected:
        """Rows first: a kill between leaves files without rows, and no row without files."""
        gone = {one.id for one in doomed}
        kept = {one.artefact.digest for one in self.versions() if one.id not in gone}
        if not dry:
            with self._file.writing() as database:
                for one in doomed:
                    database.execute(
                        "DELETE FROM version WHERE name = ? AND number = ?", (one.name, one.version)
                    )
                for name in {one.name for one in doomed}:
                    if not _numbers(database, name):
                        database.execute("DELETE FROM promotion WHERE name = ?", (name,))
        freed_bytes = self._artefacts.remove(kept, dry=dry)
        return Collected(versions=tuple(doomed), freed_bytes=freed_bytes)

    def _whole(self, row: tuple[str, int, str, str], pile: tuple[int, ...]) -> ModelVersion:
        name, number, label, noun = row
        record = from_json(noun.encode(), VersionRecord, where=str(self._file.path))
        return ModelVersion(
            name=name,
            version=number,
            path=self._artefacts.path(record.artefact),
            artefact=record.artefact,
            lineage=record.lineage,
            added_at=record.added_at,
            label=label,
            promoted=pile[-1:] == (number,),
        )

    def _unknown(self, name: str, names: Sequence[str]) -> UsageError:
        near = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
        if near:
            remedy = f"did you mean {' or '.join(near)}?"
        elif names:
            remedy = f"there are {', '.join(names[:9])}{', …' if len(names) > 9 else ''}"
        else:
            remedy = "tfdyno models add PATH keeps one"
        return UsageError(f"{self.folder} has no model '{name}'", remedy=remedy)


def _insert(database: sqlite3.Connection, name: str, record: VersionRecord, label: str) -> int:
    """The number of the new row; those of removed versions do not come again."""
    database.execute(
        "INSERT INTO model (name, last) VALUES (?, 1) "
        "ON CONFLICT (name) DO UPDATE SET last = last + 1",
        (name,),
    )
    number = int(database.execute("SELECT last FROM model WHERE name = ?", (name,)).fetchone()[0])
    database.execute(
        "INSERT INTO version (name, number, digest, label, noun) VALUES (?, ?, ?, ?, ?)",
        (name, number, record.artefact.digest, label, to_json(record).decode()),
    )
    return number


def _by_digest(database: sqlite3.Connection, name: str, digest: str) -> int:
    """The newest version of a model with these files; 0: none."""
    row = database.execute(
        "SELECT max(number) FROM version WHERE name = ? AND digest = ?", (name, digest)
    ).fetchone()
    return int(row[0] or 0)


def _names(database: sqlite3.Connection) -> tuple[str, ...]:
    return tuple(row[0] for row in database.execute("SELECT DISTINCT name FROM version"))


def _numbers(database: sqlite3.Connection, name: str) -> set[tuple[str, int]]:
    rows = database.execute("SELECT name, number FROM version WHERE name = ?", (name,))
    return {(row[0], int(row[1])) for row in rows}


def _history(database: sqlite3.Connection, name: str) -> tuple[Promotion, ...]:
    rows = database.execute(
        "SELECT noun FROM promotion WHERE name = ? AND alias = ? ORDER BY number",
        (name, PRODUCTION),
    )
    return tuple(from_json(row[0].encode(), Promotion, where=FILE) for row in rows)


def _pile(database: sqlite3.Connection, name: str) -> tuple[int, ...]:
    """Versions that were promoted and are still there, the one in use last."""
    there = {number for _, number in _numbers(database, name)}
    pile = [one for one in in_use(_history(database, name)) if one in there]
    return tuple(one for one, _ in itertools.groupby(pile))


def _add_promotion(database: sqlite3.Connection, name: str, one: Promotion) -> None:
    database.execute(
        "INSERT INTO promotion (name, alias, noun) VALUES (?, ?, ?)",
        (name, PRODUCTION, to_json(one).decode()),
    )
