"""A run that is killed at any moment that Python tells of is gone on with, and ends the same."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.projects import chain, output, run_all, statuses
from tests.touched import seed_of

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 8
"""Kills; each is followed by a whole run."""
KILLED = """
import os, signal, sys
at, count = int(sys.argv[1]), 0

def hook(event, arguments):
    global count
    is_ours = any("tfdyno-project" in str(one) for one in arguments)
    if is_ours and event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir",
                             "shutil.rmtree", "sqlite3.connect", "subprocess.Popen"):
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
from tfdyno.cli.main import main
code = main(["run", "--quiet", *sys.argv[2:]])
print("events", count)
sys.exit(code)
"""


WORDS = {"first": (), "forced": ("--force", "a")}


def killed(folder: Path, at: int, kind: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A first run, or one that makes again what stands, that is killed at its so-manieth event."""
    file = chain(folder)
    if kind == "forced":
        run_all(file)
    command = [sys.executable, "-c", KILLED, str(at), str(file), *WORDS[kind]]
    return file, subprocess.run(command, capture_output=True, text=True)


def events(folder: Path, kind: str) -> int:
    _, whole = killed(folder, 0, kind)
    assert whole.returncode == 0, whole.stderr
    return int(whole.stdout.split()[-1])


def checked(file: Path) -> None:
    """Whatever was left: a run goes on from it to the same end, and then all is reused."""
    found = run_all(file)
    assert found.status == "finished"
    assert (output(file, found, "c") / "c.txt").read_text() == "0+++"
    folders = sorted(path.name for path in (file.parent / "tfdyno-project" / "outputs").iterdir())
    assert folders == sorted(step.output.removeprefix("outputs/") for step in found.steps)
    assert set(statuses(run_all(file)).values()) == {"reused"}


def killed_and_checked(folder: Path, at: int, kind: str) -> None:
    file, done = killed(folder, at, kind)
    # A loaded machine looks into the log of a child more often, another one ends before.
    was_over = done.returncode == 0 and int(done.stdout.split()[-1]) < at
    assert done.returncode == -9 or was_over, at
    checked(file)


@pytest.mark.parametrize("kind", WORDS)
def test_a_kill_at_any_moment_is_gone_on_from(kind: str, tmp_path: Path) -> None:
    count = events(tmp_path / "whole", kind)
    for at in random.Random(f"{seed_of()} {kind}").sample(range(1, count), ROUNDS):
        killed_and_checked(tmp_path / str(at), at, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WORDS)
def test_a_kill_at_each_moment_is_gone_on_from(kind: str, tmp_path: Path) -> None:
    for at in range(1, events(tmp_path / "whole", kind)):
        killed_and_checked(tmp_path / str(at), at, kind)
