"""What a worker of Ray starts, tells and means, without Ray."""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.render.plans import plan

from tfdyno.core.base.errors import Failure, ToolError, UsageError
from tfdyno.engines.process.local import together
from tfdyno.engines.process.process import Command
from tfdyno.jobs.child.worker import PROGRESS
from tfdyno.jobs.launch._ray_board import Board, Said
from tfdyno.jobs.launch._ray_failures import Fatal, NodeFailed, culprit_of, fatal_of
from tfdyno.jobs.launch.ray_worker import Talk, command_of, metrics_of
from tfdyno.render.launch.ray import ray_plan

if TYPE_CHECKING:
    from pathlib import Path

FAILURE = Failure(kind="tool", what="training failed in worker 0")
PURPOSE = "training train.py"


def worker(**given: Any) -> dict[str, Any]:
    return {**ray_plan(plan("ray", **given))["worker"], "unset": ["OMP_NUM_THREADS"]}


def test_the_workers_of_a_start_meet_and_another_start_does_not_see_them() -> None:
    board = Board()
    assert board.meet("first", 1, "b:2", 2) == ()
    assert board.meet("second", 0, "c:3", 2) == ()
    assert board.meet("first", 0, "a:1", 2) == ("a:1", "b:2")
    assert board.meet("first", 1, "b:2", 2) == ("a:1", "b:2")


def test_what_is_said_is_taken_once_and_the_wish_to_stop_lasts() -> None:
    board = Board()
    assert board.take(stops=False) == ([], False)  # nobody is there
    said = [Said(rank=0, kind="output", text="a")]
    assert board.say(said) is False
    assert board.take(stops=True) == (said, True)
    assert board.take(stops=False) == ([], True)
    assert board.say([]) is True
    assert board.stops()


def test_a_worker_starts_the_node_of_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", "{}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # Ray's doing
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    made = command_of(worker(environment=(("A", "b"),)), 1, ("10.0.0.1:5000", "10.0.0.2:5001"))
    assert made.words[:4] == (sys.executable, "-m", "tfdyno", "node")
    assert made.words[made.words.index("--nodes") + 1] == "2"
    assert "--events" in made.words
    assert made.environment["TFDYNO_WORKERS"] == "10.0.0.1:5000,10.0.0.2:5001"
    assert made.environment["TFDYNO_RANK"] == "1"
    assert made.environment["CUDA_VISIBLE_DEVICES"] == "3"
    assert made.environment["A"] == "b"
    assert not {"TF_CONFIG", "OMP_NUM_THREADS"} & set(made.environment)
    assert "10.0.0.2" in made.environment["no_proxy"].split(",")
    assert (made.name, made.cwd, made.purpose) == ("worker 1", "/srv/project", PURPOSE)


def test_one_worker_alone_is_no_cluster() -> None:
    made = command_of(worker(nodes=1), 0, ("10.0.0.1:5000",))
    assert made.name == ""
    assert not {"TFDYNO_WORKERS", "TFDYNO_RANK"} & set(made.environment)


def test_an_epoch_is_told_in_numbers() -> None:
    event = {"event": "epoch", "epoch": 2, "epochs": 3, "samples_per_s": 7.5,
             "metrics": {"loss": 0.5, "auc": None}}  # fmt: skip
    assert metrics_of(event) == {"epoch": 2, "samples_per_s": 7.5, "loss": 0.5}


def test_only_worker_0_tells_of_progress_and_each_of_its_epochs() -> None:
    epoch = json.dumps({"event": "epoch", "epoch": 1, "metrics": {"loss": 1.0}})
    for rank, kinds in ((0, ["progress", "output"]), (1, ["output"])):
        talk = Talk(rank, lambda _said: False)
        talk.heard(epoch)
        talk.heard('{"event": "done", "stopped": ""}')
        talk.output("printed")
        assert [one.kind for one in talk._waiting] == kinds
        assert talk.epochs.get_nowait() == {"epoch": 1, "loss": 1.0}


@pytest.mark.parametrize("answer", ["stop", "gone"])
def test_a_process_that_nobody_wants_any_more_is_ended(answer: str, tmp_path: Path) -> None:
    """It is asked to end where it shall stop, and killed where the driver is gone."""
    words = f"trap 'touch {tmp_path}/asked; exit' TERM; while :; do sleep 0.05; done"
    command = Command(words=("/bin/sh", "-c", words), environment=os.environ, purpose="a test")
    sent: list[list[Said]] = []

    def send(said: list[Said]) -> bool:
        sent.append(said)
        if answer == "gone":
            raise ConnectionError
        return True

    talk = Talk(0, send)
    talk.output("first")
    with (
        together([command], chief=0, mark=PROGRESS, progress=talk.heard, output=talk.output) as c,
        talk.told_to(c.chief),
    ):
        assert c.next_end(time.monotonic() + 30) is c.chief
    assert (tmp_path / "asked").exists() == (answer == "stop")
    assert sent[0] == [Said(rank=0, kind="output", text="first")]


class HealthCheckError(Exception):
    """As Ray Train tells of a worker that does not answer."""

    def __init__(self, preempted: bool) -> None:
        self.health_check_failure = type("Died", (Exception,), {"preempted": preempted})()


def test_who_only_lost_another_is_not_blamed() -> None:
    echo = NodeFailed(FAILURE, True)
    rank, failure = culprit_of({0: echo, 1: HealthCheckError(preempted=False)}, PURPOSE)
    assert rank == 1
    assert str(failure.error).startswith("training train.py failed in worker 1: its Ray worker")
    rank, failure = culprit_of({0: echo, 1: HealthCheckError(preempted=True)}, PURPOSE)
    assert "its machine is taken away" in str(failure.error)
    assert culprit_of({0: echo}, PURPOSE)[0] == 0
    (_, failure) = culprit_of({1: ZeroDivisionError("by zero")}, PURPOSE)
    assert failure.why == "ZeroDivisionError: by zero"
    wrong = NodeFailed(replace(FAILURE, kind="usage"), False)
    assert culprit_of({0: NodeFailed(FAILURE, False), 1: wrong}, PURPOSE)[0] == 1


def test_errors_keep_their_words_on_the_way() -> None:
    made = pickle.loads(pickle.dumps(NodeFailed(replace(FAILURE, why="no room"), False)))
    assert str(made) == "training failed in worker 0: no room."
    group = type("GroupError", (Exception,), {"worker_failures": {0: made}})()
    assert str(fatal_of(group, PURPOSE)) == "training failed in worker 0: no room."
    fatal = type("ControllerError", (Exception,), {"controller_failure": Fatal(FAILURE)})()
    assert isinstance(fatal_of(fatal, PURPOSE), ToolError)
    lacks = ModuleNotFoundError("No module named 'tfdyno'")
    with pytest.raises(UsageError, match="not installed on the nodes"):
        raise fatal_of(lacks, PURPOSE)
    assert "ran dry" in str(fatal_of(RuntimeError("ran\ndry"), PURPOSE))
