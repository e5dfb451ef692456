"""What watches a ``fit`` counts its steps, and does nothing at a batch."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import keras, numpy as np
from tfdyno.runtime.base.fit_watcher import FitWatcher

one, other = FitWatcher(), FitWatcher()
result = {"known": [one.count_steps(4, 10) for _ in range(3)] + [one.position]}
result["unknown"] = [other.count_steps(4, None) for _ in range(3)] + [other.position]
result["over"] = one.count_steps(4, 10)

heard = []
told = FitWatcher(on_epoch_end=lambda epoch, logs: heard.append(epoch))
names = ("on_batch_end", "on_train_batch_begin", "on_train_batch_end")
result["empty"] = [getattr(getattr(told, name), "_is_default", False) for name in names]
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((4, 3)), np.ones((4, 1)), epochs=2, verbose=0, callbacks=[told])
result["heard"] = heard
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    answer: dict[str, Any] = in_tensorflow(CODE)
    return answer


def test_the_last_call_of_an_epoch_may_hold_fewer_steps(found: dict[str, Any]) -> None:
    assert found["known"] == [4, 4, 2, 10]
    assert found["unknown"] == [4, 4, 4, 12]
    assert found["over"] == 1  # a call holds a step at least


def test_to_keras_it_does_nothing_at_a_batch(found: dict[str, Any]) -> None:
    assert found["empty"] == [True, True, True]


def test_keras_calls_what_it_was_given(found: dict[str, Any]) -> None:
    assert found["heard"] == [0, 1]
