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
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.clusters import addresses
from tests.runtime.training_child import LIMIT_S, ROOT, case, environment

from tfdyno.runtime.train.consensus import MOST_CALLS, Consensus, calls_between

if TYPE_CHECKING:
    from collections.abc import Callable


class Exchange:
    """What all-reduces the rows of workers that are threads: all come, and all get all."""

    def __init__(self, count: int) -> None:
        self.rows = np.zeros((count, 6))
        self.barrier = threading.Barrier(count)
        self.exchanges = 0

    def of(self, rank: int) -> Callable[[list[float]], Any]:
        def table(own: list[float]) -> np.ndarray:
            self.rows[rank] = own
            self.barrier.wait(60)
            found = self.rows.copy()
            self.exchanges += rank == 0
            self.barrier.wait(60)
            return found

        return table


def together(
    wishes: Callable[[int, int], dict[str, bool]], *, count: int = 2, calls: int = 60
) -> tuple[list[dict[int, frozenset[str]]], Exchange]:
    """What each worker does at which step, where it wants ``wishes(rank, step)``."""
    exchange = Exchange(count)
    found: list[dict[int, frozenset[str]]] = [{} for _ in range(count)]

    def work(rank: int) -> None:
        consensus = Consensus(None, rank=rank, count=count)
        consensus.exchange_by(exchange.of(rank))
        for step in range(1, calls):
            agreed = consensus.agree(**wishes(rank, step), always=step == calls - 1)
            if agreed:
                found[rank][step] = agreed
            if agreed & {"stop", "nan"}:
                return

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    return found, exchange


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=4).filter(any))
def test_all_stop_at_the_same_step(moments: list[int]) -> None:
    found, _ = together(lambda rank, step: {"stop": 0 < moments[rank] <= step}, count=len(moments))
    assert all(one == found[0] for one in found)
    ((step, agreed),) = found[0].items()
    assert agreed == {"stop"}
    first = min(moment for moment in moments if moment)
    assert first <= step < first + MOST_CALLS


def test_a_save_can_be_agreed_upon_again_and_again() -> None:
    found, _ = together(lambda rank, step: {"save": rank == 0 and step % 100 >= 50}, calls=1_000)
    assert found[0] == found[1]
    assert len({step // 100 for step in found[0]}) == 10
    assert set(found[0].values()) <= {frozenset({"save"})}


def test_several_wishes_are_told_at_once() -> None:
    found, _ = together(lambda rank, _step: {"save": rank == 0, "nan": rank == 1})
    assert found[0] == found[1]
    assert next(iter(found[0].values())) == {"save", "nan"}


def test_short_steps_do_not_wait_for_an_exchange_each() -> None:
    _, exchange = together(lambda _rank, _step: {"stop": False}, calls=1_000)
    assert exchange.exchanges < 1_000 / 2


@pytest.mark.parametrize(
    ("cost_s", "call_s", "calls"),
    [(1e-3, 1.0, 1), (1e-3, 0.1, 1), (1e-3, 0.02, 5), (1e-3, 1e-4, MOST_CALLS), (1.0, 0.0, 32)],
)
def test_the_exchange_takes_a_hundredth_of_the_time(
    cost_s: float, call_s: float, calls: int
) -> None:
    assert calls_between(cost_s, call_s) == calls


def test_one_alone_does_it_at_once() -> None:
    alone = Consensus(None, rank=0, count=1)
    assert alone.agree(stop=True, save=False) == {"stop"}
    assert alone.agree(stop=False) == set()


def pair(folder: Path) -> list[Consensus]:
    return [Consensus(folder, rank=rank, count=2) for rank in (0, 1)]


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
    assert 5 < first["steps"] < 12
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


def leaving(consensus: Consensus, rank: int, left: list[int]) -> threading.Thread:
    def leave() -> None:
        consensus.leave(limit_s=20.0)
        left.append(rank)

    thread = threading.Thread(target=leave)
    thread.start()
    return thread


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_nobody_leaves_before_all_have_come(order: tuple[int, ...], tmp_path: Path) -> None:
    members = [Consensus(tmp_path / "meeting", rank=rank, count=3) for rank in range(3)]
    left: list[int] = []
    threads = [leaving(members[rank], rank, left) for rank in order[:2]]
    time.sleep(0.3)
    assert left == []
    threads.append(leaving(members[order[2]], order[2], left))
    for thread in threads:
        thread.join(60)
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
    thread.join(60)
    assert left == [0]


def test_who_is_alone_at_the_end_does_not_wait_for_ever(tmp_path: Path) -> None:
    for consensus in pair(tmp_path / "meeting"):
        shutil.rmtree(tmp_path / "meeting")
        (tmp_path / "meeting").mkdir()
        consensus.leave(limit_s=0.1)
    Consensus(None, rank=0, count=1).leave()
