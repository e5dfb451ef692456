"""store/model_rows: numbers do not come again, and a pile skips what is gone."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.deploy.model_version import (
    Artefact,
    Lineage,
    ModelVersion,
    Promotion,
    VersionRecord,
)
from tfdyno.store import model_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD = VersionRecord(
    artefact=Artefact(kind="keras", name="model.keras", digest="d", files=()),
    lineage=Lineage(),
    added_at="now",
)


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    found = sqlite3.connect(":memory:")
    found.executescript(model_rows.SCHEMA)
    yield found
    found.close()


def version(number: int) -> ModelVersion:
    return ModelVersion(name="cnn", version=number, path=Path(), artefact=RECORD.artefact,
                        lineage=RECORD.lineage, added_at="now")  # fmt: skip


def promoted(database: sqlite3.Connection, *numbers: int) -> None:
    for number in numbers:
        one = Promotion(action="promote", version=number, at="now")
        model_rows.add_promotion(database, "cnn", one)


def test_a_number_does_not_come_again(database: sqlite3.Connection) -> None:
    assert [model_rows.insert(database, "cnn", RECORD, "") for _ in range(2)] == [1, 2]
    assert model_rows.by_digest(database, "cnn", "d") == 2
    model_rows.delete(database, [version(2)])
    assert model_rows.insert(database, "cnn", RECORD, "") == 3
    assert model_rows.numbers(database, "cnn") == {("cnn", 1), ("cnn", 3)}
    assert model_rows.by_digest(database, "cnn", "other") == 0


def test_what_is_gone_is_not_gone_back_to(database: sqlite3.Connection) -> None:
    for _ in range(3):
        model_rows.insert(database, "cnn", RECORD, "")
    promoted(database, 1, 2, 1, 3)
    model_rows.delete(database, [version(2)])
    assert model_rows.pile(database, "cnn") == (1, 3)
    assert [one.version for one in model_rows.history(database, "cnn")] == [1, 2, 1, 3]


def test_the_history_goes_with_the_last_version(database: sqlite3.Connection) -> None:
    model_rows.insert(database, "cnn", RECORD, "")
    promoted(database, 1)
    assert model_rows.names(database) == ("cnn",)
    model_rows.delete(database, [version(1)])
    assert (model_rows.names(database), model_rows.history(database, "cnn")) == ((), ())
