"""One run per folder, whatever ends it; a lock that is waited for, or shared."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tfdyno
from tfdyno.core.base import lock
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.lock import FileLock, is_held, lock_folder

HOLD = """
import os, sys, time
from pathlib import Path
from tfdyno.core.base.lock import lock_folder
lock = lock_folder(Path(sys.argv[1]))
if os.fork() == 0:
    print(os.getppid(), flush=True)
    time.sleep(60)  # a loader of data that outlives the training
    os._exit(0)
time.sleep(60)
"""
COUNT = """
import sys
from pathlib import Path
from tfdyno.core.base.lock import FileLock
folder = Path(sys.argv[1])
for _ in range(50):
    with FileLock(folder / "lock", patience_s=60.0):
        number = int((folder / "number").read_text())
        (folder / "number").write_text(str(number + 1))
"""


def test_a_second_run_is_refused_with_the_process_that_holds_the_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stdout is not None
        try:
            holder = int(child.stdout.readline())
            with pytest.raises(UsageError, match=rf"in use by another run: process {holder} on"):
                lock_folder(tmp_path)
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            lock_folder(tmp_path).close()  # though the fork of the killed process still runs
        finally:
            os.killpg(child.pid, signal.SIGKILL)


def test_the_lock_ends_when_it_is_closed(tmp_path: Path) -> None:
    held = lock_folder(tmp_path)
    with pytest.raises(UsageError, match=f"process {os.getpid()}"):
        lock_folder(tmp_path)
    held.close()
    held.close()
    lock_folder(tmp_path).close()


def test_an_interpreter_without_packages_is_refused_as_well(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        done = subprocess.run(
            [sys.executable, "-S", "-c", HOLD.partition("if os")[0], str(tmp_path)],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(Path(tfdyno.__file__).parents[1])},
        )
    assert "in use by another run" in done.stderr


def test_two_processes_that_wait_for_each_other_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path)]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0]
    assert (tmp_path / "number").read_text() == "100"


def test_those_who_share_a_lock_keep_out_who_wants_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path, shared=True), FileLock(path, shared=True), pytest.raises(TimeoutError):
        FileLock(path, patience_s=0.05)
    with FileLock(path), pytest.raises(TimeoutError):
        FileLock(path, shared=True)


def test_a_folder_that_is_missing_is_no_crash(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"cannot write to .*absent: No such file"):
        lock_folder(tmp_path / "absent")


def test_whether_a_folder_is_held_is_told_without_taking_it(tmp_path: Path) -> None:
    assert not is_held(tmp_path)  # nobody ever locked it
    assert list(tmp_path.iterdir()) == []
    held = lock_folder(tmp_path)
    assert is_held(tmp_path)
    held.close()
    assert not is_held(tmp_path)
    lock_folder(tmp_path).close()  # and nothing is left held
    assert not is_held(tmp_path / "none")


@pytest.mark.parametrize("has_fcntl", [True, False])
def test_where_there_are_no_locks_all_are_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_fcntl: bool
) -> None:
    def refuse(*_words: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if has_fcntl:
        monkeypatch.setattr(fcntl, "flock", refuse)  # some network file systems
    else:
        monkeypatch.setattr(lock, "fcntl", None)  # Windows
    with lock_folder(tmp_path), lock_folder(tmp_path):
        assert not is_held(tmp_path)


def test_a_lock_that_fails_is_told_and_leaves_no_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_words: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", fail)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ToolError, match="Input/output error"):
        lock_folder(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
