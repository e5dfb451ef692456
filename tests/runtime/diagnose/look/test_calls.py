"""The same step one by one and several in a call, of models made in the usual ways."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from tests.runtime.forks import forked
from tests.runtime.looks import Looks, Training, facts_of

pytestmark = pytest.mark.tf
CODE = """
import json, keras, numpy as np, tensorflow as tf
from tfdyno.runtime.diagnose.held import held_dataset
from tfdyno.runtime.diagnose.look.calls import STEPS, in_turns, worth_a_look

class Own(keras.Model):
    def make_train_function(self, force=False):
        return super().make_train_function(force)

def model(kind=keras.Model, **how):
    x = keras.Input((8,))
    made = kind(x, keras.layers.Dense(4)(x))
    made.compile("sgd", "mse", **how)
    made.make_train_function()
    return made

x, y = np.ones((20, 8), "float32"), np.ones((20, 4), "float32")
iterator = iter(held_dataset((tf.constant(x), tf.constant(y))))
one = model()
single, counted = one.train_function, []

def counting(held):
    counted.append(1)
    return single(held)

told = in_turns(one, counting, iterator, most_s=0.0)
print(json.dumps({
    "steps": told.steps, "rounds": [len(told.single_s), len(told.together_s)],
    "positive": all(each > 0.0 for each in (*told.single_s, *told.together_s)),
    "updates": int(one.optimizer.iterations.numpy()), "single": len(counted),
    "kept": [one.steps_per_execution, one.train_function is single],
    "worth": {
        "short": worth_a_look(one, (0.001,), 1.0), "long": worth_a_look(one, (0.5,), 1.0),
        "slow to compile": worth_a_look(one, (0.001,), 60.0),
        "not held": worth_a_look(one, (), 1.0),
        "eager": worth_a_look(model(run_eagerly=True), (0.001,), 1.0),
        "several": worth_a_look(model(steps_per_execution=4), (0.001,), 1.0),
        "own function": worth_a_look(model(Own), (0.001,), 1.0),
    },
}))
"""
SMALL = """
import keras, numpy as np, tensorflow as tf
x, y = np.ones((400, 8), "float32"), np.ones((400, 1), "float32")

class Sub(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
    def call(self, inputs):
        return self.dense(inputs)

class Own(Sub):
    def train_step(self, data):
        a, b = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(a) - b) ** 2)
        rows = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, rows), rows)
        return {"loss": loss}

data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
"""
RUNS = {
    "subclassed": Training(code=SMALL + "m = Sub()\nm.compile('adam', 'mse')\n"
                           "m.fit(x, y, batch_size=8)\n"),
    "own step": Training(code=SMALL + "m = Own()\nm.compile('adam')\nm.fit(data)\n"),
    "compiled": Training(code=SMALL + "m = Sub()\nm.compile('adam', 'mse', jit_compile=True)\n"
                         "m.fit(data.repeat(), steps_per_epoch=50)\n"),
    "eager": Training(code=SMALL + "m = Sub()\nm.compile('sgd', 'mse', run_eagerly=True)\n"
                      "m.fit(data)\n"),
}  # fmt: skip


@functools.cache
def _told() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(forked(CODE).splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return Looks(tmp_path_factory.mktemp("calls"), RUNS)


def test_both_ways_of_calling_are_timed_in_as_many_rounds() -> None:
    assert (_told()["steps"], _told()["rounds"]) == (8, [7, 7])
    assert _told()["positive"]


def test_a_call_of_eight_runs_eight_steps() -> None:
    # 7 rounds of 8 single steps; 1 call that traces, 12 to warm up and 7 timed, of 8 each
    assert _told()["single"] == 56
    assert _told()["updates"] == 56 + 20 * 8


def test_the_model_is_left_as_it_was() -> None:
    assert _told()["kept"] == [1, True]


def test_only_short_steps_that_keras_can_put_into_one_call_are_looked_at() -> None:
    worth = _told()["worth"]
    assert [name for name, is_worth in worth.items() if is_worth] == ["short"]


@pytest.mark.parametrize("name", ["subclassed", "own step", "compiled"])
def test_small_steps_of_any_model_are_looked_at(name: str, found: dict[str, Any]) -> None:
    calls = facts_of(found[name]).calls
    assert calls
    assert calls.steps == 8
    assert len(calls.single_s) == len(calls.together_s) >= 7


def test_an_eager_step_has_no_call_to_share(found: dict[str, Any]) -> None:
    assert facts_of(found["eager"]).calls is None
