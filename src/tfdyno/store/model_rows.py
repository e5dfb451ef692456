"""The rows of the model store: its tables, and what is read from and written to them.

Each function works within the transaction of its caller.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.deploy.model_version import PRODUCTION, Promotion, in_use

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from tfdyno.core.deploy.model_version import ModelVersion, VersionRecord

FILE = "models.sqlite"
SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE model (name TEXT PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE version (
    name TEXT NOT NULL REFERENCES model (name), number INTEGER NOT NULL, digest TEXT NOT NULL,
    label TEXT NOT NULL DEFAULT '', noun TEXT NOT NULL, PRIMARY KEY (name, number));
CREATE TABLE promotion (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, alias TEXT NOT NULL,
    noun TEXT NOT NULL);
CREATE INDEX version_by_digest ON version (digest);
"""


def delete(database: sqlite3.Connection, doomed: Sequence[ModelVersion]) -> None:
    """Delete the rows of versions, and the history of a model that has none left."""
    for one in doomed:
        database.execute(
            "DELETE FROM version WHERE name = ? AND number = ?", (one.name, one.version)
        )
    for name in {one.name for one in doomed}:
        if not numbers(database, name):
            database.execute("DELETE FROM promotion WHERE name = ?", (name,))


def insert(database: sqlite3.Connection, name: str, record: VersionRecord, label: str) -> int:
    """Add a row; its number: those of removed versions do not come again."""
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


def by_digest(database: sqlite3.Connection, name: str, digest: str) -> int:
    """Return the newest version of a model with these files; 0: none."""
    row = database.execute(
        "SELECT max(number) FROM version WHERE name = ? AND digest = ?", (name, digest)
    ).fetchone()
    return int(row[0] or 0)


def names(database: sqlite3.Connection) -> tuple[str, ...]:
    """Name all models that have a version."""
    return tuple(row[0] for row in database.execute("SELECT DISTINCT name FROM version"))


def numbers(database: sqlite3.Connection, name: str) -> set[tuple[str, int]]:
    """Name and number of every version of a model."""
    rows = database.execute("SELECT name, number FROM version WHERE name = ?", (name,))
    return {(row[0], int(row[1])) for row in rows}


def history(database: sqlite3.Connection, name: str) -> tuple[Promotion, ...]:
    """Return promotions and roll-backs of a model, the oldest first."""
    rows = database.execute(
        "SELECT noun FROM promotion WHERE name = ? AND alias = ? ORDER BY number",
        (name, PRODUCTION),
    )
    return tuple(from_json(row[0].encode(), Promotion, where=FILE) for row in rows)


def pile(database: sqlite3.Connection, name: str) -> tuple[int, ...]:
    """Return versions that were promoted and are still there, the one in use last."""
    there = {number for _, number in numbers(database, name)}
    found = [one for one in in_use(history(database, name)) if one in there]
    return tuple(one for one, _ in itertools.groupby(found))


def add_promotion(database: sqlite3.Connection, name: str, one: Promotion) -> None:
    """Write one more line of the history."""
    database.execute(
        "INSERT INTO promotion (name, alias, noun) VALUES (?, ?, ?)",
        (name, PRODUCTION, to_json(one).decode()),
    )
