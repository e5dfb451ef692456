"""Keras' own fit whose steps the workers of a real cluster run."""

from __future__ import annotations

import pytest
from tests.runtime.clusters import trained

pytestmark = pytest.mark.tf
EPOCHS, BATCHES = 6, 13  # 200 samples by 16


@pytest.mark.parametrize("run", ["average", "float16"])
def test_one_step_at_a_time_learns_what_keras_learns_on_one_device(run: str) -> None:
    found = trained()[run]
    assert found["names"] == found["expected"]  # in the same order, validation included
    assert found["apart"] < 1e-5
    assert found["weights_apart"] < 1e-5


def test_every_batch_updates_the_weights_but_those_that_overflow() -> None:
    found = trained()
    assert found["average"]["updates"] == [39, 39]
    ours, keras = found["float16"]["updates"]
    assert ours == keras < 39


def test_several_workers_at_once_learn_and_lose_no_count() -> None:
    found = trained()["together"]
    assert found["updates"] == found["batch_count"] == EPOCHS * BATCHES
    assert found["drawn"] == [EPOCHS * BATCHES]  # the random state moved on with each step
    assert set(found["seeds"]) <= {0, 0x9E3779B9 % 2**31}  # each worker draws its own numbers
    losses = found["history"]["loss"]
    assert losses[-1] < 0.8 * losses[0]
    assert found["history"]["val_accuracy"][-1] > 0.8


def test_callbacks_see_every_epoch_and_batch_as_in_keras() -> None:
    found = trained()["together"]
    names = ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert found["epochs"] == [[epoch, names] for epoch in range(EPOCHS)]
    assert found["batches"] == list(range(BATCHES)) * EPOCHS
    assert all(loss > 0 for loss in found["losses"])  # never before anything is done


def test_evaluate_predict_and_save_work_in_the_scope_and_on_one_device() -> None:
    found = trained()["together"]
    for name in ("loss", "accuracy"):
        assert found["evaluated"][name] == pytest.approx(found["loaded"][name], abs=1e-5)
        assert found["evaluated"][name] == pytest.approx(
            found["history"][f"val_{name}"][-1], abs=1e-5
        )
    assert found["predicted_apart"] < 1e-6


def test_a_generator_and_several_steps_per_execution() -> None:
    found = trained()["generator"]
    assert found["batches"] == [3, 7, 11] * 2  # as Keras counts them
    assert found["updates"] == 24
    assert found["later"] == 37  # a second call of fit goes on


def test_the_model_is_given_back_as_it_was() -> None:
    assert "ClusterCoordinator" in trained()["given_back"]


def test_a_custom_step_with_two_optimizers_recomputation_and_logs_of_its_own() -> None:
    found = trained()["custom"]
    assert found["updates"] == [52, 52]
    assert found["own"][-1] < found["own"][0]
    assert found["shape"] == [2]


def test_what_the_users_code_raises_comes_as_it_is() -> None:
    said = trained()["user"]
    assert said.startswith("InvalidArgumentError")
    assert "too large here" in said


def test_a_model_of_no_strategy_is_refused() -> None:
    found, why = trained(), "was not made under the parameter server strategy"
    assert why in found["outside"]
    assert found["optimizer"].startswith(f"its optimizer {why}")
