"""One run per folder, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.folder_lock import FolderLock, is_held

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import os, sys, time
from pathlib import Path
from tfdyno.core.base.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
if os.fork() == 0:
    print(os.getppid(), flush=True)
    time.sleep(60)  # a loader of data that outlives the training
    os._exit(0)
time.sleep(60)
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
                FolderLock(tmp_path)
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            FolderLock(tmp_path).close()  # though the fork of the killed process still runs
        finally:
            os.killpg(child.pid, signal.SIGKILL)


def test_the_lock_ends_when_it_is_closed(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(UsageError, match=f"process {os.getpid()}"):
        FolderLock(tmp_path)
    lock.close()
    lock.close()
    FolderLock(tmp_path).close()


def test_a_fork_leaves_the_lock_with_its_parent(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", f"{HOLD.partition('if os')[0]}", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert "in use by another run" in done.stderr
    lock.close()


def test_a_folder_that_is_missing_is_no_crash(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"cannot write to .*absent: No such file"):
        FolderLock(tmp_path / "absent")


def test_whether_a_folder_is_held_is_told_without_taking_it(tmp_path: Path) -> None:
    assert not is_held(tmp_path)  # nobody ever locked it
    assert list(tmp_path.iterdir()) == []
    lock = FolderLock(tmp_path)
    assert is_held(tmp_path)
    lock.close()
    assert not is_held(tmp_path)
    FolderLock(tmp_path).close()  # and nothing is left held
    assert not is_held(tmp_path / "none")
