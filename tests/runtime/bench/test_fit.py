"""Keras' fit measured: data modes, targets, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import MODEL, Run, all_measured, in_tensorflow

pytestmark = pytest.mark.tf
EASY = MODEL + "model(metrics=['mae']).fit(x, y, epochs=50, validation_data=(x, y))\n"
HELD = """
import keras, numpy as np, tensorflow as tf
from tfdyno.runtime.bench import data as bench_data
from tfdyno.runtime.bench.fit import _on_device
from tfdyno.runtime.workload.dataspec import of_batch

seen = []
class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
    def call(self, x):
        seen.append((tuple(x.shape), tf.get_static_value(x) is None))
        return self.dense(x)

model = Model()
model.compile("sgd", "mse", jit_compile=True)
x, y = np.ones((32, 8), "float32"), np.ones((32, 1), "float32")
stream = _on_device(model, (x, y), of_batch(x, y), ())
model.fit(**stream.arguments, steps_per_epoch=200, verbose=0)
result = {"seen": seen, "loss": float(model._loss_tracker.result())}
"""
ENDLESS = {"most_s": 100.0}
RUNS = {
    "target": Run(
        code=EASY, protocol={**ENDLESS, "target_metric": "val_loss", "target_value": 0.5}
    ),
    "typo": Run(code=EASY, protocol={"target_metric": "f1", "target_value": 0.5}),
    "epochs": Run(code=EASY, protocol={"data": "synthetic-device", "epochs": 2}),
    "diverged": Run(code=MODEL + "model(optimizer=keras.optimizers.SGD(1e30)).fit(x, y * 1e20)\n"),
    "python": Run(
        code=MODEL
        + "class Data(keras.utils.PyDataset):\n"
        + "    def __len__(self):\n        return 12\n"
        + "    def __getitem__(self, index):\n        return x[:10], y[:10]\n"
        + "model().fit(Data())\n"
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return all_measured(tmp_path_factory.mktemp("fit"), RUNS)


def test_training_to_a_target_ends_there_with_its_time(found: dict[str, Any]) -> None:
    run = found["target"]["run"]
    assert 0 < run["metrics"]["val_loss"] <= 0.5
    assert run["seconds_to_target_s"] > run["first_step_s"]
    assert set(run["metrics"]) == {"loss", "mae", "val_loss", "val_mae"}


def test_a_metric_that_training_does_not_have_is_told(found: dict[str, Any]) -> None:
    text = found["typo"]["refused"]
    assert text.startswith("training has no metric 'f1'; name one of ")
    assert "val_mae" in text


def test_epochs_of_synthetic_data_have_no_metrics(found: dict[str, Any]) -> None:
    run = found["epochs"]["run"]
    assert run["metrics"] == {}
    assert sum(run["steps_per_sample"]) == 2 * 6 - 1  # 200 // 32 twice, without the first


def test_a_batch_on_the_device_is_trained_on_and_is_no_constant() -> None:
    result = in_tensorflow(HELD)
    assert all(shape == [32, 8] and is_open for shape, is_open in result["seen"])
    assert result["loss"] < 0.5


def test_diverged_training_is_noted(found: dict[str, Any]) -> None:
    notes = found["diverged"]["task"]["notes"]
    assert "The loss is not a number: training diverged." in notes


def test_data_that_cannot_be_repeated_goes_epoch_by_epoch(found: dict[str, Any]) -> None:
    run = found["python"]["run"]
    assert found["python"]["task"]["samples_per_epoch"] == 120
    assert len(run["excluded"]) > 1
    steps = run["steps_per_sample"]
    assert {steps[number] for number in run["excluded"]} == {1}
    counted = [number for number in range(len(steps)) if number not in run["excluded"]]
    assert len(counted) >= 10
