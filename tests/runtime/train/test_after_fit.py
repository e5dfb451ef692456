"""What scripts do after fit, under a strategy of several replicas."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import json, os, tempfile
from pathlib import Path
import numpy as np, tensorflow as tf, keras
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tfdyno.runtime.train.after_fit import evaluation_composed, saved_by_chief
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x = np.random.default_rng(0).normal(size=(50, 4)).astype("float32")
y = x.sum(1, keepdims=True)
with strategy.scope():
    m = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    m.compile(keras.optimizers.SGD(use_ema=True, ema_overwrite_frequency=5), "mse", metrics=["mae"])
alone = np.asarray(x @ np.asarray(m.layers[0].kernel) + np.asarray(m.layers[0].bias))
result = {"expected": [float(((alone - y) ** 2).mean()), float(np.abs(alone - y).mean())]}
own = keras.Model.evaluate, keras.Model.predict
with strategy.scope(), evaluation_composed(lambda: False):
    result["evaluated"] = [float(v) for v in m.evaluate(x, y, batch_size=16, verbose=0)]
    result["again"] = m.evaluate(x, y, batch_size=16, verbose=0, return_dict=True)["loss"]
    result["predicted"] = float(np.abs(m.predict(x, batch_size=16, verbose=0) - alone).max())
    try:
        m.predict(np.ones((3, 7), "float32"), verbose=0)
    except Exception as error:
        result["raised"] = type(error).__name__
result["overwrite"] = m.optimizer.ema_overwrite_frequency
result["exchange"] = "_all_reduce_sum_gradients" in vars(m.optimizer)
result["strategy_back"] = m.distribute_strategy is strategy
result["restored"] = (keras.Model.evaluate, keras.Model.predict) == own
with strategy.scope(), evaluation_composed(lambda: True):
    result["training"] = keras.Model.evaluate is not own[0] and m.test_function is None

folder = Path(tempfile.mkdtemp())
where = {"cluster": {"worker": ["a:1", "b:2"]}}
os.environ["TF_CONFIG"] = json.dumps({**where, "task": {"type": "worker", "index": 1}})
with saved_by_chief():
    m.save(folder / "other.keras")
    m.save_weights(str(folder / "other.weights.h5"))
os.environ["TF_CONFIG"] = json.dumps({**where, "task": {"type": "worker", "index": 0}})
with saved_by_chief():
    m.save(folder / "chief.keras")
result["saved"] = sorted(path.name for path in folder.iterdir())
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    result: dict[str, Any] = in_tensorflow(CODE)
    return result


def test_evaluate_counts_every_sample_once_over_the_replicas(found: dict[str, Any]) -> None:
    assert found["evaluated"] == pytest.approx(found["expected"], rel=1e-5)
    assert found["again"] == pytest.approx(found["expected"][0], rel=1e-5)


def test_predict_gives_what_the_model_computes_and_its_errors_come_through(
    found: dict[str, Any],
) -> None:
    assert found["predicted"] < 1e-5
    assert found["raised"] == "ValueError"


def test_the_model_is_left_as_it_was(found: dict[str, Any]) -> None:
    assert (found["overwrite"], found["strategy_back"], found["restored"]) == (5, True, True)
    assert found["training"] is True
    assert not found["exchange"]  # else a loop of the script's own would not sum over replicas


def test_only_what_the_chief_saves_is_kept(found: dict[str, Any]) -> None:
    assert found["saved"] == ["chief.keras"]
