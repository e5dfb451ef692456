"""The data of training loops that a script has of its own."""

from __future__ import annotations

import pytest
from tests.runtime.feed_looks import found

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("loop", ["loop", "iterator", "eager", "batches"])
def test_a_loop_is_left_after_a_step_with_what_it_reads(loop: str) -> None:
    told = found()[f"script {loop}"]
    assert "dataset 4 10 A loop of the script's own" in told


def test_a_loop_without_a_dataset_is_refused() -> None:
    assert "reads no tf.data.Dataset" in found()["script array_loop"]


def test_the_batch_of_a_loop_cannot_be_set() -> None:
    assert "batch_size cannot be set for a loop" in found()["loop of 5"]
