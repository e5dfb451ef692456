"""jobs/train_preview: what a training would do, traced and estimated, with nothing written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.train.preview import NO_GPU, preview
from tfdyno.jobs.train.train import TrainRequest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
SCRIPT = """
import keras, numpy
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)], name="line")
model.compile("sgd", "mse")
model.fit(numpy.ones((640, 16)), numpy.ones((640, 4)), batch_size=32, epochs=2)
"""
DEEP = """
import keras, numpy
layers = [keras.layers.Dense(256, activation="relu") for _ in range(24)]
model = keras.Sequential([keras.Input((256,)), *layers, keras.layers.Dense(1)], name="deep")
model.compile("sgd", "mse")
model.fit(numpy.ones((8192, 256)), numpy.ones((8192, 1)), batch_size=4096)
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainRequest:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    return TrainRequest(workload=parse_reference("train.py"), settings=RunSettings(output="run"))


def test_the_plan_is_estimated_for_the_named_card(asked: TrainRequest, tmp_path: Path) -> None:
    plan = preview(asked, gpu="l4")
    assert (plan.title, plan.parameter_count, plan.optimizer) == ("line", 68, "sgd")
    assert (plan.batch_size, plan.samples_per_epoch, plan.steps_per_epoch) == (32, 640, 20)
    assert (plan.epochs, plan.gpu_name, plan.output) == (2, "L4", "run")
    assert plan.estimate is not None
    assert 0 < plan.estimate.step_s.best < 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]

    recipe = Recipe(strategy="mirrored", devices=2, precision="mixed_float16", remat="blocks")
    shared = preview(replace(asked, recipe=recipe), gpu="l4")
    assert (shared.replicas, shared.batch_size, shared.global_batch_size) == (2, 16, 32)
    assert shared.estimate is not None
    assert (shared.estimate.replicas, shared.estimate.precision) == (2, "mixed_float16")
    assert (
        "The memory is that with remat; the time leaves out what is computed again." in shared.notes
    )


def test_the_memory_of_a_chain_follows_remat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.py").write_text(DEEP)
    asked = TrainRequest(workload=parse_reference("deep.py"), settings=RunSettings(output="run"))
    plans = [
        preview(replace(asked, recipe=Recipe(remat=remat)), gpu="l4")
        for remat in ("", "blocks", "1GiB")
    ]
    plain, again, budget = (plan.estimate for plan in plans)
    assert plain
    assert again
    assert budget
    # 24 results of 4096 x 256 float32 are kept without, about sqrt(2 * 24) = 7 with
    result_bytes = 4096 * 256 * 4
    kept = plain.memory_parts_bytes["activations"] - again.memory_parts_bytes["activations"]
    assert kept > 12 * result_bytes
    assert again.device_memory_bytes.best < plain.device_memory_bytes.best
    assert again.step_s == plain.step_s
    assert budget.device_memory_bytes == plain.device_memory_bytes
    assert "The estimate does not count remat." in plans[2].notes


def test_without_a_card_the_plan_stands_without_an_estimate(
    asked: TrainRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    settings = RunSettings(epochs=5, steps_per_epoch=7)
    plan = preview(replace(asked, settings=settings, recipe=Recipe(batch_size=8)))
    assert plan.estimate is None
    assert plan.notes[0] == NO_GPU
    assert (plan.batch_size, plan.steps_per_epoch, plan.epochs) == (8, 7, 5)
    assert plan.output.startswith("tfdyno-runs/train-")


def test_a_folder_that_is_taken_is_told_before_the_trace(
    asked: TrainRequest, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(UsageError, match="run holds a run already"):
        preview(asked, gpu="l4")
