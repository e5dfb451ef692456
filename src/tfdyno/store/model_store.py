"""Versions of models: rows in one SQLite file, artefacts in folders beside it.

The files come first and the row last, in one transaction: what a kill leaves is a copy that no row
names, which the next collection removes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_json
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.settings import did_you_mean
from tfdyno.core.deploy.model_version import (
    KEEP,
    Collected,
    ModelVersion,
    Promotion,
    VersionRecord,
    checked_name,
    collectable,
)
from tfdyno.store import model_rows
from tfdyno.store.model_files import ModelFiles
from tfdyno.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tfdyno.core.deploy.model_version import ArtefactKind, Lineage


class ModelStore:
    """The models of one folder. Every change is one transaction."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; nothing is made yet."""
        self.folder = folder
        self._artefacts = ModelFiles(folder=folder)
        self._file = SqliteFile(
            path=folder / model_rows.FILE,
            what="models",
            schema=model_rows.SCHEMA,
            version=model_rows.SCHEMA_VERSION,
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
                found = model_rows.by_digest(database, name, artefact.digest)
                version = found or model_rows.insert(database, name, record, label)
        return self.version(name, version), not found

    def names(self) -> tuple[str, ...]:
        """Name all models that have a version, by the alphabet."""
        return tuple(dict.fromkeys(one.name for one in self.versions()))

    def versions(self, name: str = "") -> tuple[ModelVersion, ...]:
        """List the versions of one model, the oldest first; of all for an empty name.

        Raises:
            UsageError: There is no such model.
        """
        with self._file.reading() as database:
            return self._known(database, name)

    def version(self, name: str, version: int) -> ModelVersion:
        """Return one version, files not looked at. Raises ``UsageError`` as ``find`` does."""
        return _numbered(self.versions(name), name, version)

    def find(self, name: str, version: int | None = None) -> ModelVersion:
        """Find a version with unchanged files; without a number the promoted, else the newest.

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
        """Return what is wrong with its files; empty: nothing."""
        return self._artefacts.faults(version.artefact)

    def promoted(self, name: str) -> int | None:
        """Return the version in use; None: none. Raises ``UsageError``: no such model."""
        return next((one.version for one in self.versions(name) if one.promoted), None)

    def before(self, name: str) -> int | None:
        """Return the version that a roll-back goes to; None: there is none."""
        with self._file.reading() as database:
            return next(iter(model_rows.pile(database, name)[-2:-1]), None)

    def history(self, name: str) -> tuple[Promotion, ...]:
        """Return promotions and roll-backs of a model, the oldest first."""
        with self._file.reading() as database:
            return model_rows.history(database, name)

    def promote(self, name: str, version: int, *, at: str) -> bool:
        """Let a version be the one in use; whether it was not yet.

        Raises:
            UsageError: There is no such version.
        """
        self.version(name, version)
        with self._file.writing() as database:
            if (name, version) not in model_rows.numbers(database, name):
                raise UsageError(f"{name}:{version} has just been removed")
            if model_rows.pile(database, name)[-1:] == (version,):
                return False
            one = Promotion(action="promote", version=version, at=at)
            model_rows.add_promotion(database, name, one)
        return True

    def roll_back(self, name: str, *, at: str) -> tuple[int, int]:
        """Go back to the version that was in use before; the numbers of both, new one first.

        Raises:
            UsageError: No version was in use before.
        """
        self.versions(name)
        with self._file.writing() as database:
            pile = model_rows.pile(database, name)
            if len(pile) < 2:
                why = f"{name}:{pile[0]} is the first" if pile else "none was ever promoted"
                raise UsageError(f"{name} has no version to go back to", why=why,
                                 remedy=f"tfdyno models promote {name}:V")  # fmt: skip
            one = Promotion(action="rollback", version=pile[-2], at=at)
            model_rows.add_promotion(database, name, one)
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

        def doomed(database: sqlite3.Connection) -> tuple[ModelVersion, ...]:
            every = self._versions(database, name)
            return tuple(
                one for model in dict.fromkeys(one.name for one in every)
                for one in collectable([each for each in every if each.name == model],
                                       model_rows.pile(database, model), keep)
            )  # fmt: skip

        return self._removed(doomed, dry=dry)

    def remove(self, name: str, version: int | None = None, *, dry: bool = False) -> Collected:
        """Remove one version, or a whole model with its history.

        Raises:
            UsageError: There is none such, or it is in use and others are left.
        """
        self.versions(name)  # before anything is made: whether there is such a model

        def doomed(database: sqlite3.Connection) -> tuple[ModelVersion, ...]:
            every = self._known(database, name)
            if version is None:
                return every
            one = _numbered(every, name, version)
            if one.promoted:
                raise UsageError(
                    f"{one.id} is the promoted version",
                    remedy="promote another first, or remove the whole model by its name",
                )
            return (one,)

        return self._removed(doomed, dry=dry)

    def disk_bytes(self) -> int:
        """Sum the bytes of all artefacts, equal files counted once."""
        return self._artefacts.disk_bytes()

    def _removed(
        self, choose: Callable[[sqlite3.Connection], tuple[ModelVersion, ...]], *, dry: bool
    ) -> Collected:
        """Remove what is chosen in the transaction that removes it: until then it may be promoted.

        Rows first: a kill between leaves files without rows, and no row without files.
        """
        with self._artefacts.alone():
            with self._file.reading() if dry else self._file.writing() as database:
                doomed = choose(database)
                gone = {one.id for one in doomed}
                left = [one for one in self._versions(database) if one.id not in gone]
                if not dry:
                    model_rows.delete(database, doomed)
            kept = {one.artefact.digest for one in left}
            freed_bytes = self._artefacts.remove(kept, dry=dry)
        return Collected(versions=doomed, freed_bytes=freed_bytes)

    def _known(self, database: sqlite3.Connection, name: str) -> tuple[ModelVersion, ...]:
        """Do as ``_versions``; raises ``UsageError`` for the name of no model."""
        found = self._versions(database, name)
        if name and not found:
            raise self._unknown(name, model_rows.names(database))
        return found

    def _versions(self, database: sqlite3.Connection, name: str = "") -> tuple[ModelVersion, ...]:
        rows = database.execute(
            "SELECT name, number, label, noun FROM version WHERE ? IN ('', name) "
            "ORDER BY name, number",
            (name,),
        ).fetchall()
        piles = {one: model_rows.pile(database, one) for one in {row[0] for row in rows}}
        return tuple(self._whole(row, piles[row[0]]) for row in rows)

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
        there = "tfdyno models add PATH keeps one"
        if names:
            there = f"there are {', '.join(names[:9])}{', …' if len(names) > 9 else ''}"
        remedy = did_you_mean(name, names, most=2, otherwise=there)
        return UsageError(f"{self.folder} has no model '{name}'", remedy=remedy)


def _numbered(every: Sequence[ModelVersion], name: str, version: int) -> ModelVersion:
    """Return the version of that number; raises ``UsageError`` with those that there are."""
    for one in every:
        if one.version == version:
            return one
    known = ", ".join(str(one.version) for one in every[-9:])
    more = "…, " if len(every) > 9 else ""
    raise UsageError(f"{name} has no version {version}", why=f"it has {more}{known}")
