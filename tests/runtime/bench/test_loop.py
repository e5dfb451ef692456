"""Loops of the user's own, timed in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runtime.benches import MODEL, Run, all_measured

pytestmark = pytest.mark.tf
LOOP = (Path(__file__).parents[2] / "data" / "scripts" / "loop.py").read_text()
ON_BATCH = MODEL + "m = model()\nwhile True:\n    m.train_on_batch(x[:16], y[:16])\n"
EAGER = MODEL + (
    "m = model()\n"
    "while True:\n"
    "    with tf.GradientTape() as tape:\n"
    "        loss = tf.reduce_mean(m(x) ** 2)\n"
    "    gradients = tape.gradient(loss, m.trainable_variables)\n"
    "    m.optimizer.apply_gradients(zip(gradients, m.trainable_variables))\n"
)
INSIDE = MODEL + (
    "m, data = model(), tf.data.Dataset.from_tensors((x, y)).repeat()\n"
    "@tf.function\n"
    "def epoch(batches):\n"
    "    for a, b in batches:\n"
    "        with tf.GradientTape() as tape:\n"
    "            loss = tf.reduce_mean((m(a) - b) ** 2)\n"
    "        tape.gradient(loss, m.trainable_variables)\n"
    "epoch(data)\n"
)
RUNS = {
    "loop": Run(code=LOOP),
    "xla": Run(code=LOOP, recipe={"execution": "xla"}, protocol={"data": "synthetic"}),
    "on_batch": Run(code=ON_BATCH),
    "on_batch_xla": Run(
        code=ON_BATCH.replace("model()", "model(run_eagerly=True)"), recipe={"execution": "xla"}
    ),
    "eager": Run(code=EAGER),
    "short": Run(
        code=ON_BATCH.replace("while True", "for _ in range(5)") + "raise SystemExit(0)\n"
    ),
    "ended": Run(
        code=ON_BATCH.replace("while True", "for _ in range(40)") + "raise SystemExit(0)\n",
        protocol={"least_samples": 1000},
    ),
    "batch": Run(code=LOOP, recipe={"batch_size": 64}),
    "epochs": Run(code=LOOP, protocol={"epochs": 2}),
    "inside": Run(code=INSIDE),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return all_measured(tmp_path_factory.mktemp("loop"), RUNS)


def test_the_step_of_a_loop_is_found_and_timed(found: dict[str, Any]) -> None:
    task, run = found["loop"]["task"], found["loop"]["run"]
    assert task["title"] == "train:train_step"
    assert (task["batch_size"], task["execution"]) == (16, "graph")
    # By hand: 3 x 3 x 3 x 8 + 8, and 30 x 30 x 8 x 10 + 10.
    assert task["parameter_count"] == 224 + 72010
    assert len(run["samples_s"]) >= 10
    assert run["first_step_s"] > min(run["samples_s"])


def test_a_loop_can_be_compiled_and_fed_one_batch(found: dict[str, Any]) -> None:
    assert found["xla"]["task"]["execution"] == "xla"
    assert len(found["xla"]["run"]["samples_s"]) >= 10


def test_train_on_batch_is_timed(found: dict[str, Any]) -> None:
    task = found["on_batch"]["task"]
    assert (task["batch_size"], task["parameter_count"]) == (16, 36)
    assert len(found["on_batch"]["run"]["samples_s"]) >= 10


def test_train_on_batch_runs_as_the_recipe_asks(found: dict[str, Any]) -> None:
    task = found["on_batch_xla"]["task"]
    assert task["execution"] == "xla"
    assert "run_eagerly is off: execution = xla holds." in task["notes"]


def test_a_loop_without_tf_function_is_timed_by_its_gradients(found: dict[str, Any]) -> None:
    assert found["eager"]["task"]["execution"] == "eager"
    assert len(found["eager"]["run"]["samples_s"]) >= 10


def test_a_loop_that_ends_early_is_told(found: dict[str, Any]) -> None:
    assert found["short"]["refused"].startswith("the data ended after 5 steps")


def test_a_loop_that_ends_by_itself_is_told_by_single_steps(found: dict[str, Any]) -> None:
    ran = found["ended"]["run"]
    assert ran["steps_per_sample"] == [1] * 39
    assert found["ended"]["task"]["notes"][-1] == "The script's loop ended after 40 steps."


def test_what_only_the_script_can_set_is_refused(found: dict[str, Any]) -> None:
    expected = "batch_size cannot be set for a loop of the script's own; set it in the script."
    assert found["batch"]["refused"] == expected
    assert found["epochs"]["refused"].startswith("the epochs of a loop of the script's own")


def test_a_whole_epoch_in_one_function_is_refused(found: dict[str, Any]) -> None:
    assert found["inside"]["refused"].startswith("the loop over the dataset is inside")
