"""A model is built from the shapes of its data, with all that training needs."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_parts", "built")


def test_all_variables_are_there_before_the_first_batch() -> None:
    assert seen()["same"]
    assert seen()["slots"] == 2 + 2 * 4  # count and rate, two moments of four weights
    assert seen()["metrics"] == 2 + 2 + 4  # loss, mae, auc


def test_whether_every_batch_is_full_is_said_by_the_shapes() -> None:
    assert seen()["full"] == [False, True]


def test_the_size_of_a_batch_is_known_from_shapes_or_arguments() -> None:
    assert seen()["samples"] == [32, 8]


def test_a_budget_is_not_planned_for_batches_of_nobody_knows_how_many_samples() -> None:
    assert seen()["budget"] == (
        "remat = 1KiB cannot be planned: the data do not say how many samples a batch has; batch "
        "them with drop_remainder, or use blocks."
    )
    assert any("(activations of one sample " in note for note in seen()["blind"])
