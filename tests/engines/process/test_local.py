"""Several programs as one, without any protocol: their exit codes are all that is known."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.engines.process.local import Crew, Limits, attend, together
from tfdyno.engines.process.process import ChildCrash, Command, Process

if TYPE_CHECKING:
    from pathlib import Path

WAIT = "time.sleep(60)"
FEW = Limits(run_s=30.0, end_s=1.0, peers_s=1.0)


def commands(*codes: str, serves: tuple[int, ...] = ()) -> list[Command]:
    return [
        Command(
            words=(sys.executable, "-c", "import os, sys, signal, time\n" + code),
            environment=os.environ,
            purpose="a trial",
            name=f"worker {place}",
            serves=place in serves,
        )
        for place, code in enumerate(codes)
    ]


def judge(process: Process) -> Exception | None:
    """What an exit code says."""
    if not process.exit_code:
        return None
    crash = ChildCrash(f"{process.command.name} failed", why=process.last_words())
    crash.child_exit_code = process.exit_code
    return crash


def run(*codes: str, limits: Limits = FEW, serves: tuple[int, ...] = ()) -> Crew:
    output: list[str] = []
    with together(
        commands(*codes, serves=serves), chief=0, mark="", progress=output.append,
        output=output.append,
    ) as crew:  # fmt: skip
        attend(crew, judge, limits)
    assert not crew.running()
    return crew


def test_all_end_well() -> None:
    crew = run("time.sleep(0.2)", "time.sleep(0.3)")
    assert [process.exit_code for process in crew.processes] == [0, 0]


def test_one_that_outlasts_the_chief_is_ended() -> None:
    crew = run("pass", WAIT)
    assert [process.exit_code for process in crew.processes] == [0, -15]


def test_one_that_outlasts_the_chief_and_is_deaf_is_killed() -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)\n" + WAIT
    crew = run("time.sleep(0.5)", deaf)
    assert crew.processes[1].exit_code == -9


def test_one_that_fails_ends_the_others_which_may_tidy_up(tmp_path: Path) -> None:
    tidy = (
        f"def end(*_):\n    open({str(tmp_path / 'tidy')!r}, 'w').close(); os._exit(0)\n"
        f"signal.signal(signal.SIGTERM, end); open({str(tmp_path / 'up')!r}, 'w').close(); {WAIT}"
    )
    fail = f"while not os.path.exists({str(tmp_path / 'up')!r}): time.sleep(0.01)\nsys.exit('no')"
    with pytest.raises(ChildCrash, match="worker 1 failed: its last line was 'no'"):
        run(tidy, fail)
    assert (tmp_path / "tidy").exists()


def test_of_two_that_fail_the_first_is_told() -> None:
    with pytest.raises(ChildCrash, match="worker 2 failed"):
        run(WAIT, "time.sleep(0.6); sys.exit('late')", "sys.exit('early')")


def test_a_server_may_not_end_even_with_success() -> None:
    with pytest.raises(ToolError, match="worker 1 of a trial ended too early"):
        run(WAIT, "pass", serves=(1,))


def test_the_time_for_all_is_kept() -> None:
    with pytest.raises(
        ChildCrash, match="a trial was stopped: no result within 1 s; its last line"
    ):
        run("print('on', flush=True); " + WAIT, WAIT, limits=Limits(run_s=0.7, end_s=1.0))


def test_lines_of_several_are_told_one_at_a_time_and_whole() -> None:
    inside, together_seen, lines = [0], [0], []
    lock = threading.Lock()

    def hear(line: str) -> None:
        with lock:
            inside[0] += 1
            together_seen[0] = max(together_seen[0], inside[0])
        time.sleep(0.0005)
        lines.append(line)
        with lock:
            inside[0] -= 1

    body = "[print('line', i, flush=True) for i in range(100)]"
    with together(commands(body, body), chief=0, mark="", progress=hear, output=hear) as crew:
        attend(crew, judge, FEW)
    assert together_seen == [1]
    for place in (0, 1):
        own = [line for line in lines if line.startswith(f"[worker {place}] ")]
        assert own == [f"[worker {place}] line {number}" for number in range(100)]


def test_a_program_that_is_missing_leaves_none_of_the_others() -> None:
    missing = Command(words=("/nowhere",), environment={}, purpose="a trial")
    before = commands(WAIT)
    with (
        pytest.raises(UsageError, match="cannot run /nowhere"),
        together([*before, missing], chief=0, mark="", progress=print, output=print),
    ):
        pytest.fail("it started")
