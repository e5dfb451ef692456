"""What a training left behind is counted and kept."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_parts", "outcome")


def test_steps_updates_and_sizes_are_counted() -> None:
    found = seen()["whole"]
    assert found["counts"] == [2, 16, 4, 0]
    assert found["size"] == [1, 8, 6 * 5 + 5 + 5 + 1]
    assert found["seed"] == 5
    assert found["speed"]
    assert found["memory"]


def test_what_was_asked_stands_beside_what_is_reported() -> None:
    assert seen()["whole"]["applied"] == {
        "execution": ["graph", "graph"], "accumulation": ["4", "4"], "ema": ["0.9", "0.9"],
        "clip_norm": ["0.5", "0.5"],
    }  # fmt: skip
    assert seen()["process"] == {  # what was never set is told as it is
        "precision": ["tf32", "float32, TF32 on"], "devices": ["1", "1"],
        "threads_inter": ["3", "0"], "visible_devices": ["-1", "no cards"],
        "deterministic": ["true", "false"],
    }  # fmt: skip


def test_a_policy_whose_name_went_when_the_model_was_saved_is_left_out() -> None:
    """Keras takes the names of the policies of a quantized model when it saves them in a map."""
    assert seen()["policies"] == ["float32, mixed_float16", "float32"]


def test_the_model_is_kept_with_the_weights_of_the_end() -> None:
    found = seen()["whole"]
    assert found["model"] == "model.keras"
    assert found["apart"] == 0.0
    assert found["files"] == ["checkpoints", "model.keras"]


def test_the_last_checkpoints_are_named() -> None:
    assert seen()["whole"]["checkpoints"] == ["step-000000008.json", "step-000000016.json"]


def test_a_training_that_was_stopped_leaves_no_model() -> None:
    assert seen()["stopped"] == ["SIGTERM", 0, 4, "", False]


def test_an_update_that_an_overflow_skipped_is_counted() -> None:
    assert seen()["overflow"] == [8, 7, 1]


def test_the_end_of_data_without_a_length_is_no_batch() -> None:
    assert seen()["no_length"] == [27, 27, 0]  # steps, updates, skipped
