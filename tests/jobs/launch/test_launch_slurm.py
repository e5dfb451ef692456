"""The batch script on a real Slurm of two nodes: it trains, goes on after a kill, and in time."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from tests.jobs.slurm_cluster import Cluster, cluster, missing

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.hostlist import expand_hosts
from tfdyno.core.cluster.cluster import LOOPBACK
from tfdyno.core.cluster.launch_plan import LaunchPlan
from tfdyno.engines.rendezvous.tf_config import free_ports
from tfdyno.jobs.launch.launch import submitted, written

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.tf,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm here: {missing()}"),
]
SCRIPT = """
import os
import time
import keras
import numpy as np

class Pace(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(float(os.environ["PACE_S"]))

x = np.random.default_rng(0).normal(size=(256, 8)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, batch_size=32, epochs=int(os.environ["EPOCHS"]), callbacks=[Pace()])
"""
OPTIONS = ("--set", "seed=7", "--checkpoint-every", "2", "--no-model")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, slurm: Cluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(folder: Path, *, pace_s: float = 0.0, epochs: int = 2, **settings: Any) -> LaunchPlan:
    """Both nodes are this machine: each process has a port of its own."""
    workers = ",".join(f"{LOOPBACK}:{port}" for port in free_ports(2))
    given = {
        "PACE_S": str(pace_s), "EPOCHS": str(epochs), "TFDYNO_WORKERS": workers,
        "PYTHONPATH": str(Path(__file__).parents[3] / "src"),
    }  # fmt: skip
    return LaunchPlan(
        engine="slurm",
        name="small",
        reference="train.py",
        nodes=2,
        python=sys.executable,
        folder=str(folder),
        output="run",
        options=OPTIONS,
        environment=tuple(given.items()),
        **settings,
    )


def history(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run" / "history.json").read_text())
    return found


def log(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("small-*.log"))


@pytest.fixture(scope="module")
def undisturbed(slurm: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("undisturbed")
        (folder / "train.py").write_text(SCRIPT)
        patch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
        patch.chdir(folder)
        _, number = submitted(plan(folder, epochs=3), folder)
        job = slurm.wait(number, "COMPLETED", "FAILED", limit_s=120)
        assert job["JobState"] == "COMPLETED", log(folder)
        assert "worker 1 of 2, as TFDYNO_WORKERS says" in log(folder) or "loss" in log(folder)
        return history(folder)


def test_two_nodes_train_as_one(undisturbed: dict[str, Any]) -> None:
    assert len(undisturbed["loss"]) == 3
    assert undisturbed["loss"][-1] < undisturbed["loss"][0]


def test_a_killed_worker_changes_no_loss(
    folder: Path, slurm: Cluster, undisturbed: dict[str, Any]
) -> None:
    _, number = submitted(plan(folder, pace_s=0.3, epochs=3, restarts=1), folder)
    wait_for_step(folder, 10)
    victim = next(one for one in trainers(folder) if one.environ()["SLURM_PROCID"] == "1")
    victim.kill()
    job = slurm.wait(number, "COMPLETED", "FAILED", limit_s=180)
    assert job["JobState"] == "COMPLETED", log(folder)
    assert "going on from its checkpoint, 0 more times" in log(folder)
    assert history(folder) == undisturbed


def test_the_end_of_the_time_writes_a_checkpoint_and_the_job_goes_on(
    folder: Path, slurm: Cluster
) -> None:
    _, number = submitted(plan(folder, pace_s=0.5, epochs=40, time_limit_s=180.0), folder)
    job = slurm.wait(number, "PENDING", "FAILED", "COMPLETED", limit_s=240, restarts=1)
    assert job["JobState"] == "PENDING", log(folder)
    assert "stopped with a checkpoint, and queued again" in log(folder)
    record = json.loads((folder / "run" / "run.json").read_text())
    assert record["status"] == "stopped"
    steps = record["outcome"]["steps"]
    slurm.wait(number, "RUNNING", limit_s=120)
    wait_for_step(folder, steps + 4)
    slurm.run("scancel", number)
    again = json.loads((folder / "run" / "run.json").read_text())
    assert again["sittings"] >= 2  # Slurm may send its signal a minute early


def test_slurm_accepts_the_script_and_refuses_too_many_nodes(folder: Path, slurm: Cluster) -> None:
    good = written(plan(folder), folder)
    slurm.run("sbatch", "--test-only", str(good))
    many = written(replace(plan(folder), name="many", nodes=9), folder)
    with pytest.raises(AssertionError, match="allocation failure"):
        slurm.run("sbatch", "--test-only", str(many))
    with pytest.raises(UsageError, match=r"sbatch refuses.*invalid partition"):
        submitted(replace(plan(folder), extra=(("partition", "nowhere"),)), folder)


def test_host_lists_expand_as_slurm_expands_them(slurm: Cluster) -> None:
    for text in ("n[1-3,7]", "a1,b[08-11]", "r[1-2]n[1-2]"):
        assert " ".join(expand_hosts(text)) == " ".join(
            slurm.run("scontrol", "show", "hostnames", text).split()
        )


def wait_for_step(folder: Path, step: int) -> None:
    until_s = time.monotonic() + 120
    while not any(
        int(path.stem.rpartition("-")[2]) >= step
        for path in (folder / "run/checkpoints").glob("step-*.json")
    ):
        assert time.monotonic() < until_s, log(folder)
        time.sleep(0.05)


def trainers(folder: Path) -> list[psutil.Process]:
    """The processes that train in this folder."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "tfdyno.runtime.train.child" in one.cmdline() and Path(one.cwd()) == folder:
                found.append(one)
    return found
