"""A loss that is not a number ends the training at the last good checkpoint, with the cause."""

from __future__ import annotations

import functools
import math

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_around", "lost")
hidden = functools.partial(case, "training_around", "hidden")


def test_the_place_in_the_data_is_named() -> None:
    found = seen()
    assert found["stopped"] == "NaN loss"
    assert "inputs" in found["summary"]
    assert any("feature 2" in text for text in found["evidence"])
    assert any("batch 7 of the epoch: loss is not finite" in text for text in found["evidence"])


def test_the_last_good_checkpoint_is_kept_and_no_model_is_written() -> None:
    found = seen()
    assert found["kept"][-1] == "step-000000006.json"  # sample 50 is in batch 7
    assert found["model"] == ""
    assert "The last good checkpoint is /checkpoints/step-000000006.json." in found["notes"]


def test_batches_that_lost_the_number_are_no_overflows() -> None:
    assert seen()["skipped"] == 0
    assert seen()["updates"] >= 7


def test_weights_that_are_lost_behind_a_finite_loss_end_it_with_their_epoch() -> None:
    found = hidden()["epoch"]
    assert (found["stopped"], found["model"], found["epochs"]) == ("NaN weights", "", 1)
    assert all(map(math.isfinite, found["losses"]))
    assert found["kept"] == ["step-000000000.json"]
    assert "inputs" in found["summary"]
    assert found["evidence"][0] == (
        "sequential/dense/kernel is not finite at step 9 of epoch 1, though the loss is a number"
    )
    assert any("batch 7 of the epoch: sequential/dense/k" in text for text in found["evidence"])


def test_no_checkpoint_of_lost_weights_is_written() -> None:
    found = hidden()["saving"]
    assert found["kept"][-1] == "step-000000006.json"
    assert "at step 8 of epoch 1" in found["evidence"][0]


def test_lost_weights_are_looked_for_without_a_folder_too() -> None:
    found = hidden()["without_folder"]
    assert found["stopped"] == "NaN weights"
    assert "weights were not finite already" in found["summary"]


def test_without_a_folder_the_cause_is_looked_for_too() -> None:
    assert seen()["without_folder"] == ["NaN loss", "error"]
