"""runtime/train_jax/nan: a number is lost on JAX, and the repeated steps show where."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.jaxes import told_by

pytestmark = pytest.mark.tf
CHILD = """
import dataclasses, json, os, sys
from pathlib import Path
import numpy as np
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import RunSettings
from tfdyno.runtime.train_jax import start

world = start.begin(JaxPlan(), Recipe(seed=3), addresses=(), rank=0, gpus=0)
import keras
from keras import layers, ops
from tfdyno.runtime.train_jax.loop import JaxTraining, train

rng = np.random.default_rng(0)
x = rng.uniform(0.5, 1.0, size=(32, 4)).astype("float32")
y = x.sum(axis=1, keepdims=True)
result = {}

class Log(layers.Layer):
    def call(self, inputs):
        return ops.log(ops.relu(inputs))

class Root(layers.Layer):
    def call(self, inputs):
        return ops.sqrt(inputs)

class Own(keras.Model):
    def train_step(self, state, data):
        logs, state = super().train_step(state, data)
        return logs, state

class Poison(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.layers[-1].kernel.assign(self.model.layers[-1].kernel * np.nan)

def model(*parts, optimizer="sgd", loss="mse", kind=keras.Sequential):
    made = kind([keras.Input((4,)), *parts])
    made.compile(optimizer, loss)
    return made

def lose(name, made, inputs=x, truth=y, steps=1, recipe=Recipe(seed=3), callbacks=(), epochs=2):
    training = JaxTraining(recipe=recipe, plan=JaxPlan(), world=world, progress=lambda line: None)
    arguments = {"x": inputs, "y": truth, "batch_size": 4, "epochs": epochs, "shuffle": False,
                 "callbacks": list(callbacks)}
    settings = RunSettings(output=name, keep=99, checkpoint_steps=steps)
    outcome = train(made, arguments, settings, training)
    (finding,) = outcome.findings
    result[name] = {
        **dataclasses.asdict(finding), "stopped": outcome.stopped, "from": outcome.resumed_from,
        "notes": outcome.notes, "steps": outcome.steps,
        "finite": all(bool(np.isfinite(np.asarray(w)).all()) for w in made.weights),
        "kept": sorted(one.stem for one in Path(name, "checkpoints").glob("step-*.json"))[-1],
    }

def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array

# row 21: batch 6, sample 1
lose("data", model(layers.Dense(2), layers.Dense(1)), changed(x, (21, 3), np.nan))
several = Recipe(seed=3, steps_per_execution=4)
lose("several", model(layers.Dense(2), layers.Dense(1)), changed(x, (21, 3), np.nan), steps=4,
     recipe=several)
zeros = layers.Dense(2, name="still", kernel_initializer="zeros")
lose("layer", model(zeros, Log(name="my_log"), layers.Dense(1)), steps=0)
lose("gradient", model(layers.Dense(2, name="still", kernel_initializer="zeros"),
                       Root(name="root"), layers.Dense(1, name="after")), steps=0)
negative = layers.Dense(1, kernel_initializer="zeros", activation="relu")
lose("loss", model(negative, loss=lambda t, p: -ops.mean(t * ops.log(p))), steps=0)
high = keras.optimizers.SGD(3e38)
lose("update", model(layers.Dense(1, name="only"), optimizer=high), truth=y * 1e3, steps=0)
inputs = keras.Input((4,))
own = Own(inputs, layers.Dense(1)(Log()(layers.Dense(2, kernel_initializer="zeros")(inputs))))
own.compile("sgd", "mse")
lose("own", own, steps=0)
lose("callback", model(layers.Dense(1)), callbacks=[Poison()])
os.write(int(sys.argv[1]), json.dumps(result, default=str).encode())
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    told: dict[str, Any] = told_by(CHILD, folder=tmp_path_factory.mktemp("nan"), XLA_FLAGS="")
    return told


def proof(finding: dict[str, Any]) -> str:
    return "\n".join(each["text"] for each in finding["evidence"])


@pytest.mark.parametrize("name", ["data", "several"])
def test_a_value_in_the_data_is_named_with_its_batch(found: dict[str, Any], name: str) -> None:
    """By hand: row 21 of batches of 4 is sample 1 of batch 6, from 1."""
    told = found[name]
    assert told["summary"] == (
        "The inputs hold values that are not finite: x, sample 1 of the batch, feature 3."
    )
    assert "batch 6 of the epoch: loss is not finite" in proof(told)
    assert told["stopped"] == "NaN loss"


def test_the_weights_are_those_of_the_last_good_checkpoint(found: dict[str, Any]) -> None:
    assert {name: one["finite"] for name, one in found.items()} == dict.fromkeys(found, True)
    assert found["data"]["kept"] == "step-000000005"
    assert found["several"]["kept"] == "step-000000004"
    assert (
        "The last good checkpoint is data/checkpoints/step-000000005.json."
        in (found["data"]["notes"])
    )
    assert {one["from"] for one in found.values()} == {""}  # none of them went on with a run


def test_the_first_layer_is_named(found: dict[str, Any]) -> None:
    told = found["layer"]
    assert "my_log (Log) is the first layer whose output is not finite." in told["summary"]
    assert "batch 1 of the epoch" in proof(told)


def test_a_loss_that_is_lost_behind_finite_layers_is_named(found: dict[str, Any]) -> None:
    assert found["loss"]["summary"].startswith("All layers give finite values, the loss does not")


def test_a_gradient_is_named_by_the_weight_that_it_is_of(found: dict[str, Any]) -> None:
    """JAX shows nothing between the layers on the way back."""
    told = found["gradient"]
    assert told["summary"].startswith("The loss is finite, its gradient is not: it is lost on the "
                                      "way to ")  # fmt: skip
    assert "/still/" in told["summary"]


def test_an_update_that_is_too_large_is_named(found: dict[str, Any]) -> None:
    told = found["update"]
    assert told["summary"] == (
        "The gradients are finite, the update is not: sequential_5/only/kernel is lost in it."
    )


def test_a_step_of_its_own_is_not_said_to_be_looked_into(found: dict[str, Any]) -> None:
    told = found["own"]
    assert "the train_step is the model's own, which JAX runs as a whole" in proof(told)
    assert "batch 1 of the epoch" in proof(told)


def test_what_the_steps_do_not_show_is_said(found: dict[str, Any]) -> None:
    """A callback lost it, and callbacks are not repeated."""
    told = found["callback"]
    assert told["summary"].endswith("and repeating the steps did not show where it began.")
    assert told["stopped"] == "NaN weights"
