"""Whose failure it was, with real processes that have really ended."""

from __future__ import annotations

import csv
import os
import sys
import time

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.engines.process.faults import TABLE, Fault, accused, culprit, evidence, tells_of_a_loss
from tfdyno.engines.process.process import ChildCrash, Command, Process, start

LOST = (
    "UnavailableError: Collective ops is aborted by: The following tasks are unhealthy (stopped "
    "sending heartbeats): /job:worker/replica:0/task:1"
)


def ended(code: str) -> Process:
    command = Command(
        words=(sys.executable, "-c", code), environment=os.environ, purpose="training", name="x"
    )
    heard: list[object] = []
    process = start(command, mark="", progress=heard.append, output=heard.append,
                    ended=heard.append)  # fmt: skip
    until_s = time.monotonic() + 60
    while process.runs and time.monotonic() < until_s:
        time.sleep(0.01)
    process.close()
    return process


def crash(process: Process) -> Fault:
    error = ChildCrash("training failed")
    error.child_exit_code = process.exit_code
    return Fault(process=process, error=error)


def test_the_first_with_a_cause_of_its_own_is_at_fault() -> None:
    echo = crash(ended(f"print({LOST!r}); raise SystemExit(1)"))
    own = crash(ended("raise ValueError('mine')"))
    later = crash(ended("raise ValueError('also')"))
    assert (echo.is_echo, own.is_echo) == (True, False)
    assert echo.process.ended_s < own.process.ended_s < later.process.ended_s
    assert culprit([later, echo, own]) is own
    assert culprit([echo]) is echo


def test_one_that_was_killed_is_no_echo_whatever_it_printed() -> None:
    code = f"import os; print({LOST!r}, flush=True); os.kill(os.getpid(), 9)"
    killed = crash(ended(code))
    assert killed.process.exit_code == -9
    assert list(killed.process.lines) == [LOST]
    assert (evidence(killed), killed.is_echo) == ("", False)


def test_what_a_process_says_counts_more_than_what_it_printed() -> None:
    process = ended(f"print({LOST!r})")
    assert not Fault(process=process, error=ToolError("the disk is full")).is_echo
    assert Fault(process=process, error=ToolError("it failed", why=LOST)).is_echo


def test_tensorflow_names_the_task_that_it_lost() -> None:
    process = ended("pass")
    assert accused(Fault(process=process, error=ToolError("no", why=LOST))) == "worker 1"
    lost_server = LOST.replace("job:worker", "job:ps").replace("task:1", "task:0")
    assert accused(Fault(process=process, error=ToolError(lost_server))) == "parameter server 0"
    mentioned = "OOM when allocating on /job:worker/replica:0/task:1/device:GPU:0"
    assert accused(Fault(process=process, error=ToolError(mentioned))) == ""


def test_a_failed_connection_of_the_users_own_is_no_lost_worker() -> None:
    assert tells_of_a_loss("line 6: UnavailableError: Collective ops is aborted by: Socket closed")
    assert not tells_of_a_loss("URLError: <urlopen error [Errno 111] Connection refused>")


def test_a_port_that_is_taken_is_known_by_its_words() -> None:
    said = "import sys; sys.exit('UnknownError: Could not start gRPC server')"
    assert crash(ended(said)).is_port_taken
    assert not crash(ended("import sys; sys.exit('UnknownError: what')")).is_port_taken


def test_every_row_of_the_table_has_a_kind_words_and_a_source() -> None:
    with TABLE.open(newline="") as lines:
        rows = list(csv.DictReader(lines, strict=True))
    assert {row["kind"] for row in rows} == {"lost", "echo", "port_taken"}
    assert all(row["words"] and row["source"] and None not in row for row in rows)
    assert len({row["words"] for row in rows}) == len(rows)


@pytest.mark.parametrize("number", [32, 98, 104, 111])
def test_words_of_the_system_are_as_this_machine_words_them(number: int) -> None:
    table = TABLE.read_text()
    assert f",{os.strerror(number)}," in table
