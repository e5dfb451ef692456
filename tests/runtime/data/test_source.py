"""The data of scripts, functions and tasks, reached without training."""

from __future__ import annotations

import pytest
from tests.runtime.feed_looks import found

pytestmark = pytest.mark.tf


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("script fit", "fit dataset 4 10 "),
        ("fit of 5", "fit dataset 5 8 The last batch() of the dataset makes batches"),
        ("script temporary", "temporary dataset 4 0 "),  # its folder is gone when fit returns
        ("function pair", "pair dataset 4 10 "),
        ("function arrays", "arrays arrays 32 2 "),
        ("function alone", "alone dataset 4 10 "),
        ("function model:alone", "model dataset 4 10 "),
    ],
)
def test_the_data_is_reached_in_place(what: str, told: str) -> None:
    assert found()[what].startswith(told)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("no_data", "net is trained without data: there is no input pipeline"),
        ("of_set", "net is trained on a set, which Keras does not read: Unrecognized data type"),
        ("script none", "has no call 1 of fit: it ended without fit"),
        ("script fails", "line 5: ValueError: Dimension 1 in both shapes must be equal"),
        ("function bare", "mine.py:bare returns no data"),
        ("function lost", "has no function 'lost'"),
        ("application", "keras:ResNet50 brings no data"),
    ],
)
def test_what_has_no_data_is_refused_in_words(what: str, told: str) -> None:
    assert told in found()[what]


@pytest.mark.parametrize("loop", ["loop", "iterator", "eager", "batches"])
def test_a_loop_is_left_after_a_step_with_what_it_reads(loop: str) -> None:
    told = found()[f"script {loop}"]
    assert "dataset 4 10 A loop of the script's own" in told


def test_a_loop_without_a_dataset_is_refused() -> None:
    assert "reads no tf.data.Dataset" in found()["script array_loop"]


def test_the_batch_of_a_loop_cannot_be_set() -> None:
    assert "batch_size cannot be set for a loop" in found()["loop of 5"]
