"""Callbacks go on where they were, and keep the settings that the script gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.runtime.benches import in_tensorflow

from tfdyno.runtime.checkpoint.callbacks import callback_state, restore_callbacks

KERAS = """
import keras, numpy as np, tensorflow as tf
from tfdyno.runtime.checkpoint.callbacks import callback_state, restore_callbacks
from tfdyno.runtime.checkpoint.plain_json import from_plain, to_plain

x, y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")

class Put(keras.callbacks.Callback):
    # After on_train_begin of the others, as the trainer does.
    def __init__(self, callbacks, states):
        super().__init__()
        self.callbacks, self.states, self.notes = callbacks, states, []
    def on_train_begin(self, logs=None):
        self.notes += restore_callbacks(self.callbacks, self.states)

class Losses(keras.callbacks.Callback):
    # Gives the others a loss that first falls and then stays.
    def on_epoch_end(self, epoch, logs=None):
        logs["loss"] = [1.0, 0.5, 0.5, 0.49, 0.5, 0.5, 0.5, 0.5, 0.5][epoch]

class Own(keras.callbacks.Callback):
    def __init__(self, weight=0.0, model_to_teach=None, path=__import__("pathlib").Path("x")):
        super().__init__()
        self.weight, self.teacher, self.path = weight, model_to_teach, path
        self.seen, self.rate, self.best = {"a": [1]}, tf.Variable(1.0), tf.constant(2.0)
        self.model_to_teach = model_to_teach
    def on_epoch_end(self, epoch, logs=None):
        self.weight += 0.1

def model():
    keras.utils.set_random_seed(1)
    built = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    built.compile("sgd", "mse")
    return built

def callbacks():
    return [keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2, min_delta=0.02),
            keras.callbacks.EarlyStopping("loss", patience=5, min_delta=0.02,
                                          restore_best_weights=True),
            Own(model_to_teach=model())]

def run(first, last, states=()):
    used = callbacks()
    put = [Put(used, states)] if states else []
    one = model()
    done = one.fit(x, y, initial_epoch=first, epochs=last, callbacks=[Losses(), *used, *put],
                   verbose=0, shuffle=False)
    arrays, (states, notes) = {}, callback_state(used)
    plain = to_plain(states, arrays, "callbacks")
    rate = float(one.optimizer.learning_rate)
    return from_plain(plain, arrays), notes, len(done.epoch), rate, put

whole = run(0, 9)
half = run(0, 4)
rest = run(4, 9, half[0])

def told(states):
    best = states[1]["attributes"].pop("best_weights")
    return {"attributes": [{k: v for k, v in state["attributes"].items()} for state in states],
            "best_weights": [np.asarray(w).shape for w in best]}

result = {"whole": told(whole[0]), "rest": told(rest[0]), "half": told(half[0]),
          "notes": half[1], "epochs": [whole[2], half[2], rest[2]], "rate": [whole[3], rest[3]],
          "put": rest[4][0].notes}
"""


@pytest.mark.tf
def test_callbacks_of_keras_stop_and_slow_down_where_they_would_have() -> None:
    found = in_tensorflow(KERAS)
    assert found["epochs"] == [7, 4, 3]  # a new start would have waited for 5 epochs again
    assert found["rate"][1] == found["rate"][0] * 2  # the optimizer keeps the first halving itself
    assert found["whole"] == found["rest"]
    assert found["half"]["best_weights"] == [[2, 1], [1]]
    plateau, stopping, own = found["half"]["attributes"]
    assert plateau == {"best": 0.5, "cooldown_counter": 0, "wait": 0}
    assert set(stopping) == {"best", "best_epoch", "stopped_epoch", "wait"}
    assert (own["seen"], own["best"], own["weight"]) == ({"a": [1]}, 2.0, 0.4)
    assert found["notes"] == [
        "Own: teacher is a Sequential, which no checkpoint keeps.",
        "Own: rate is a ResourceVariable, which no checkpoint keeps.",
        "Own: model_to_teach is a Sequential, which no checkpoint keeps.",
    ]
    assert found["put"] == ["Own.weight continues at 0.4; the script gives 0.0."]


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.start, self.seen = start, [np.arange(2), (1, np.int8(2))]


class Other:
    pass


def state_of_one(callback: object) -> list[dict[str, Any]]:
    states, notes = callback_state([callback])
    assert notes == []
    return states


def test_the_state_of_a_plain_callback_is_put_back() -> None:
    first, second = Counter(), Counter()
    first.start = 7
    first.seen.append("x")
    notes = restore_callbacks([second], state_of_one(first))
    assert second.start == 7
    assert second.seen[1:] == [(1, 2), "x"]
    assert notes == ["Counter.start continues at 7; the script gives 0."]


def test_other_callbacks_than_before_are_named() -> None:
    states = state_of_one(Counter()) + state_of_one(Other())
    notes = restore_callbacks([Other()], states)
    assert notes == [
        "Other starts anew: the checkpoint has no state of it.",
        "Other of the checkpoint is not among the callbacks any more.",
    ]
    assert restore_callbacks([Counter(), Other(), Other()], states) == [
        "Other starts anew: the checkpoint has no state of it."
    ]
