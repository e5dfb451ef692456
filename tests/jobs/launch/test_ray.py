"""Ray Train runs the training here: equal to other engines, through kills and a lost head."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.cluster.cluster import LOOPBACK
from tfdyno.core.cluster.launch_plan import LaunchPlan
from tfdyno.engines.rendezvous.tf_config import free_ports
from tfdyno.jobs.launch.local import Launched, launch_local
from tfdyno.jobs.launch.ray import launch_ray

if TYPE_CHECKING:
    from collections.abc import Iterator

HAS_RAY = importlib.util.find_spec("ray") is not None
RAY = os.environ.get("TFDYNO_RAY_PYTHON", sys.executable if HAS_RAY else "")
with_ray = pytest.mark.skipif(not RAY, reason="no Ray here, and TFDYNO_RAY_PYTHON names none")
pytestmark = [pytest.mark.tf]
SCRIPT = """
import os
import time
import keras
import numpy as np

class Pace(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(float(os.environ.get("PACE_S", "0")))

x = np.random.default_rng(0).normal(size=(320, 8)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([
    keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dropout(0.2),
    keras.layers.Dense(1),
])
model.compile("adam", "mse")
model.fit(x, y, batch_size=32, epochs=3, callbacks=[Pace()])
"""
OPTIONS = ("--set", "seed=7", "--checkpoint-every", "3", "--no-model")
SRC = str(Path(__file__).parents[3] / "src")
SEED = 20261123
"""Of the moments of kills; another number is another kill."""
HEAD_S = 120.0


@pytest.fixture(autouse=True)
def short_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The names of Ray's sockets may have 107 characters."""
    place = tempfile.mkdtemp(prefix="r", dir="/tmp")
    monkeypatch.setenv("RAY_TMPDIR", place)
    monkeypatch.setenv("HOME", place)
    monkeypatch.setenv("PYTHONPATH", SRC)
    yield
    assert not (Path(place) / ".ray").exists()  # a token there would be that of every cluster
    shutil.rmtree(place, ignore_errors=True)


PLANTED = Path(__file__).parents[2] / "data/xla"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(folder: Path, *, pace_s: float = 0.0, **given: Any) -> LaunchPlan:
    (folder / "train.py").write_text(SCRIPT)
    basic: dict[str, Any] = {
        "engine": "ray", "name": "small", "reference": "train.py", "nodes": 2, "python": RAY,
        "folder": str(folder), "output": str(folder / "run"), "options": OPTIONS,
        "environment": (("PACE_S", str(pace_s)),),
    }  # fmt: skip
    return LaunchPlan(**{**basic, **given})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    """Without Ray."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("undisturbed")
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", SRC)
        return launch_local(plan(folder, engine="local", python=sys.executable))


class Kill:
    """SIGKILL to what a worker of Ray is, or has started, at a step of worker 0."""

    def __init__(self, *, rank: int, step: int, whole: bool) -> None:
        self.rank, self.step, self.whole = rank, step, whole
        self.done = False
        self.workers: dict[int, int] = {}
        self.seen: set[int] = set()

    def started(self, rank: int, pid: int) -> None:
        self.workers[rank] = pid

    def look(self, line: str) -> None:
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if event["event"] != "steps":
                return
            self.note()
            if not self.done and (event["epoch"] - 1) * 10 + event["step"] >= self.step:
                self.done = True
                for one in self.found():
                    one.kill()

    def found(self) -> list[psutil.Process]:
        worker = psutil.Process(self.workers[self.rank])
        trainers = [one for one in worker.children(recursive=True)
                    if "tfdyno.runtime.train.child" in one.cmdline()]  # fmt: skip
        return [worker] if self.whole else trainers

    def note(self) -> None:
        for pid in self.workers.values():
            with contextlib.suppress(psutil.Error):
                self.seen |= {pid} | {c.pid for c in psutil.Process(pid).children(recursive=True)}

    def left(self) -> list[int]:
        """Processes that outlive the launch by some seconds."""
        until_s = time.monotonic() + 60
        while found := [pid for pid in self.seen if psutil.pid_exists(pid)]:
            if time.monotonic() > until_s:
                return found
            time.sleep(0.1)
        return []


@with_ray
@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["worker of Ray", "TensorFlow"])
def test_a_killed_worker_changes_no_loss(whole: bool, here: Path, undisturbed: Launched) -> None:
    """It is killed at a random step, and all go on from the newest checkpoint."""
    chance = random.Random(SEED + whole)
    kill = Kill(rank=chance.randrange(2), step=chance.randrange(12, 28), whole=whole)
    lines: list[str] = []
    found = launch_ray(
        plan(here, pace_s=0.1, restarts=1),
        progress=kill.look,
        output=lines.append,
        started=kill.started,
    )
    assert kill.done
    assert len(found.failures) == 1
    assert f"worker {kill.rank}" in found.failures[0]
    assert "killed" in found.failures[0]
    assert any("begin again from the newest checkpoint, 0 more times" in line for line in lines)
    assert found.outcome.resumed_from
    assert found.outcome.history == undisturbed.outcome.history
    assert (found.outcome.steps, found.outcome.replica_count) == (30, 2)
    assert kill.left() == []


@with_ray
@pytest.mark.slow
def test_ray_keeps_the_metrics_of_each_epoch(here: Path, undisturbed: Launched) -> None:
    lines: list[str] = []
    found = launch_ray(plan(here), progress=lines.append)
    assert found.outcome.history == undisturbed.outcome.history
    told = [json.loads(line) for line in lines if line.startswith("{")]
    assert [one["epoch"] for one in told if one["event"] == "epoch"] == [1, 2, 3]
    (kept,) = (here / "run" / "ray").glob("*/checkpoint_manager_snapshot.json")
    results = json.loads(kept.read_text())["checkpoint_results"]
    losses = [one["metrics"]["loss"] for one in results]
    assert losses == pytest.approx(found.outcome.history["loss"], rel=1e-5)


@with_ray
@pytest.mark.slow
def test_ctrl_c_ends_it_with_a_checkpoint(here: Path, undisturbed: Launched) -> None:
    kill = Kill(rank=0, step=1000, whole=False)

    def interrupt(line: str) -> None:
        kill.look(line)
        if '"epoch": 2' in line and not asked:
            asked.append(line)
            threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    asked: list[str] = []
    found = launch_ray(plan(here, pace_s=0.2), progress=interrupt, started=kill.started)
    assert found.outcome.stopped == "SIGTERM"
    assert found.record.status == "stopped"
    assert kill.left() == []
    again = launch_ray(plan(here))
    assert again.outcome.history == undisturbed.outcome.history


@with_ray
@pytest.mark.slow
def test_a_launch_that_is_killed_leaves_nothing(here: Path) -> None:
    (here / "train.py").write_text(SCRIPT)
    words = [sys.executable, "-m", "tfdyno", "launch", "train.py", "--on", "ray", "--nodes", "2",
             "--python", RAY, "--env", "PACE_S=0.3", "--output", "run", "-v"]  # fmt: skip
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as launch:
        assert launch.stderr
        told = next((line for line in launch.stderr if "epoch 1/3" in line), "")
        children = psutil.Process(launch.pid).children(recursive=True)
        launch.kill()
    assert told
    assert sum("tfdyno.runtime.train.child" in " ".join(words_of(one)) for one in children) == 2
    _, alive = psutil.wait_procs(children, timeout=30)
    assert [words_of(one) for one in alive] == []


def words_of(process: psutil.Process) -> list[str]:
    """Empty once it has ended."""
    with contextlib.suppress(psutil.Error):
        return list(process.cmdline())
    return []


@with_ray
@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "words"), [(1, "it is run again"), (2, "started again, it runs")]
)
def test_a_compile_that_fails_inside_xla_is_run_a_step_back(
    here: Path, nodes: int, words: str
) -> None:
    asked = plan(here, script_arguments=("workers",), options=("--set", "seed=1"), nodes=nodes)
    for name in ("planted_fault.py", "symbolic_tile.log"):
        shutil.copy(PLANTED / name, here)
    (here / "planted_fault.py").rename(here / "train.py")
    said: list[str] = []
    run = launch_ray(asked, output=said.append)
    assert [one.step for one in run.outcome.retreats] == ["no_triton", "no_autotuning"]
    assert [one.step for one in run.record.retreats] == ["no_triton", "no_autotuning"]
    assert run.failures == ()
    assert (run.record.status, len(run.outcome.history["loss"])) == ("finished", 2)
    assert any(f"{words} with kernels that were not measured" in x for x in said), said


@with_ray
@pytest.mark.slow
def test_wrong_use_is_not_tried_again(here: Path) -> None:
    asked = replace(plan(here, restarts=3), options=("--set", "strategy=ps"))
    lines: list[str] = []
    with pytest.raises(UsageError, match="strategy = ps does not train on 2 nodes"):
        launch_ray(asked, output=lines.append)
    assert not any("begin again" in line for line in lines)


class Head:
    """The head of a Ray cluster on loopback."""

    def __init__(self, place: Path) -> None:
        self.place, self.port = place, free_ports(1)[0]
        self.popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = [RAY, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2",
                 f"--node-ip-address={LOOPBACK}", f"--port={self.port}",
                 "--include-dashboard=false", "--disable-usage-stats"]  # fmt: skip
        with (self.place / "head.log").open("ab") as log:
            self.popen = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """All that belongs to Ray, and nothing that its workers have started."""
        assert self.popen
        with contextlib.suppress(psutil.NoSuchProcess):
            head = psutil.Process(self.popen.pid)
            for one in [*head.children(recursive=True), head]:
                with contextlib.suppress(psutil.Error):
                    if "tfdyno" not in " ".join(one.cmdline()):
                        one.kill()
        self.popen.wait()


@pytest.fixture
def head(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Head]:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    made = Head(here)
    made.start()
    yield made
    made.kill()


@with_ray
@pytest.mark.slow
def test_a_head_that_is_started_again_changes_no_loss(
    here: Path, head: Head, undisturbed: Launched
) -> None:
    """Once the launch itself waits for it, once the same command is given again."""
    kill = Kill(rank=0, step=1000, whole=False)
    killed: list[str] = []

    def look(line: str) -> None:
        kill.look(line)
        if '"event": "steps"' in line and f'"epoch": {len(killed) + 1}' in line:
            killed.append(line)
            head.kill()
            if len(killed) == 1:
                head.start()

    address = f"{LOOPBACK}:{head.port}"
    asked = plan(here, pace_s=0.15, restarts=1, extra=(("address", address),))
    until_s = time.monotonic() + HEAD_S
    while b"Ray runtime started" not in (here / "head.log").read_bytes():
        assert time.monotonic() < until_s, (here / "head.log").read_text()
        time.sleep(0.5)
    with pytest.raises(ToolError) as caught:
        launch_ray(asked, progress=look, started=kill.started)
    assert len(killed) == 2
    assert "goes on from its newest checkpoint" in " ".join(caught.value.__notes__)
    assert kill.left() == []
    head.start()
    time.sleep(1)
    again = launch_ray(replace(asked, environment=(), restarts=1))
    assert again.outcome.resumed_from
    assert again.outcome.history == undisturbed.outcome.history


@pytest.mark.skipif(HAS_RAY, reason="Ray is here")
def test_without_ray_it_is_told_how_to_get_it(here: Path) -> None:
    with pytest.raises(UsageError, match=r"install tfdyno\[ray\]"):
        launch_ray(plan(here, python=sys.executable))
