from __future__ import annotations

import os
import queue
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.core.messages.serve import Idle
from tfdyno.engines.process.serving_process import Event, ServingProcess, start

if TYPE_CHECKING:
    from pathlib import Path

ECHO = """
import json, sys
for line in ("words", '{"event": "epoch"}', '{"event": ["ready"]}', '{"event": "ready"}', "[1]"):
    print(line, flush=True)  # as a user's model may
for line in sys.stdin:
    print(json.dumps({"event": "idle", "address": json.loads(line)["a"]}), flush=True)
print("ValueError: out of words", file=sys.stderr)
print("bye", file=sys.stderr)
"""
PARENT = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print('{"event": "drained"}', flush=True)
sys.stdin.read()
"""


def started(source: str, log: Path | None = None) -> tuple[ServingProcess, queue.Queue[Event]]:
    events: queue.Queue[Event] = queue.Queue()
    words = (sys.executable, "-c", source)
    return start(words, name="it", environment=os.environ, hear=events.put, log=log), events


def test_commands_and_events_are_lines_of_json_and_the_end_is_an_event(tmp_path: Path) -> None:
    process, events = started(ECHO, tmp_path / "log")
    process.send({"a": "b"})
    assert events.get(timeout=60).said == Idle(address="b")
    assert process.popen.stdin
    process.popen.stdin.close()
    assert events.get(timeout=60).said is None
    assert not process.runs
    assert process.last_words() == "ValueError: out of words"  # the error, not the last line
    assert (tmp_path / "log").read_text() == "[it] ValueError: out of words\n[it] bye\n"
    process.kill()


def test_a_process_that_is_killed_takes_with_it_what_it_has_started() -> None:
    process, events = started(PARENT)
    events.get(timeout=60)
    family = [psutil.Process(process.popen.pid), *psutil.Process(process.popen.pid).children()]
    assert len(family) == 2
    process.kill()
    assert not psutil.wait_procs(family, timeout=60)[1]


def test_a_process_that_ends_in_time_is_not_killed() -> None:
    process, events = started("import sys; sys.stdin.readline(); print('over')")
    process.send({})
    process.end(within_s=60.0)
    assert process.popen.returncode == 0  # -9 where its time was over
    assert events.get(timeout=60).said is None


def test_a_process_that_has_ended_takes_no_command_and_does_not_fail() -> None:
    process, events = started("")
    events.get(timeout=60)
    process.send({"too": "late"})
    process.terminate()
    process.kill()
    assert process.last_words() == "it printed nothing"


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(ToolError, match="it cannot be started"):
        start(("/no/such/program",), name="it", environment={}, hear=print, log=None)
