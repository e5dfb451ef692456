"""``tfdyno train`` on Keras' JAX backend: the same command, folder and answers as on TensorFlow."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import NO_GPU

from tfdyno.cli.main import main
from tfdyno.core.base.codec import to_json
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.store.run_folder import RunFolder, RunRecord

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy as np
x = np.random.default_rng(0).normal(size=(256, 8)).astype("float32")
y = x.sum(1, keepdims=True)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, name="head")], name="line")
model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
print("trains on", keras.backend.backend())
model.fit(x, y, epochs=2, validation_data=(x, y))
"""
LOOP = """
import keras
import tensorflow as tf
class Own(keras.layers.Layer):
    def call(self, x): return tf.nn.relu(x)
model = keras.Sequential([keras.Input((8,)), Own()])
model.compile("adam", "mse")
model.fit([[1.0] * 8], [[1.0] * 8])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def tfdyno(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfdyno", *words],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.tf
def test_a_script_that_sets_jax_trains_there_and_goes_on_there(folder: Path) -> None:
    done = tfdyno("train", "train.py", "--output", "run", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "It trains on JAX, which line 3 of train.py names." in told["notes"]
    assert {"name": "backend", "asked": "jax"}.items() <= told["applied"][0].items()
    assert "trains on jax" in done.stderr
    assert len(told["history"]["val_mae"]) == 2
    assert (folder / "run/model.keras").exists()
    assert "trains on jax" in (folder / "run/logs/worker-0.log").read_text()
    (folder / "train.py").write_text(SCRIPT.replace('"jax"', '"tensorflow"'))
    done = tfdyno("train", "train.py", "--output", "run", "--resume", "--epochs", "3", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["history"]["val_mae"]) == 3
    assert told["applied"][0]["asked"] == "jax"
    assert "train.py has changed since the run was started." in told["notes"]


@pytest.mark.tf
def test_a_dry_run_says_on_which_backend_and_estimates_its_step(folder: Path) -> None:
    done = tfdyno("train", "train.py", "--dry-run", "--gpu", "l4", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["steps_per_epoch"], told["estimate"]["gpu"]) == (8, "l4")
    assert "It trains on JAX, which line 3 of train.py names." in told["notes"]
    assert not (folder / "tfdyno-runs").exists()


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["train", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    return err


def kept(folder: Path, jax: JaxPlan | None) -> None:
    """The folder of a run that has ended."""
    run = RunFolder(folder / "run")
    run.path.mkdir()
    workload = Workload(reference="train.py", kind="script", mode="train")
    record = RunRecord(workload=workload, folder=str(folder), jax=jax, status="stopped")
    (run.path / "run.json").write_bytes(to_json(record))
    run.write_recipe(Recipe(seed=1))


@pytest.mark.parametrize(
    ("jax", "backend", "said"),
    [
        (JaxPlan(), "tensorflow", "run holds a run on JAX, not on TensorFlow; leave --backend out"),
        (None, "jax", "run holds a run on TensorFlow, not on JAX; leave --backend out to go on"),
    ],
)
def test_the_other_backend_does_not_go_on_with_a_run(
    jax: JaxPlan | None,
    backend: str,
    said: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept(folder, jax)
    words = ("train.py", "--output", "run", "--resume", "--backend", backend)
    assert said in refused(capsys, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "torch"], "backend 'torch' is not one of tensorflow, jax"),
        (["--backend", "tensorflow", "--mesh", "model=2"], "--mesh does nothing on the TensorFlow"),
        (["--norms", "5"], "--norms does not go with the JAX backend"),
        (["--set", "strategy=mirrored"], "strategy = mirrored means nothing on the JAX backend"),
    ],
)
def test_wrong_use_is_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "train.py", *words)


def test_a_script_of_tensorflow_alone_is_told_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "loop.py").write_text(LOOP)
    said = refused(capsys, "loop.py", "--backend", "jax")
    assert "loop.py cannot train on the JAX backend: line 5, tf.nn.relu: " in said
