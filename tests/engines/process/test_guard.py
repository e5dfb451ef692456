"""The shell that kills what a killed program leaves behind."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil

from tfdyno.engines.process import guard
from tfdyno.engines.process.guard import guarded

if TYPE_CHECKING:
    import pytest

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
KILLED = """
import os, psutil, signal, subprocess, sys, time
from tfdyno.engines.process.guard import guarded
with guarded() as watch:
    kids = [subprocess.Popen(['sleep', '60'], start_new_session=True) for _ in range(2)]
    for kid in [subprocess.Popen(['true'], start_new_session=True), *kids]:
        watch(kid.pid)
    print(*(kid.pid for kid in kids), flush=True)
    time.sleep(0.3)
    shell = psutil.Process().children()[0]
    assert 'read -r' in ' '.join(shell.cmdline())
    shell.terminate()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def ends(pid: int) -> bool:
    for _ in range(100):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def test_all_groups_are_killed_when_the_program_is_though_the_shell_was_told_to_end() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    assert all(ends(pid) for pid in pids)


def test_a_program_that_ends_by_itself_kills_nothing_by_it() -> None:
    with subprocess.Popen(SLEEP, start_new_session=True) as kid:
        with guarded() as watch:
            watch(kid.pid)
        time.sleep(0.3)
        assert kid.poll() is None
        kid.kill()


def test_without_a_shell_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "SHELL", "/nowhere/sh")
    with guarded() as watch:
        watch(1)
