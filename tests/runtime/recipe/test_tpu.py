"""TPUStrategy: where no TPU is, that is one sentence; what slows TPUs down is told."""

from __future__ import annotations

import csv

import pytest
from tests.runtime.forks import forked

from tfdyno.catalog.software import releases as known_releases
from tfdyno.runtime.recipe.strategy import REMEDY, TABLE, tpu_notes, tpu_releases, why_none

NOWHERE = """
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.recipe.strategy import make_strategy
try:
    make_strategy(Recipe(strategy="tpu"))
except UsageError as error:
    print(error)
"""


def test_every_release_is_one_of_tensorflow_and_has_a_source() -> None:
    with TABLE.open(newline="") as lines:
        assert all(row["source"] for row in csv.DictReader(lines, strict=True))
    assert set(tpu_releases()) < set(known_releases())


@pytest.mark.parametrize(
    ("version", "is_built"),
    [("2.20.0", True), ("2.16.2", True), ("2.21.0", False), ("2.9.1", False)],
)
def test_a_tensorflow_that_is_not_built_for_tpus_is_named(version: str, is_built: bool) -> None:
    assert (why_none(version) == "") == is_built


def test_what_slows_tpus_down_is_told() -> None:
    assert tpu_notes(50, is_always_full=True) == []
    (several,) = tpu_notes(1, is_always_full=True)
    assert "steps_per_execution" in several
    (full,) = tpu_notes(20, is_always_full=False)
    assert "drop_remainder=True" in full


@pytest.mark.tf
def test_without_a_tpu_the_run_ends_with_a_sentence() -> None:
    said = forked(NOWHERE)
    assert "TensorFlow sees no TPU here" in said
    assert REMEDY in said
