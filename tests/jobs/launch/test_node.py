"""One process of several: what is wrong between them is named before TensorFlow starts."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings, TrainOutcome
from tfdyno.engines.rendezvous.tf_config import free_ports
from tfdyno.jobs.launch.node import NodeEnd, NodeRequest, facts_of, node
from tfdyno.jobs.train.train import TrainRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = "raise SystemExit('TensorFlow must not have started')\n"
SRC = str(Path(__file__).parents[3] / "src")
PATIENCE_S = 60.0


@dataclass(kw_only=True)
class Nodes:
    """Real processes of ``tfdyno node``, each in a folder."""

    folder: Path
    ports: tuple[int, ...]
    processes: list[subprocess.Popen[str]]

    def start(
        self,
        rank: int,
        *words: str,
        count: int = 2,
        output: str = "run",
        script: str = "train.py",
        packages: str = SRC,
    ) -> subprocess.Popen[str]:
        where = ",".join(f"127.0.0.1:{port}" for port in self.ports[:count])
        told = {"TFDYNO_WORKERS": where, "TFDYNO_RANK": str(rank), "PYTHONPATH": packages}
        command = ["node", script, "--output", output, "--nodes", str(count)]
        process = subprocess.Popen(
            [sys.executable, "-m", "tfdyno", *command, "--gpus-per-node", "0", *words],
            cwd=self.folder,
            env={**os.environ, **told},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    (tmp_path / "train.py").write_text(SCRIPT)
    made = Nodes(folder=tmp_path, ports=free_ports(3), processes=[])
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], limit_s: float = PATIENCE_S) -> tuple[int, str]:
    out, _ = process.communicate(timeout=limit_s)
    return process.returncode, " ".join(out.split())


def test_a_port_that_is_taken_is_named(nodes: Nodes) -> None:
    with socket.create_server(("", nodes.ports[0])):
        code, text = ended(nodes.start(0))
    assert code == 3
    assert f"port {nodes.ports[0]} of worker 0 is taken" in text


def test_a_rank_that_is_there_twice_is_named(nodes: Nodes) -> None:
    """The two have ports of their own, as on two machines; both say that they are worker 1."""
    first = nodes.start(0, count=3)
    second = nodes.start(1, count=3)
    nodes.ports = (nodes.ports[0], *free_ports(1), nodes.ports[2])
    third = nodes.start(1, count=3)
    found = [ended(process) for process in (first, second, third)]
    assert [code for code, _ in found] == [2, 2, 2]
    assert all("worker 1 is there twice: it is process" in text for _, text in found)


def test_a_node_with_another_script_is_named(nodes: Nodes) -> None:
    (nodes.folder / "old").mkdir()
    (nodes.folder / "old" / "train.py").write_text(SCRIPT + "# older\n")
    found = [ended(each) for each in (nodes.start(0), nodes.start(1, script="old/train.py"))]
    assert [code for code, _ in found] == [2, 2]
    assert all("the nodes do not run the same: train.py" in text for _, text in found)


def test_a_node_with_another_version_is_named(nodes: Nodes) -> None:
    """What is installed there says so of itself."""
    there = nodes.folder / "packages"
    about = there / "tensorflow-2.20.0.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.20.0\n")
    packages = os.pathsep.join([str(there), SRC])
    found = [ended(each) for each in (nodes.start(0), nodes.start(1, packages=packages))]
    assert [code for code, _ in found] == [2, 2]
    said = r"the nodes do not run the same: tensorflow [\d.]+ on worker 0, 2\.20\.0 on worker 1"
    assert all(re.search(said, text) for _, text in found)


def test_a_folder_that_is_not_shared_is_named(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_SHARED_S", "1")
    found = [ended(each) for each in (nodes.start(0), nodes.start(1, output="elsewhere"))]
    assert [code for code, _ in found] == [2, 2]
    assert all("is not the same folder as on worker 0" in text for _, text in found)


def test_a_worker_that_does_not_come_is_named(nodes: Nodes) -> None:
    code, text = ended(nodes.start(0, "--wait", "1s"))
    assert code == 3
    assert "worker 1 did not come within 1 s" in text
    assert "No checkpoint was written" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--set", "strategy=ps"), "strategy = ps does not train on 2 nodes"),
        (("--wait", "soon"), "--wait soon cannot be read"),
        (("--gpus-per-node", "64"), "and the plan 64"),
        (("--recipe", "auto"), "--recipe auto asks this machine"),
    ],
)
def test_what_a_node_cannot_do_is_refused(
    words: tuple[str, ...], sentence: str, nodes: Nodes
) -> None:
    code, text = ended(nodes.start(0, *words))
    assert code == 2
    assert sentence in text


DYING = """
import json, os, signal, time
import keras
import numpy as np
import tensorflow as tf

rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
steps = []

def dies(value):
    steps.append(1)
    if len(steps) == 4:
        time.sleep(2)  # until the other one waits in the exchange
        os.kill(os.getpid(), signal.SIGKILL)
    return value

def loss(y, p):
    if rank == 1:
        p = tf.grad_pass_through(lambda v: tf.numpy_function(dies, [v], tf.float32))(p)
        p = tf.ensure_shape(p, y.shape)
    return keras.losses.mean_squared_error(y, p)

x = np.ones((320, 8), "float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", loss)
model.fit(x, x[:, :1], batch_size=32, epochs=3)
"""


@pytest.mark.tf
@pytest.mark.slow
def test_who_is_left_when_another_is_killed_says_so_and_may_begin_again(nodes: Nodes) -> None:
    """No engine is there that would end it."""
    (nodes.folder / "train.py").write_text(DYING)
    found = [ended(each, 300.0) for each in (nodes.start(0), nodes.start(1))]
    assert [code for code, _ in found] == [3, 3]
    assert "worker 0 lost" in found[0][1]
    assert "UnavailableError: Collective ops is aborted by" in found[0][1]
    assert "they go on from the newest checkpoint" in found[0][1]
    assert "it was killed" in found[1][1]


def test_facts_name_the_versions_and_the_file(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    facts = facts_of(Workload(reference=str(script), kind="script"))
    assert facts["tensorflow"].count(".") == 2
    assert len(facts["train.py"]) == 12
    other = facts_of(Workload(reference=str(script), kind="script", python="/usr/bin/python3"))
    assert "tensorflow" not in other


def test_a_node_needs_the_folder_of_the_run(tmp_path: Path) -> None:
    from tfdyno.core.base.errors import UsageError

    workload = Workload(reference="train.py", kind="script")
    request = TrainRequest(workload=workload, recipe=Recipe(), settings=RunSettings())
    with pytest.raises(UsageError, match="name it with --output"):
        node(NodeRequest(request=request), environment={})


@pytest.mark.parametrize(
    ("stopped", "unfinished"),
    [("", False), ("NaN loss", False), ("NaN weights", False), ("SIGTERM", True)],
)
def test_what_was_ended_from_outside_goes_on(stopped: str, unfinished: bool) -> None:
    outcome = TrainOutcome(history={}, epochs=0, steps=0, updates=0, stopped=stopped)
    assert NodeEnd(rank=0, outcome=outcome, trained=None).is_unfinished is unfinished
    assert not NodeEnd(rank=1, outcome=outcome, trained=None).is_unfinished
