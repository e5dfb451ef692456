"""Steps of Keras on JAX, measured in a child as users get it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.runtime.benches import MODEL, Run, request_of
from tests.runtime.jaxes import variables

from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.bench import RUN, MeasuredRun
from tfdyno.core.recipe.recipe import InputOptions
from tfdyno.jobs.child.worker import run_child

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
RECIPE = {"steps_per_execution": 3, "accumulation": 2, "clip_norm": 1.0, "seed": 1}


def measured(folder: Path, run: Run, *, seen_gpus: int = 0) -> MeasuredRun:
    """The result of one run on JAX."""
    request = replace(request_of(folder, run), backend="jax", seen_gpus=seen_gpus)
    return run_child(RUN, request, timeout_s=300, env=variables(), doing="measuring train.py")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> MeasuredRun:
    code = MODEL + "model().fit(x, y, batch_size=16)\nraise RuntimeError('nothing after it runs')\n"
    run = Run(code=code, recipe=RECIPE, protocol={"most_s": 2.0})
    return measured(tmp_path_factory.mktemp("plain"), run, seen_gpus=1)


def test_a_script_is_measured_as_it_is_on_jax(plain: MeasuredRun) -> None:
    task = plain.task
    assert (task.backend, task.execution, task.batch_size) == ("jax", "xla", 16)
    assert (task.parameter_count, task.samples_per_epoch) == (8 * 4 + 4, 200)
    assert plain.software["jax"]
    assert plain.software["device"] == "cpu"
    assert not task.has_pipeline  # Keras reads arrays without tf.data there


def test_a_gpu_that_jax_leaves_unused_is_told(plain: MeasuredRun) -> None:
    told = [note for note in plain.task.notes if "JAX computes on the CPU" in note]
    assert told
    assert "this machine has a GPU" in told[0]


def test_its_run_is_whole(plain: MeasuredRun) -> None:
    run = plain.run
    assert len(run.samples_s) == len(run.steps_per_sample) >= 10
    assert min(run.samples_s) > 0
    assert {steps % 3 for steps in run.steps_per_sample} == {0}  # whole calls, without an end
    assert run.first_step_s > sorted(run.samples_s)[len(run.samples_s) // 2]
    assert len(run.beside_s) == len(run.beside_places) > 0
    assert run.peak_memory_bytes > 100 << 20
    assert run.first.steps == ()  # nobody asked


@pytest.mark.slow
def test_a_forward_pass_is_measured_on_jax(tmp_path: Path) -> None:
    code = MODEL + "def make():\n    return model()\n"
    run = Run(code=code, function="make", mode="infer", protocol={"data": "synthetic"})
    found = measured(tmp_path, run)
    assert (found.task.mode, found.task.backend) == ("infer", "jax")
    assert found.task.notes == ("What predict returns is not kept.",)
    assert len(found.run.samples_s) >= 10


@pytest.mark.slow
def test_a_loop_of_its_own_is_refused_on_jax(tmp_path: Path) -> None:
    code = MODEL + "m = model()\nfor _ in range(10 ** 6):\n    m.train_on_batch(x, y)\n"
    with pytest.raises(UsageError, match="trains by a loop of its own"):
        measured(tmp_path, Run(code=code))


@pytest.mark.slow
def test_settings_of_the_input_go_onto_a_pipeline_and_onto_nothing_else(tmp_path: Path) -> None:
    recipe = {"input": InputOptions(prefetch=3, cache=True), "deterministic": True}
    data = "import tensorflow as tf\nd = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)\n"
    run = Run(code=MODEL + data + "model().fit(d)\n", recipe=recipe, protocol={"most_s": 2.0})
    found = measured(tmp_path, run)
    assert found.task.has_pipeline
    assert "prefetch: 3 batches are made ready ahead." in found.task.notes
    arrays = Run(code=MODEL + "model().fit(x, y)\n", recipe={"input": InputOptions(prefetch=3)})
    with pytest.raises(UsageError, match=r"input\.prefetch cannot be set for a ndarray on the JAX"):
        measured(tmp_path, arrays)
