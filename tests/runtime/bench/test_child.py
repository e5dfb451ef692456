"""Whole runs of a bench: an unmodified script, its recipe, its refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtime.benches import MODEL, Run, measured

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.messages.bench import MeasuredRun

pytestmark = pytest.mark.tf
SCRIPT = (
    MODEL
    + "m = model()\n"
    + "m.fit(x, y, batch_size=16, validation_split=0.1, callbacks=[keras.callbacks.History()])\n"
    + "raise RuntimeError('nothing after fit runs')\n"
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> MeasuredRun:
    return measured(tmp_path_factory.mktemp("plain"), Run(code=SCRIPT))


def test_a_script_is_measured_as_it_is(plain: MeasuredRun) -> None:
    task = plain.task
    assert (task.batch_size, task.replica_count, task.samples_per_epoch) == (16, 1, 180)
    assert (task.parameter_count, task.inputs) == (8 * 4 + 4, ("float32[8]",))
    assert (task.loss, task.optimizer, task.policy) == ("mse", "sgd", "float32")
    assert task.execution == "graph"  # what "auto" means without a GPU
    assert task.notes == ("Left out of fit: callbacks, validation_split.",)


def test_its_samples_are_blocks_of_steps(plain: MeasuredRun) -> None:
    run = plain.run
    assert len(run.samples_s) == len(run.steps_per_sample) >= 10
    assert min(run.samples_s) > 0
    assert max(run.steps_per_sample) > 1
    assert run.first_step_s > sorted(run.samples_s)[len(run.samples_s) // 2]
    assert len(run.beside_s) == len(run.beside_places) > 0
    assert min(run.beside_s) > 0
    assert run.memory_kind == "process"
    assert run.peak_memory_bytes > 200 << 20  # TensorFlow itself
    assert run.metrics == {}


def test_the_software_is_told(plain: MeasuredRun) -> None:
    assert plain.software["device"] == "cpu"
    assert plain.software["devices"] == ["CPU"]
    assert plain.software["keras"].startswith("3.")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> MeasuredRun:
    recipe = {
        "precision": "mixed_bfloat16",
        "execution": "xla",
        "batch_size": 20,
        "accumulation": 2,
        "clip_norm": 1.0,
        "steps_per_execution": 3,
        "threads_intra": 1,
        "seed": 7,
    }
    code = MODEL + "tf.config.threading.set_intra_op_parallelism_threads(2)\nmodel().fit(x, y)\n"
    folder = tmp_path_factory.mktemp("full")
    return measured(folder, Run(code=code, recipe=recipe, protocol={"epochs": 3}))


def test_a_recipe_reaches_the_model(full: MeasuredRun) -> None:
    task = full.task
    assert (task.policy, task.execution) == ("mixed_bfloat16", "xla")
    assert task.batch_size == 20


def test_what_the_script_sets_against_the_recipe_is_told(full: MeasuredRun) -> None:
    note = "The code calls set_intra_op_parallelism_threads; threads_intra of the recipe holds."
    assert note in full.task.notes


def test_whole_epochs_have_metrics_and_their_first_steps_do_not_count(full: MeasuredRun) -> None:
    run = full.run
    assert set(run.metrics) == {"loss"}
    # 10 steps in calls of 3, 3, 3, 1: one call is the first step, later epochs start anew.
    assert sum(run.steps_per_sample) == 3 * 10 - 3
    assert len(run.excluded) == 2
    assert [run.steps_per_sample[number] for number in run.excluded] == [3, 3]


def test_a_card_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        measured(tmp_path, Run(code=SCRIPT, recipe={"memory_limit_bytes": 1 << 30}))
    assert str(caught.value) == "memory_limit_bytes needs a GPU: TensorFlow sees none here."
