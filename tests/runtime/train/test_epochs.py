"""A resumed training goes on with the very next batch, whatever gives the data."""

from __future__ import annotations

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
NAMES = ("no_length", "generator", "part_of_epoch")
"""What `test_train_kill` does not kill: it has arrays, a pipeline of a known length, a sequence."""


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_data_goes_on(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dataset", "sequence"])
def test_the_order_of_other_data_goes_on(name: str) -> None:
    check(name, "slow")


def check(name: str, *words: str) -> None:
    found = case("training_single", f"resumed_{name}", *words)["step"]
    assert found["stopped"] == "SIGTERM"
    assert found["at"] == 14
    assert found["from"]
    assert found["history"]
    assert found["apart"] == 0.0
    assert found["counts"]


def test_why_earlier_epochs_are_read_again_is_told() -> None:
    assert case("training_single", "resumed_generator")["step"]["read"] == [
        "reading the data of epoch 1 again: from_generator runs Python code, which may keep a "
        "state of its own"
    ]
    assert case("training_single", "resumed_no_length")["step"]["read"] == []
