from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.measurements import measurement

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.search_space import SearchSpace
from tfdyno.core.train.tuning import Trial
from tfdyno.jobs.project.live import QUIET, LiveReader, is_alive
from tfdyno.store.results import Results
from tfdyno.store.run_events import RunEvents
from tfdyno.store.run_folder import LOCK_FILE, RUN_FILE, RunFolder, RunRecord
from tfdyno.store.tuning_study import LOCK_FILE as TUNING
from tfdyno.store.tuning_study import TuningStudy

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now(UTC).isoformat(timespec="seconds")
RECORD = RunRecord(workload=Workload(reference="train.py", kind="script"), started_at=NOW)


def run_in(folder: Path, record: RunRecord = RECORD) -> RunFolder:
    found = RunFolder(folder)
    found.prepare()
    found.write(record)
    return found


def gone_process() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_a_training_that_runs_is_found_and_followed_while_it_writes(tmp_path: Path) -> None:
    run, reader = run_in(tmp_path / "runs" / "first"), LiveReader(folder=tmp_path)
    with run.held():
        (one,), notes = reader.running()
        assert (one.kind, one.state, one.title) == ("train", "running", "train.py")
        assert (one.place, one.started_at, notes) == ("runs/first", NOW, ())
        assert reader.events(one.id, 0) == {"events": [], "next": 0}
        with RunEvents(run.path, dict) as events:
            events.take('{"event": "steps", "epoch": 1, "step": 7, "loss": 0.25}')
        told = reader.events(one.id, 0)
        assert [(each["step"], each["loss"]) for each in told["events"]] == [(7, 0.25)]
        assert reader.events(one.id, told["next"])["events"] == []


def test_looking_at_a_training_takes_no_lock_that_another_may_want(tmp_path: Path) -> None:
    run = run_in(tmp_path / "first")
    (run.path / LOCK_FILE).write_text(f"process {os.getpid()} on {platform.node()}\n")
    before = (run.path / LOCK_FILE).stat()
    (one,), _ = LiveReader(folder=tmp_path).running()
    assert one.state == "running"
    assert (run.path / LOCK_FILE).stat().st_mtime_ns == before.st_mtime_ns
    with run.held():
        pass


def test_a_training_whose_process_is_gone_is_told_as_lost(tmp_path: Path) -> None:
    run = run_in(tmp_path / "first")
    with lock_folder(run.path, LOCK_FILE):
        pass
    (run.path / LOCK_FILE).write_text(f"process {gone_process()} on {platform.node()}\n")
    (one,), _ = LiveReader(folder=tmp_path).running()
    assert one.state == "lost"


def test_another_process_with_the_same_number_is_not_the_training(tmp_path: Path) -> None:
    lock = tmp_path / LOCK_FILE
    lock.write_text(f"process {os.getpid()} on {platform.node()}\n")
    assert is_alive(lock, time.time())
    os.utime(lock, (1e9, 1e9))  # it was locked in 2001, and this process is of today
    assert not is_alive(lock, time.time())


@pytest.mark.parametrize("text", ["process 1 on another-machine\n", "", "\x00\xff"])
def test_a_process_that_cannot_be_asked_runs_while_it_writes(tmp_path: Path, text: str) -> None:
    lock = tmp_path / LOCK_FILE
    lock.write_text(text, encoding="latin-1")
    assert is_alive(lock, time.time() - QUIET.total_seconds() / 2)
    assert not is_alive(lock, time.time() - 2 * QUIET.total_seconds())
    assert not is_alive(tmp_path / "none", time.time())


@pytest.mark.parametrize(("minutes", "shown"), [(1, 1), (60, 0)])
def test_what_has_ended_stays_for_a_while(tmp_path: Path, minutes: int, shown: int) -> None:
    ended = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="seconds")
    run_in(tmp_path / "first", replace(RECORD, status="failed", ended_at=ended))
    reader = LiveReader(folder=tmp_path)
    for _ in range(2):
        found, _ = reader.running()
        assert [one.state for one in found] == ["failed"] * shown


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"status": "running"}', "\x00"])
def test_a_record_that_is_half_written_is_left_out_until_it_is_whole(
    tmp_path: Path, text: str
) -> None:
    run, reader = run_in(tmp_path / "first"), LiveReader(folder=tmp_path)
    whole = (run.path / RUN_FILE).read_text()
    (run.path / RUN_FILE).write_text(text)
    assert reader.running() == ((), ())
    (run.path / RUN_FILE).write_text(whole)
    assert len(reader.running()[0]) == 1


def test_a_bench_that_runs_shows_the_runs_that_it_has(tmp_path: Path) -> None:
    results, reader = Results(folder=tmp_path / "kept"), LiveReader(folder=tmp_path)
    results.start(measurement([[0.5] * 4], id="one"), key="a")
    (one,), _ = reader.running()
    assert (one.kind, one.state, one.place) == ("bench", "running", "kept/results.sqlite:one")
    (shown,) = reader.events(one.id, 0)["runs"]
    assert (shown["step_s"], shown["steps"]) == (0.5, 4)
    results.finish("one")
    assert reader.running()[0] == ()


def test_a_bench_that_was_broken_off_is_not_shown_beside_one_that_runs(tmp_path: Path) -> None:
    results, reader = Results(folder=tmp_path), LiveReader(folder=tmp_path)
    for name, session in (("old", "first"), ("a", "second"), ("b", "second")):
        results.start(replace(measurement([[0.5] * 4], id=name), session=session), key="a")
    assert {one.place for one in reader.running()[0]} == {
        "results.sqlite:a", "results.sqlite:b"
    }  # fmt: skip


def test_a_lost_training_leaves_after_a_while(tmp_path: Path) -> None:
    run, reader = run_in(tmp_path / "first"), LiveReader(folder=tmp_path)
    assert [one.state for one in reader.running()[0]] == ["lost"]
    long_ago_s = time.time() - 3600
    os.utime(run.path / RUN_FILE, (long_ago_s, long_ago_s))
    assert reader.running()[0] == ()


def test_a_tuning_shows_the_trials_that_ended(tmp_path: Path) -> None:
    folder, reader = tmp_path / "tuned", LiveReader(folder=tmp_path)
    folder.mkdir()
    study = TuningStudy(folder, seed=1)
    space = SearchSpace(choices={"batch_size": (32, 64)})
    with lock_folder(folder, TUNING):
        number, values = study.ask(space)
        study.tell(Trial(number=number, recipe=Recipe(), values=values, status="measured",
                         samples_per_s=9.0, changes={"batch_size": "64"}))  # fmt: skip
        (one,), _ = reader.running()
        assert (one.kind, one.state, one.title) == ("tune", "running", "tuned")
        (trial,) = reader.events(one.id, 0)["trials"]
        assert (trial["samples_per_s"], trial["changes"]) == (9.0, {"batch_size": "64"})
    (folder / TUNING).write_text(f"process {gone_process()} on {platform.node()}\n")
    assert reader.running()[0] == ()


def test_a_run_that_nobody_listed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run"):
        LiveReader(folder=tmp_path).events("../../etc/passwd", 0)
