"""Epochs of a training that goes on and on, in the numbers of the user's own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
from types import SimpleNamespace
from tfdyno.runtime.diagnose.clock import StepTimes
from tfdyno.runtime.diagnose.epochs import Epochs

times = StepTimes()
one = Epochs(times, first=2, last=5)
none = Epochs(times, first=3, last=3)
result = {"numbers": [one.number(epoch) for epoch in range(2, 10)], "none": none.number(7)}
result["counts"] = [one.count, none.count]
params = {"epochs": 1_000_000, "steps": 10}
one.set_params(params)
result["params"] = [params["epochs"], one.params["steps"]]

model = SimpleNamespace(stop_training=False)
one._model = model  # as Keras sets it
one.on_epoch_begin(2)
one.position = 4
model.stop_training = True  # by a callback
one.on_epoch_end(2)
result["kept going"] = [model.stop_training, one.asked_at]
model.stop_training = True  # by a callback at a step
one.keep_going()
result["kept going"].append(model.stop_training)
one.on_epoch_begin(3)
result["longest"] = [one.longest, one.position]
one.on_epoch_end(3)
one.on_epoch_begin(4)  # the epoch before gave nothing
one.on_epoch_end(4)
result["ended"] = model.stop_training
times.done = True
model.stop_training = True
one.on_epoch_end(4)
result["done"] = model.stop_training
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    answer: dict[str, Any] = in_tensorflow(CODE)
    return answer


def test_the_numbers_come_again_and_again(found: dict[str, Any]) -> None:
    assert found["numbers"] == [2, 3, 4, 2, 3, 4, 2, 3]
    assert found["none"] == 7  # a training of no epochs: as it is
    assert found["counts"] == [3, 0]


def test_all_callbacks_are_told_of_the_users_own_epochs(found: dict[str, Any]) -> None:
    assert found["params"] == [5, 10]


def test_the_end_that_a_callback_asks_for_is_put_off(found: dict[str, Any]) -> None:
    assert found["kept going"][0] is False
    assert found["kept going"][2] is False  # at once: else each later epoch would be one step


def test_steps_of_the_longest_epoch_are_kept(found: dict[str, Any]) -> None:
    assert found["longest"] == [4, 0]


def test_data_that_gave_nothing_in_an_epoch_has_ended(found: dict[str, Any]) -> None:
    assert found["ended"] is True


def test_enough_is_enough(found: dict[str, Any]) -> None:
    assert found["done"] is True
