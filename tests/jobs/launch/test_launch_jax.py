"""Trainings on Keras' JAX backend over processes and devices: split, killed, gone on with."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.jobs.launch.test_local import Kill

from tfdyno.cli.train.jax_options import jax_words
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.cluster.launch_plan import LaunchPlan
from tfdyno.core.train.device_mesh import read_mesh
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.layout import Rule, bytes_per_device, read_rules, unmatched
from tfdyno.jobs.launch.local import Launched, launch_local
from tfdyno.store.run_folder import RunFolder

pytestmark = pytest.mark.tf
SRC = str(Path(__file__).parents[3] / "src")
SCRIPT = """
import os
import sys
import time
import keras
import numpy as np

rank = int(os.environ.get("TFDYNO_RANK", "0"))

class Trouble(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(float(os.environ.get("PACE_S", "0")))

    def on_epoch_end(self, epoch, logs=None):
        if "drift" in sys.argv and rank == 1:
            import jax
            kernel = self.model.trainable_variables[0]
            parts = [shard.data + 1 for shard in kernel.value.addressable_shards]
            value = kernel.value
            kernel._value = jax.make_array_from_single_device_arrays(
                value.shape, value.sharding, parts)

rng = np.random.default_rng(rank if "other" in sys.argv else 0)
x = rng.normal(size=(317, 8)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([
    keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dropout(0.2),
    keras.layers.Dense(1),
])
model.compile("adam", "mse")
model.fit(x, y, batch_size=32, epochs=3, callbacks=[Trouble()])
if "after" in sys.argv:
    model.set_weights(model.get_weights())
    print("evaluated", model.evaluate(x, y, batch_size=31, verbose=0))
    print("predicted", float(np.mean((model.predict(x, verbose=0, batch_size=31) - y) ** 2)))
    model.save("after.keras")
"""
TRANSFORMER = """
import keras
import numpy as np

tokens = np.random.default_rng(0).integers(0, 64, size=(64, 33))
inputs = keras.Input((32,), dtype="int32")
hidden = keras.layers.Embedding(64, 32)(inputs)
for _ in range(2):
    told = keras.layers.MultiHeadAttention(4, 8)(hidden, hidden, use_causal_mask=True)
    hidden = keras.layers.LayerNormalization()(hidden + told)
    wide = keras.layers.Dense(128, "gelu")(hidden)
    hidden = keras.layers.LayerNormalization()(hidden + keras.layers.Dense(32)(wide))
model = keras.Model(inputs, keras.layers.Dense(64)(hidden))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(tokens[:, :-1], tokens[:, 1:], batch_size=16, epochs=2)
"""
ONE = JaxPlan(host_devices=1)
OVER_FOUR = JaxPlan(mesh=read_mesh("data=2,model=2"), host_devices=2)
UP = Rule(pattern=".*/dense/kernel", axes=("", "model"))


def plan(
    folder: Path, jax: JaxPlan, *words: str, script: str = SCRIPT, pace_s: float = 0.0, **given: Any
) -> LaunchPlan:
    (folder / "train.py").write_text(script)
    basic: dict[str, Any] = {
        "engine": "local", "name": "small", "reference": "train.py", "nodes": 2,
        "python": sys.executable, "folder": str(folder), "output": str(folder / "run"),
        "options": ("--set", "seed=7", "--checkpoint-every", "3", *jax_words(jax)),
        "script_arguments": words,
        "environment": (("PYTHONPATH", SRC), ("PACE_S", str(pace_s))),
    }  # fmt: skip
    return LaunchPlan(**{**basic, **given})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("undisturbed")
        patch.chdir(folder)
        return launch_local(plan(folder, OVER_FOUR, "after"))


def test_a_wrong_pattern_shows_up_before_the_first_step(here: Path) -> None:
    """One process, two devices; 317 samples leave a last batch of 29, in every epoch."""
    wrong = Rule(pattern=".*/dense_1/kernl", axes=("model", ""))
    jax = JaxPlan(mesh=read_mesh("model=2"), rules=(UP, wrong), host_devices=2)
    lines: list[str] = []
    found = launch_local(plan(here, jax, nodes=1), progress=lines.append).outcome
    told = [n for n, line in enumerate(lines) if line.startswith('{"event": "layout"')]
    steps = [n for n, line in enumerate(lines) if '"event": "epoch"' in line]
    assert told
    assert told[0] < steps[0]
    assert found.layout
    assert [one.path for one in unmatched(found.layout)] == ["sequential/dense_1/kernel"]
    assert found.layout.idle_rules == (".*/dense_1/kernl",)
    kernel = found.layout.weights[0]
    assert (kernel.shape, kernel.bytes) == ((8, 16), 512)
    assert bytes_per_device(kernel, found.layout.mesh) == 256
    assert (found.steps, found.updates, found.epochs, found.replica_count) == (30, 30, 3, 1)
    assert read_rules(here / "run/layout.toml") == (UP, wrong)
    assert found.software["jax"]


@pytest.mark.slow
def test_devices_and_processes_learn_what_one_device_learns(
    here: Path, undisturbed: Launched
) -> None:
    one = launch_local(plan(here, ONE, nodes=1)).outcome
    found = undisturbed.outcome
    assert (one.steps, found.steps, found.replica_count) == (30, 30, 2)
    assert found.history["loss"] == pytest.approx(one.history["loss"], rel=1e-5)
    assert found.history["loss"][-1] < found.history["loss"][0]
    assert one.layout is None
    data = JaxPlan(host_devices=4)
    again = launch_local(plan(here, data, nodes=1, output=str(here / "data"))).outcome
    assert again.history["loss"] == pytest.approx(one.history["loss"], rel=1e-5)
    assert again.replica_count == 4


@pytest.mark.slow
def test_a_proposed_layout_learns_what_one_device_learns(here: Path) -> None:
    one = launch_local(plan(here, ONE, nodes=1, script=TRANSFORMER)).outcome
    four = plan(here, OVER_FOUR, script=TRANSFORMER, output=str(here / "four"))
    found = launch_local(four).outcome
    assert found.history["loss"] == pytest.approx(one.history["loss"], rel=1e-5)
    assert found.layout
    assert found.layout.is_proposed
    assert unmatched(found.layout) == ()
    parts = {one.path: one.axes for one in found.layout.weights if any(one.axes)}
    assert parts["multi_head_attention/query/kernel"] == ("", "model", "")
    assert parts["dense/kernel"] == ("", "model")
    assert parts["dense_1/kernel"] == ("model", "")
    rules = read_rules(here / "four/layout.toml")
    kept = plan(here, replace(OVER_FOUR, rules=rules), script=TRANSFORMER,
                output=str(here / "kept"))  # fmt: skip
    again = launch_local(kept).outcome
    assert again.history == found.history
    assert again.layout
    assert [one.axes or ("",) * len(one.shape) for one in again.layout.weights] == [
        one.axes or ("",) * len(one.shape) for one in found.layout.weights
    ]


@pytest.mark.slow
def test_one_replica_over_two_processes_learns_what_one_device_learns(here: Path) -> None:
    one = launch_local(plan(here, ONE, nodes=1, script=TRANSFORMER)).outcome
    across = JaxPlan(mesh=read_mesh("model=2"), host_devices=1)
    asked = plan(here, across, script=TRANSFORMER, output=str(here / "across"))
    found = launch_local(asked).outcome
    assert found.history["loss"] == pytest.approx(one.history["loss"], rel=1e-5)


@pytest.mark.slow
def test_a_killed_worker_changes_no_loss(here: Path, undisturbed: Launched) -> None:
    kill = Kill(rank=1, step=14)
    asked = plan(here, OVER_FOUR, "after", pace_s=0.3, restarts=1)
    found = launch_local(asked, progress=kill.look, started=kill.started)
    assert kill.done
    assert len(found.failures) == 1
    assert "worker 1" in found.failures[0]
    assert found.outcome.resumed_from
    assert found.outcome.history == undisturbed.outcome.history
    assert kill.left() == []


@pytest.mark.slow
def test_ctrl_c_ends_it_with_a_checkpoint_and_other_devices_go_on(
    here: Path, undisturbed: Launched
) -> None:
    def interrupt(line: str) -> None:
        if '"epoch": 2' in line and not asked:
            asked.append(line)
            threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    asked: list[str] = []
    found = launch_local(plan(here, OVER_FOUR, pace_s=0.5), progress=interrupt)
    assert found.outcome.stopped == "SIGTERM"
    assert found.record.status == "stopped"
    assert 10 < found.outcome.steps < 30
    four = JaxPlan(mesh=read_mesh("model=4"), host_devices=4)
    again = launch_local(plan(here, four, nodes=1))
    losses = undisturbed.outcome.history["loss"]
    assert again.outcome.history["loss"] == pytest.approx(losses, rel=1e-5)
    assert any("another mesh" in note for note in again.outcome.notes)


@pytest.mark.slow
def test_what_the_script_does_afterwards_works_on_weights_that_no_process_has_whole(
    undisturbed: Launched,
) -> None:
    import zipfile

    folder = undisturbed.folder.parent
    assert undisturbed.outcome.model_path == str(undisturbed.folder / "model.keras")
    for path in (folder / "after.keras", undisturbed.folder / "model.keras"):
        assert "model.weights.h5" in zipfile.ZipFile(path).namelist()
    log = (undisturbed.folder / "logs/worker-1.log").read_text()
    evaluated = re.search(r"evaluated ([\d.]+)", log)
    predicted = re.search(r"predicted ([\d.]+)", log)
    assert evaluated
    assert predicted
    assert float(predicted[1]) == pytest.approx(float(evaluated[1]), rel=1e-5)


@pytest.mark.slow
def test_weights_that_drift_apart_are_an_error(here: Path) -> None:
    with pytest.raises(ToolError, match=r"weights of .*worker 1 have drifted apart"):
        launch_local(plan(here, JaxPlan(host_devices=1), "drift"))


@pytest.mark.slow
def test_processes_that_read_other_data_are_told(here: Path) -> None:
    with pytest.raises(UsageError, match="worker 1 read another first batch than worker 0"):
        launch_local(plan(here, JaxPlan(host_devices=1), "other"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "jax", "words"),
    [
        (SCRIPT, JaxPlan(host_devices=3), "a batch of 32 cannot be shared by 3 replicas"),
        (SCRIPT, JaxPlan(mesh=read_mesh("model=2"), rules=(Rule(pattern="x", axes=("",)),),
                         host_devices=2), "no rule of the layout matches a weight: .*dense/kernel"),
        (SCRIPT, JaxPlan(mesh=read_mesh("model=2"), host_devices=2,
                         rules=(Rule(pattern=".*", axes=("", "model")),)),
         r"the rule '\.\*' names 2 dimensions, and sequential/dense/bias has 1: "),
        ("import keras\nimport tensorflow as tf\nx = keras.Input((3,))\n"
         "y = keras.layers.Dense(2)(x)\nz = tf.nn.relu(y)\n", ONE,
         r"train\.py, line 5: tf\.nn\.relu cannot run on the JAX backend"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_one_sentence(
    script: str, jax: JaxPlan, words: str, here: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        launch_local(plan(here, jax, nodes=1, script=script))


@pytest.mark.slow
def test_a_run_on_one_backend_does_not_go_on_on_the_other(here: Path) -> None:
    launch_local(plan(here, ONE, nodes=1))
    asked = plan(here, ONE, nodes=1)
    with pytest.raises(UsageError, match="holds a run on JAX, not on TensorFlow"):
        launch_local(replace(asked, options=("--set", "seed=7")))
    assert RunFolder(here / "run").read()[0].status == "finished"
