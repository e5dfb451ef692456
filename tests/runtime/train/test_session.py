"""What a session keeps is the same on both backends, but for what each of them needs to go on.

How a training goes on from it is looked at in ``test_loop`` here and in ``train_jax``.
"""

from __future__ import annotations

import pytest
from tests.runtime.jaxes import looked
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
KEPT = ["callbacks", "iterations_before"]


def test_a_checkpoint_of_tensorflow_says_how_long_an_epoch_is() -> None:
    assert case("training_parts", "outcome")["markers"] == [
        [1, 0, {"batch_count": 8, "ended_of": 0}, KEPT],
        [2, 0, {"batch_count": 8, "ended_of": 0}, KEPT],
        [0, 4, {"batch_count": 8, "ended_of": 0}, KEPT],
    ]


def test_a_checkpoint_of_jax_has_the_random_numbers_of_a_begun_epoch() -> None:
    assert looked("loop")["markers"] == [
        [0, 2, {"ended_of": 0}, [*KEPT, "random"]],
        [1, 0, {"ended_of": 0}, KEPT],
    ]


def test_the_users_callbacks_stand_between() -> None:
    heard = looked("callbacks")
    assert heard[:4] == ["built", "train_begin", "epoch_begin", "own epoch_begin"]
    assert heard[4:7] == ["ran"] * 3
    assert heard[7:9] == ["begin_validation", "end_validation"]
    assert heard[9:] == ["epoch_ends", "own epoch_end", "epoch_end"]
