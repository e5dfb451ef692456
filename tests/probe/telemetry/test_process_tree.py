from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tfdyno.probe.telemetry.telemetry import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

PARENT = """
import subprocess, sys, time
block = bytearray(64 << 20)
kid = subprocess.Popen([sys.executable, "-c", "b = bytearray(64 << 20); import time; print(1,"
                        "flush=True); time.sleep(30)"], stdout=subprocess.PIPE)
kid.stdout.readline()
print(kid.pid, flush=True)
sys.stdin.readline()
kid.kill(); kid.wait()
print("ended", flush=True)
end = time.process_time() + 0.3
while time.process_time() < end: pass
print("burnt", flush=True)
time.sleep(30)
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", PARENT], **pipes) as process:
        yield process
        process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_the_descendants_are_counted_and_what_ended_still_counts(
    parent: subprocess.Popen[str],
) -> None:
    kid = int(line(parent))
    tree = Tree(parent.pid)
    both = tree.usage()
    assert both
    assert tree.pids == {parent.pid, kid}
    assert both.memory_bytes > 128 << 20
    assert parent.stdin
    parent.stdin.write("\n")
    parent.stdin.flush()
    assert [line(parent), line(parent)] == ["ended", "burnt"]
    one = tree.usage()
    assert one
    assert one.memory_bytes < both.memory_bytes
    assert one.cpu_s >= both.cpu_s + 0.25


def test_a_process_that_is_gone_or_was_never_there_uses_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        tree = Tree(process.pid)
        process.wait()
        assert tree.usage() is None
    assert Tree(2**22 + 1).usage() is None


def test_a_process_that_ended_but_was_not_waited_for_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    tree = Tree(process.pid)
    until = time.monotonic() + 60
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert tree.usage() is None
    process.wait()


def test_counters_that_are_not_permitted_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_self: object) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "io_counters", denied)
    found = Tree(os.getpid()).usage()
    assert found
    assert (found.read_bytes, found.write_bytes) == (None, None)
    assert found.memory_bytes > 1 << 20


def test_processes_are_listed_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def children(_self: object, *, recursive: bool) -> list[psutil.Process]:
        asked.append(recursive)
        return []

    monkeypatch.setattr(psutil.Process, "children", children)
    tree = Tree(os.getpid())
    for _ in range(5):
        tree.usage()
    assert len(asked) == 1
