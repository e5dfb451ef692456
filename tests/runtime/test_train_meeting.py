"""Workers agree on the step at which all of them stop; two real ones train as two devices do."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.clusters import addresses
from tests.runtime.training_child import LIMIT_S, ROOT, case, environment

from tfdyno.runtime.train_meeting import Meeting


def pair(folder: Path, *, has_gpu: bool = False, steps_per_call: int = 1) -> list[Meeting]:
    return [
        Meeting(folder, rank=rank, count=2, has_gpu=has_gpu, steps_per_call=steps_per_call)
        for rank in (0, 1)
    ]


def steps_of(
    meetings: list[Meeting], wishes: tuple[int, int], lead: list[bool], size: int
) -> list[int]:
    """The step at which each of two workers stops; one is at most one call ahead of the other."""
    done, found = [0, 0], [0, 0]
    while not all(found):
        assert max(done) < 60 * size, "nobody stops"
        ahead = 1 if lead and lead.pop() else 0
        for rank in (ahead, 1 - ahead):
            if found[rank]:
                continue
            done[rank] += size
            asks = bool(wishes[rank]) and done[rank] >= wishes[rank]
            if meetings[rank].agreed("stop", done[rank], asks):
                found[rank] = done[rank]
    return found


@given(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any),
    st.lists(st.booleans(), max_size=9),
    st.sampled_from((1, 4)),
)
def test_both_stop_at_the_same_step(wishes: tuple[int, int], lead: list[bool], size: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        meetings = pair(Path(name) / "meeting", steps_per_call=size)
        first, second = steps_of(meetings, wishes, lead, size)
    assert first == second
    assert first > min(wish for wish in wishes if wish)


def test_a_save_can_be_agreed_upon_again_and_again(tmp_path: Path) -> None:
    chief, other = pair(tmp_path)
    found: dict[str, list[int]] = {"chief": [], "other": []}
    for step in range(1, 20):
        if chief.agreed("save", step, step in (3, 11)):
            found["chief"].append(step)
        if other.agreed("save", step, wanted=False):
            found["other"].append(step)
    assert found["chief"] == found["other"]
    assert len(found["chief"]) == 2


def test_a_gpu_is_given_more_steps_ahead(tmp_path: Path) -> None:
    chief, other = pair(tmp_path, has_gpu=True)
    assert not chief.agreed("stop", 1, wanted=True)
    steps = [n for n in range(2, 200) if other.agreed("stop", n, wanted=False)]
    assert steps[0] == 51


def test_one_alone_does_it_at_once() -> None:
    alone = Meeting(None, rank=0, count=1, has_gpu=False)
    assert alone.agreed("stop", 7, wanted=True)
    assert not alone.agreed("stop", 8, wanted=False)


def test_without_a_folder_nothing_can_be_agreed_upon() -> None:
    assert not Meeting(None, rank=0, count=2, has_gpu=False).agreed("stop", 7, wanted=True)


def test_what_an_earlier_sitting_agreed_upon_is_forgotten(tmp_path: Path) -> None:
    chief, _ = pair(tmp_path)
    chief.agreed("stop", 3, wanted=True)
    _, other = pair(tmp_path)
    assert not other.agreed("stop", 9, wanted=False)


def test_two_threads_meet(tmp_path: Path) -> None:
    """Each step waits for the other, as an exchange of gradients does."""
    meetings, exchange = pair(tmp_path), threading.Barrier(2)
    found: list[int] = [0, 0]

    def work(rank: int) -> None:
        for step in range(1, 200):
            exchange.wait(20)
            if meetings[rank].agreed("stop", step, wanted=rank == 1 and step > 50):
                found[rank] = step
                return

    threads = [threading.Thread(target=work, args=(rank,)) for rank in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert found[0] == found[1] > 50


@functools.cache
def workers() -> list[dict[str, Any]]:
    """What two processes found, each for itself."""
    with tempfile.TemporaryDirectory() as name:
        folder, cluster = Path(name), addresses({"worker": 2})
        started = []
        for index in (0, 1):
            task = {"cluster": cluster, "task": {"type": "worker", "index": index}}
            more = {"TF_CONFIG": json.dumps(task), "RUN_FOLDER": str(folder)}
            words = [sys.executable, "-m", "tests.runtime.training_workers", f"{folder}/{index}"]
            with (folder / f"{index}.log").open("w") as log:
                process = subprocess.Popen(
                    words, cwd=ROOT, env=environment(**more), stdout=log, stderr=log,
                    start_new_session=True,
                )  # fmt: skip
            started.append(process)
        try:
            for process in started:
                process.wait(LIMIT_S)
        finally:
            for process in started:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        logs = "\n".join((folder / f"{index}.log").read_text()[-3000:] for index in (0, 1))
        assert [process.returncode for process in started] == [0, 0], logs
        found = [json.loads((folder / str(index)).read_text()) for index in (0, 1)]
    for one in found:
        for result in one.values():
            assert "raised" not in result, result["raised"]
    return found


def weights(result: dict[str, Any]) -> list[float]:
    return [value for each in result["weights"] for value in each]


@pytest.mark.tf
def test_two_processes_learn_what_two_devices_learn() -> None:
    expected = case("training_mirrored", "as_two_workers")
    for one in workers():
        assert one["whole"]["replicas"] == 2
        assert (one["whole"]["steps"], one["whole"]["updates"]) == (12, 6)
        assert weights(one["whole"]) == pytest.approx(weights(expected), abs=1e-6)
        assert sorted(one["whole"]["history"]) == ["loss", "mae", "val_loss", "val_mae"]
        for name, values in expected["history"].items():
            assert one["whole"]["history"][name] == pytest.approx(values, abs=1e-6)


@pytest.mark.tf
def test_two_processes_stop_at_the_same_step_though_asked_at_others() -> None:
    first, second = (one["stopped"] for one in workers())
    assert first["stopped"] == second["stopped"] == "SIGTERM"
    assert first["steps"] == second["steps"]
    assert 8 < first["steps"] < 12
    assert weights(first) == weights(second)


@pytest.mark.tf
def test_the_stop_of_one_process_is_that_of_both() -> None:
    first, second = (one["one_asked"] for one in workers())
    assert first["stopped"] == second["stopped"] == "SIGTERM"
    assert first["steps"] == second["steps"] < 12


@pytest.mark.tf
def test_two_processes_go_on_where_they_stopped() -> None:
    for one in workers():
        assert one["resumed"]["resumed_from"]
        assert one["resumed"]["steps"] == 12
        assert weights(one["resumed"]) == weights(one["whole"])
        for name, values in one["whole"]["history"].items():
            assert one["resumed"]["history"][name] == pytest.approx(values, abs=1e-6)


def leaving(meeting: Meeting, rank: int, left: list[int]) -> threading.Thread:
    def leave() -> None:
        meeting.leave(limit_s=20.0)
        left.append(rank)

    thread = threading.Thread(target=leave)
    thread.start()
    return thread


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_nobody_leaves_before_all_have_come(order: tuple[int, ...], tmp_path: Path) -> None:
    meetings = [
        Meeting(tmp_path / "meeting", rank=rank, count=3, has_gpu=False) for rank in range(3)
    ]
    left: list[int] = []
    threads = [leaving(meetings[rank], rank, left) for rank in order[:2]]
    time.sleep(0.3)
    assert left == []
    threads.append(leaving(meetings[order[2]], order[2], left))
    for thread in threads:
        thread.join(20.0)
    assert sorted(left) == [0, 1, 2]


def test_worker_0_leaves_last(tmp_path: Path) -> None:
    """Worker 1 has come, but has not gone yet."""
    first, second = pair(tmp_path / "meeting")
    left: list[int] = []
    (tmp_path / "meeting" / "left-1").touch()
    thread = leaving(first, 0, left)
    time.sleep(0.3)
    assert left == []
    second.leave(limit_s=20.0)
    thread.join(20.0)
    assert left == [0]


def test_who_is_alone_at_the_end_does_not_wait_for_ever(tmp_path: Path) -> None:
    for meeting in pair(tmp_path / "meeting"):
        shutil.rmtree(tmp_path / "meeting")
        (tmp_path / "meeting").mkdir()
        meeting.leave(limit_s=0.1)
    Meeting(None, rank=0, count=1, has_gpu=False).leave()
