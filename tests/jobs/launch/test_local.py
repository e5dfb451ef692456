"""Processes that stand for nodes: killed, slow, drifting, ended; what they learn stays the same."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from tests.jobs.launches import plan

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import TrainOutcome
from tfdyno.engines.rendezvous.tf_config import free_ports
from tfdyno.jobs.launch.local import Launched, launch_local
from tfdyno.store.run_folder import RunFolder, RunRecord

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.cluster.launch_plan import LaunchPlan

pytestmark = pytest.mark.tf
SEED = 20261123
"""Of the moments of kills; another number is another kill."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    """One worker is slow, which changes no number."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("undisturbed")
        patch.chdir(folder)
        return launch_local(plan(folder, "slow", "late"))


def test_nobody_leaves_while_another_is_in_its_script(undisturbed: Launched) -> None:
    assert (undisturbed.folder.parent / "still-there").exists()


def test_the_worker_that_the_others_wait_for_is_named(undisturbed: Launched) -> None:
    (note,) = [note for note in undisturbed.outcome.notes if "holds the others up" in note]
    assert "worker 1 holds the others up: they wait" in note
    assert "worker 0 holds" not in note


def test_two_nodes_train_as_two_replicas(undisturbed: Launched) -> None:
    outcome = undisturbed.outcome
    assert (outcome.epochs, outcome.steps, outcome.replica_count) == (3, 30, 2)
    assert outcome.history["loss"][-1] < outcome.history["loss"][0]
    assert undisturbed.recipe.strategy == "multiworker"
    assert undisturbed.failures == ()


def test_a_killed_worker_changes_no_loss(here: Path, undisturbed: Launched) -> None:
    """It is killed at a random step, and all go on from the newest checkpoint."""
    chance = random.Random(SEED)
    kill = Kill(rank=chance.randrange(2), step=chance.randrange(12, 28))
    found = launch_local(
        plan(here, "slow", pace_s=0.1, restarts=1), progress=kill.look, started=kill.started
    )
    assert kill.done
    assert len(found.failures) == 1
    assert f"worker {kill.rank}" in found.failures[0]
    assert "it was killed" in found.failures[0]
    assert found.outcome.resumed_from
    assert found.outcome.history == undisturbed.outcome.history
    assert kill.left() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_kills_at_other_moments_change_no_loss(
    number: int, here: Path, undisturbed: Launched
) -> None:
    chance = random.Random(SEED + number + 1)
    kill = Kill(rank=chance.randrange(2), step=chance.randrange(1, 29), whole=number == 2)
    found = launch_local(
        plan(here, "slow", pace_s=0.1, restarts=2), progress=kill.look, started=kill.started
    )
    assert kill.done
    assert found.outcome.history == undisturbed.outcome.history
    assert kill.left() == []


@pytest.mark.slow
def test_without_restarts_the_failure_is_told_and_the_next_launch_goes_on(
    here: Path, undisturbed: Launched
) -> None:
    kill = Kill(rank=1, step=14)
    asked = plan(here, "slow", pace_s=0.1)
    with pytest.raises(ToolError, match=r"worker 1.*it was killed") as caught:
        launch_local(asked, progress=kill.look, started=kill.started)
    assert "goes on from its newest checkpoint" in " ".join(caught.value.__notes__)
    assert launch_local(asked).outcome.history == undisturbed.outcome.history


@pytest.mark.slow
def test_replicas_that_drift_apart_are_an_error(here: Path) -> None:
    with pytest.raises(ToolError, match="weights of worker 0 and worker 1 have drifted apart"):
        launch_local(plan(here, "drift"))


@pytest.mark.slow
def test_a_callback_of_one_worker_ends_the_training_of_all(here: Path) -> None:
    found = launch_local(plan(here, "enough"))
    assert (found.outcome.epochs, found.outcome.steps) == (2, 20)
    assert found.record.status == "finished"


@pytest.mark.slow
def test_ctrl_c_ends_it_with_a_checkpoint(here: Path, undisturbed: Launched) -> None:
    def interrupt(line: str) -> None:
        if '"epoch": 2' in line and not asked:
            asked.append(line)
            threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    asked: list[str] = []
    found = launch_local(plan(here, "slow", pace_s=0.2), progress=interrupt)
    assert found.outcome.stopped == "SIGTERM"
    assert found.record.status == "stopped"
    again = launch_local(plan(here, "slow"))
    assert again.outcome.history == undisturbed.outcome.history


def test_wrong_use_is_not_tried_again(here: Path) -> None:
    asked = replace(plan(here, restarts=3), options=("--set", "strategy=ps"))
    lines: list[str] = []
    with pytest.raises(UsageError, match="strategy = ps does not train on 2 nodes"):
        launch_local(asked, output=lines.append)
    assert not any("begin again" in line for line in lines)


def test_a_port_that_is_taken_is_named(here: Path) -> None:
    import socket

    (port,) = free_ports(1)
    with (
        socket.create_server(("", port)),
        pytest.raises(ToolError, match=f"port {port} of worker 0 is taken"),
    ):
        launch_local(plan(here, port=port))


class Kill:
    """SIGKILL to the process that trains of one rank, at a step of worker 0."""

    def __init__(self, *, rank: int, step: int, whole: bool = False) -> None:
        self.rank, self.step, self.whole = rank, step, whole
        self.done = False
        self.nodes: dict[int, int] = {}
        self.seen: set[int] = set()

    def started(self, rank: int, pid: int) -> None:
        self.nodes[rank] = pid

    def look(self, line: str) -> None:
        import json

        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if event["event"] != "steps":
                return
            self.note()
            done = (event["epoch"] - 1) * 10 + event["step"]
            if not self.done and done >= self.step:
                self.done = True
                for one in self.trainers():
                    one.kill()

    def trainers(self) -> list[psutil.Process]:
        node = psutil.Process(self.nodes[self.rank])
        found = node.children(recursive=True)
        return [node] if self.whole else [one for one in found if trains(one)]

    def note(self) -> None:
        for pid in self.nodes.values():
            with contextlib.suppress(psutil.Error):
                self.seen |= {one.pid for one in psutil.Process(pid).children(recursive=True)}

    def left(self) -> list[int]:
        """Processes that outlive the launch by some seconds."""
        until_s = time.monotonic() + 60
        while found := [pid for pid in self.seen if psutil.pid_exists(pid)]:
            if time.monotonic() > until_s:
                return found
            time.sleep(0.1)
        return []


def trains(process: psutil.Process) -> bool:
    """Whether it is the child that trains, on whichever backend."""
    children = ("tfdyno.runtime.train.child", "tfdyno.runtime.train_jax.child")
    return any(word in children for word in process.cmdline())


def stand_in(folder: Path, words: str, **given: Any) -> LaunchPlan:
    """A plan whose interpreter is a script."""
    program = folder / "python"
    program.write_text(
        f"#!/bin/bash\necho $PWD ${{SLURM_PROCID-none}} >> '{folder}/calls'\n{words}\n"
    )
    program.chmod(0o755)
    return plan(folder, **{"python": str(program), "nodes": 1, **given})


@pytest.mark.parametrize("words", ["exit 1", "exit 0", "exit 75"])
def test_an_end_without_a_result_is_a_failure_beside_an_older_run(words: str, here: Path) -> None:
    older = RunFolder(here / "run")
    older.prepare()
    older.write_recipe(Recipe())
    outcome = TrainOutcome(history={"loss": [1.0]}, epochs=1, steps=1, updates=1)
    work = Workload(reference="train.py", kind="script", mode="train")
    older.write(RunRecord(workload=work, status="finished", outcome=to_builtins(outcome)))
    assert older.read()[0].status == "finished"
    with pytest.raises(ToolError, match=r"training train\.py"):
        launch_local(stand_in(here, words))


def test_it_runs_in_the_workdir_and_not_as_a_part_of_another_job(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_PROCID", "3")
    (here / "inner").mkdir()
    with pytest.raises(ToolError):
        launch_local(replace(stand_in(here, "exit 1"), folder=str(here / "inner")))
    assert (here / "calls").read_text() == f"{here}/inner none\n"


def test_the_time_limit_is_one_for_all_tries_and_leaves_time_for_a_checkpoint(here: Path) -> None:
    words = "trap 'touch checkpoint; exit 3' TERM; while :; do sleep 0.05; done"
    lines: list[str] = []
    with pytest.raises(ToolError):
        launch_local(stand_in(here, words, time_limit_s=1.0, restarts=3), output=lines.append)
    assert (here / "checkpoint").exists()
    assert (here / "calls").read_text().count("\n") == 1
    assert any("asked to end as its time is over" in line for line in lines)


def test_what_fails_after_ctrl_c_is_not_started_again(here: Path) -> None:
    error = '{"event": "failed", "error": {"kind": "tool", "what": "no", "why": "", "remedy": ""}}'
    words = f"said='progress: {error}'\ntrap 'echo \"$said\"; exit 2' TERM\n"
    asked = stand_in(here, words + "while :; do sleep 0.05; done", restarts=3)

    def interrupt(_rank: int, _pid: int) -> None:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    with pytest.raises(ToolError, match="no"):
        launch_local(asked, started=interrupt)
    assert (here / "calls").read_text().count("\n") == 1
