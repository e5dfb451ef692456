"""A training told to TensorBoard learns the same."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_around", "board")


def test_scalars_of_epochs_and_norms_of_layers_are_written() -> None:
    tags = seen()["tags"]
    assert {"epoch_loss", "epoch_mae", "epoch_learning_rate"} <= set(tags["train"])
    assert any(tag.startswith("gradient_norm/") for tag in tags["train"])
    assert any(tag.startswith("activation_rms/") for tag in tags["train"])
    assert tags["validation"] == ["epoch_loss", "epoch_mae"]


def test_what_is_learned_does_not_change() -> None:
    assert seen()["same"]


def test_nothing_is_written_where_nothing_is_asked_for() -> None:
    assert seen()["has_none"]
