"""gpu_day/command: real processes, whose groups end with their time."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from threading import Event, Timer

import pytest

from gpu_day.command import Done, Running, run

CHILD = """
import subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(other.pid, flush=True)
{then}
"""


def ran(folder: Path, code: str, limit_s: float = 30.0) -> Done:
    return run([sys.executable, "-c", code], place=folder / "step-1", environment=dict(os.environ),
               cwd=folder, limit_s=limit_s)  # fmt: skip


def is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            if " Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_what_it_printed_is_read_as_json_and_its_last_words_as_text(tmp_path: Path) -> None:
    done = ran(tmp_path, "import sys; print('{\"a\": 1}'); print('x\\nlast\\n', file=sys.stderr)")
    assert (done.code, done.document, done.last_words, done.cut) == (0, {"a": 1}, "last", False)
    assert done.output == tmp_path / "step-1.out"
    assert ran(tmp_path, "print('greeting'); print('{\"a\": 2}')").document == {"a": 2}
    assert ran(tmp_path, "print('no json')").document == {}
    assert ran(tmp_path, "print([1])").document == {}


def test_a_command_that_hands_over_after_ctrl_c_is_heard(tmp_path: Path) -> None:
    code = (
        'import time\ntry:\n time.sleep(60)\nexcept KeyboardInterrupt:\n print(\'{"so": "far"}\')'
    )
    done = ran(tmp_path, code, limit_s=1.0)
    assert (done.document, done.cut, done.code) == ({"so": "far"}, True, 0)


def test_what_ignores_ctrl_c_is_killed_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_day.command.STOP_GRACE_S", 0.2)
    then = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    done = ran(tmp_path, CHILD.format(then=then), limit_s=2.0)
    assert (done.cut, done.code) == (True, -9)
    assert is_gone(int(done.text))


def test_what_a_command_left_behind_ends_with_it(tmp_path: Path) -> None:
    done = ran(tmp_path, CHILD.format(then=""))
    assert (done.cut, done.code) == (False, 0)
    assert is_gone(int(done.text))


def test_waiting_ends_with_what_is_waited_for(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(60)"]
    with Running(words, place=tmp_path / "x", environment=dict(os.environ), cwd=tmp_path) as one:
        assert one.wait(20.0, until=lambda: one.output.read_text() == "ready\n")
        assert one.process.poll() is None
    assert one.process.poll() == -9


def test_a_command_in_a_thread_ends_with_all_it_started_when_all_is_stopped(tmp_path: Path) -> None:
    """Ctrl-C reaches the main thread only."""
    stopped = Event()
    words = [sys.executable, "-c", CHILD.format(then="time.sleep(60)")]
    Timer(2.0, stopped.set).start()
    with pytest.raises(KeyboardInterrupt):
        run(words, place=tmp_path / "x", environment=dict(os.environ), cwd=tmp_path, limit_s=50.0,
            stopped=stopped)  # fmt: skip
    assert is_gone(int((tmp_path / "x.out").read_text()))
