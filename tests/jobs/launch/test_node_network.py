"""Two processes in network namespaces of their own: as on two machines, cable and all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs.launches import OPTIONS, SCRIPT, SRC, plan
from tests.jobs.namespaces import ADDRESSES, Cable, connected

from tfdyno.jobs.launch.local import launch_local
from tfdyno.store.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.slow]
PATIENCE_S = 600.0
TOLD_S = 120.0
"""TensorFlow gives up a worker after 10 s without a sign of life; this machine may be busy."""
Losses = dict[str, list[float]]


@dataclass(kw_only=True)
class Node:
    """One ``tfdyno node`` in its namespace, and what it has said so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    ended_s: float = 0.0

    def hear(self, told: Callable[[str], object]) -> None:
        assert self.process.stdout
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line)
                told(line)
        self.process.wait()
        self.ended_s = time.monotonic()


@pytest.fixture
def cable() -> Iterator[Cable]:
    with connected() as found:
        yield found


@pytest.fixture(scope="module")
def on_loopback(tmp_path_factory: pytest.TempPathFactory) -> Losses:
    folder = tmp_path_factory.mktemp("loopback")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return launch_local(plan(folder)).outcome.history


def trained(
    cable: Cable, folder: Path, *, pace_s: float = 0.0, told: Callable[[str], object] = len
) -> list[Node]:
    """Both nodes run to their end; ``told`` hears the events of worker 0."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(SCRIPT)
    where = ",".join(f"{address}:5000" for address in ADDRESSES)
    words = ["node", "train.py", "--output", "run", "--nodes", "2", "--gpus-per-node", "0"]
    nodes, threads = [], []
    for rank in range(2):
        variables = {"TFDYNO_WORKERS": where, "TFDYNO_RANK": str(rank)}
        variables |= {"PYTHONPATH": SRC, "PACE_S": str(pace_s)}
        command = [sys.executable, "-m", "tfdyno", *words, *OPTIONS, "--events"]
        process = subprocess.Popen(
            [*cable.inside(rank), *command],
            cwd=folder,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        nodes.append(Node(process=process))
        hear = (len if rank else told,)
        threads.append(threading.Thread(target=nodes[-1].hear, args=hear, daemon=True))
        threads[-1].start()
    try:
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "".join(line for node in nodes for line in node.lines)
    finally:
        for node in nodes:
            node.process.kill()
    return nodes


def losses(folder: Path) -> tuple[Any, ...]:
    """How the run ended, what it learned, and where it went on from."""
    record = RunFolder(folder / "run").read()[0]
    outcome = record.outcome
    return record.status, outcome["history"], outcome["resumed_from"]


def test_two_machines_learn_what_two_processes_of_one_learn(
    cable: Cable, tmp_path: Path, on_loopback: Losses
) -> None:
    nodes = trained(cable, tmp_path / "two")
    assert [node.process.returncode for node in nodes] == [0, 0], nodes[0].lines[-20:]
    assert losses(tmp_path / "two") == ("finished", on_loopback, "")


def test_a_network_that_parts_is_told_on_both_sides_and_goes_on_when_it_is_mended(
    cable: Cable, tmp_path: Path, on_loopback: Losses
) -> None:
    cut_s: list[float] = []

    def cut(line: str) -> None:
        if '"event": "steps"' in line and '"epoch": 2' in line and not cut_s:
            cable.cut()
            cut_s.append(time.monotonic())

    nodes = trained(cable, tmp_path / "parted", pace_s=0.3, told=cut)
    assert cut_s
    for rank, node in enumerate(nodes):
        assert node.process.returncode == 3
        assert node.ended_s - cut_s[0] < TOLD_S
        said = [line for line in node.lines if line.startswith("tfdyno: ")]
        assert len(said) == 1
        assert f"worker {rank} lost worker {1 - rank} while it trained" in said[0]
        assert "they go on from the newest checkpoint" in said[0]
    cable.mend()
    nodes = trained(cable, tmp_path / "parted")
    assert [node.process.returncode for node in nodes] == [0, 0], nodes[0].lines[-20:]
    status, found, resumed_from = losses(tmp_path / "parted")
    assert (status, found) == ("finished", on_loopback)
    assert resumed_from
