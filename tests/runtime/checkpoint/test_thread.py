"""Work beside the training: one piece at a time, and no failure is lost."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.runtime.checkpoint.thread import Beside


def fail(error: Exception) -> None:
    raise error


def test_one_piece_at_a_time() -> None:
    order: list[int] = []
    beside, go = Beside("work"), threading.Event()
    beside.start(lambda: order.append(1 if go.wait(10) else 0))
    assert beside.busy
    threading.Timer(0.05, go.set).start()
    beside.start(lambda: order.append(2))  # waits
    assert order[0] == 1
    beside.wait()
    assert order == [1, 2]
    assert not beside.busy


def test_a_failure_is_raised_once_by_the_next_call() -> None:
    beside = Beside("writing")
    beside.start(lambda: fail(ToolError("the disk is full")))
    with pytest.raises(ToolError, match="the disk is full"):
        beside.start(lambda: pytest.fail("begun after a failure"))
    beside.wait()
    beside.check()


def test_what_nobody_expected_becomes_a_sentence() -> None:
    beside = Beside("writing")
    beside.start(lambda: fail(ZeroDivisionError("by zero")))
    with pytest.raises(ToolError, match="writing failed: ZeroDivisionError: by zero"):
        beside.wait()


def test_what_was_begun_is_finished_when_the_process_ends() -> None:
    code = (
        "import time; from tfdyno.runtime.checkpoint.thread import Beside\n"
        "Beside('x').start(lambda: (time.sleep(0.2), print('done')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "done\n"
