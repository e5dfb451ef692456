"""A loss that is not a number ends the training at the last good checkpoint, with the cause."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_around", "lost")
hidden = functools.partial(case, "training_around", "hidden")


def test_the_place_in_the_data_is_named() -> None:
    found = seen()
    assert found["stopped"] == "NaN loss"
    assert "inputs" in found["summary"]
    assert any("feature 2" in text for text in found["evidence"])
    assert any("batch 7 of the epoch: loss is not finite" in text for text in found["evidence"])


def test_the_last_good_checkpoint_is_kept_and_no_model_is_written() -> None:
    found = seen()
    assert found["kept"][-1] == "step-000000006.json"  # sample 50 is in batch 7
    assert found["model"] == ""
    assert "The last good checkpoint is /checkpoints/step-000000006.json." in found["notes"]


def test_batches_that_lost_the_number_are_no_overflows() -> None:
    assert seen()["skipped"] == 0
    assert seen()["updates"] >= 7


def test_weights_that_are_lost_behind_a_finite_loss_end_it_with_their_epoch() -> None:
    found = hidden()["epoch"]
    assert (found["stopped"], found["model"], found["epochs"]) == ("NaN weights", "", 1)
    assert all(map(math.isfinite, found["losses"]))
    assert found["kept"] == ["step-000000000.json"]
    assert "inputs" in found["summary"]
    assert found["evidence"][0] == (
        "sequential/dense/kernel is not finite at step 9 of epoch 1, though the loss is a number"
    )
    assert any("batch 7 of the epoch: sequential/dense/k" in text for text in found["evidence"])


def test_no_checkpoint_of_lost_weights_is_written() -> None:
    found = hidden()["saving"]
    assert found["kept"][-1] == "step-000000006.json"
    assert "at step 8 of epoch 1" in found["evidence"][0]


def test_lost_weights_are_looked_for_without_a_folder_too() -> None:
    found = hidden()["without_folder"]
    assert found["stopped"] == "NaN weights"
    assert "weights were not finite already" in found["summary"]


def test_without_a_folder_the_cause_is_looked_for_too() -> None:
    assert seen()["without_folder"] == ["NaN loss", "error"]


CODE = """
import dataclasses
import keras, numpy as np, tensorflow as tf
from keras import layers, ops
from tfdyno.runtime.train.nan import hunt

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
rng = np.random.default_rng(0)
batches = [(rng.uniform(1, 2, size=(4, 3)).astype("float32"), np.ones((4, 1), "float32"))
           for _ in range(6)]

class Log(layers.Layer):
    def call(self, inputs):
        return ops.log(inputs)

def build(optimizer="sgd", strategy=None, first=()):
    keras.utils.set_random_seed(1)
    with (strategy or tf.distribute.get_strategy()).scope():
        model = keras.Sequential([keras.Input((3,)), *first, layers.Dense(4, name="one"),
                                  layers.BatchNormalization(), layers.Dense(1, name="two")])
        model.compile(optimizer, "mse")
        model.optimizer.build(model.trainable_variables)
    return model

def run(model, batches, **how):
    model.make_train_function()
    def step(batch):
        return model.train_function(iter([batch]))
    found = hunt(model, batches, step, **how)
    variables = [keras.ops.convert_to_numpy(v) for v in model.variables]
    good = all(np.isfinite(v).all() for v in variables)
    iterations = int(keras.ops.convert_to_numpy(model.optimizer.iterations))
    fields = dataclasses.asdict(found) if found else None
    return {"finding": fields, "good": good, "iterations": iterations,
            "weights": [float(v.sum()) for v in variables]}

bad = [*batches[:4], (batches[4][0] * 0, batches[4][1]), batches[5]]
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
spread = [next(iter(strategy.experimental_distribute_dataset(
    tf.data.Dataset.from_tensors(batch)))) for batch in bad]
trained = build(first=[Log(name="my_log")])
for batch in bad[:4]:
    trained.train_on_batch(*batch)
result = {
    "layer": run(build(first=[Log(name="my_log")]), bad, seen="loss is nan", first=11),
    "same": [float(keras.ops.convert_to_numpy(v).sum()) for v in trained.variables],
    "update": run(build(keras.optimizers.SGD(3e38)), batches),
    "none": run(build(), batches),
    "mirrored": run(build(strategy=strategy, first=[Log(name="my_log")]), spread),
}
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return in_tensorflow(CODE)


def proof(run: dict[str, Any]) -> list[str]:
    return [each["text"] for each in run["finding"]["evidence"]]


def test_the_batch_and_the_layer_are_found(found: dict[str, Any]) -> None:
    run = found["layer"]
    assert run["finding"]["summary"].partition("/")[2].startswith("my_log (Log) is the first")
    texts = proof(run)
    assert texts[0] == "loss is nan"
    assert texts[-1] == "batch 15 of the epoch: loss is not finite"


def test_the_model_is_left_as_it_was_before_that_batch(found: dict[str, Any]) -> None:
    assert found["layer"]["good"]
    assert found["layer"]["iterations"] == 4
    assert found["layer"]["weights"] == pytest.approx(found["same"])


def test_an_update_that_is_too_large_is_told_as_that(found: dict[str, Any]) -> None:
    run = found["update"]
    assert run["finding"]["summary"].startswith("The gradients are finite, the update is not: ")
    assert proof(run)[-1].endswith(" is not finite after the step")
    assert run["good"]
    assert "learning rate" in run["finding"]["fix"][0]["text"]


def test_steps_that_lose_nothing_have_no_finding(found: dict[str, Any]) -> None:
    assert found["none"]["finding"] is None
    assert found["none"]["iterations"] == 6


def test_replicas_are_hunted_as_well(found: dict[str, Any]) -> None:
    run = found["mirrored"]
    assert run["finding"]["summary"].partition("/")[2].startswith("my_log (Log) is the first")
    assert (run["good"], run["iterations"]) == (True, 4)
