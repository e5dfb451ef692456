"""The recipe's strategy in place of those that the user's code makes."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf


def test_without_one_in_the_recipe_nothing_is_replaced() -> None:
    assert facts()["left_alone"] is True


def test_single_means_tensorflows_own_for_one_device() -> None:
    assert facts()["single"] == ["_DefaultDistributionStrategy", 1, "_DefaultDistributionStrategy"]


def test_every_other_becomes_the_recipes_and_scopes_nest() -> None:
    assert facts()["same"] == [True, True]
    assert facts()["is_one"] is False  # and no error: it is asked of a class


def test_each_kind_is_told_once_and_tensorflow_has_its_own_again() -> None:
    assert facts()["strategy_notes"] == [
        "The code makes a MirroredStrategy; strategy = single of the recipe holds.",
        "The code makes a MultiWorkerMirroredStrategy; strategy = mirrored of the recipe holds.",
    ]
    assert facts()["strategy_restored"] is True
