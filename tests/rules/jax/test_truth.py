"""The verdicts on scripts of many kinds against what was seen when they were run."""

from __future__ import annotations

import pytest
from tests.rules.jax.move_truth import (
    FOLDER,
    answer_of,
    measured,
    migrated,
    scripts,
    stored,
    verdict,
)


def test_every_script_stands_in_the_table_and_runs_on_tensorflow() -> None:
    assert [row["script"] for row in stored()] == [path.name for path in scripts()]
    assert len(scripts()) >= 20
    assert {row["tensorflow"] for row in stored()} == {"runs"}


def test_the_verdicts_are_right_and_none_that_fails_moves() -> None:
    told = {row["script"]: verdict(FOLDER / row["script"]) for row in stored()}
    wrong = {row["script"] for row in stored() if told[row["script"]] != answer_of(row)}
    assert len(wrong) <= len(told) // 20, wrong
    moves = {name for name, answer in told.items() if answer == "moves"}
    assert moves <= {row["script"] for row in stored() if row["jax"] == "runs"}


def test_what_migrate_writes_runs() -> None:
    written = {path.name for path in scripts() if migrated(path)}
    assert written == {row["script"] for row in stored() if row["migrated"] != "none"}
    assert {row["migrated"] for row in stored()} == {"runs", "none"}


@pytest.mark.slow
@pytest.mark.tf
def test_the_table_is_what_is_seen_today() -> None:
    assert measured() == stored()
