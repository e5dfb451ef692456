"""store/sqlite_file: a block is kept whole or not at all (more of it in test_results)."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> SqliteFile:
    schema = "CREATE TABLE a (n INTEGER UNIQUE);\nCREATE INDEX b ON a (n);\n"
    return SqliteFile(path=tmp_path / "deep" / "x.sqlite", what="things", schema=schema, version=1)


def numbers(file: SqliteFile) -> list[int]:
    with file.reading() as database:
        return [row[0] for row in database.execute("SELECT n FROM a ORDER BY n")]


def test_a_block_that_fails_leaves_what_was_there(file: SqliteFile) -> None:
    with file.writing() as database:
        database.execute("INSERT INTO a VALUES (1)")
    with pytest.raises(ToolError, match=r"the things in .* cannot be used: UNIQUE"):
        insert_twice(file)
    assert numbers(file) == [1]


def insert_twice(file: SqliteFile) -> None:
    with file.writing() as database:
        database.execute("INSERT INTO a VALUES (2)")
        database.execute("INSERT INTO a VALUES (2)")


def test_messages_name_what_the_file_holds(file: SqliteFile) -> None:
    file.path.parent.mkdir()
    with sqlite3.connect(file.path) as database:
        database.execute("CREATE TABLE cookies (name)")
    with pytest.raises(UsageError, match="is not a file of things of tfdyno"):
        numbers(file)


def test_a_folder_that_is_a_file_is_refused(file: SqliteFile) -> None:
    file.path.parent.write_text("mine")
    with pytest.raises(UsageError, match=r"things cannot be kept in .*: there is a file of that"):
        insert_twice(file)
