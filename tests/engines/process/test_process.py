"""One process: its lines, its log and its end."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.engines.process.process import Command, Process, start

if TYPE_CHECKING:
    from pathlib import Path


def command(code: str, **fields: object) -> Command:
    words = (sys.executable, "-c", "import sys, time\n" + code)
    return Command(words=words, environment=os.environ, purpose="a trial", **fields)  # type: ignore[arg-type]


def until_ended(process: Process) -> None:
    until_s = time.monotonic() + 60
    while process.runs and time.monotonic() < until_s:
        time.sleep(0.01)
    assert not process.runs
    process.kill()
    process.close()


def run(code: str, **fields: object) -> tuple[Process, list[str], list[str]]:
    progress: list[str] = []
    output: list[str] = []
    process = start(
        command(code, **fields), mark="progress: ", progress=progress.append,
        output=output.append, ended=lambda _process: None,
    )  # fmt: skip
    until_ended(process)
    return process, progress, output


def test_progress_and_other_lines_are_told_apart() -> None:
    process, progress, output = run("print('progress: one\\n\\nnoise'); print('progress: two')")
    assert (progress, output, process.said) == (["one", "two"], ["noise"], "two")
    assert process.exit_code == 0
    assert process.last_words() == "its last line was 'noise'"


def test_both_outputs_are_heard_and_the_last_lines_kept() -> None:
    process, _, output = run("print('a\\nb', flush=True); sys.exit('c')")
    assert output == ["a", "b", "c"]
    assert process.exit_code == 1
    assert process.last_words(2) == "its last lines were 'b', 'c'"
    assert process.last_words(1) == "its last line was 'c'"
    assert run("pass")[0].last_words() == ""


def test_a_log_keeps_what_was_there_and_takes_no_progress(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "worker-0.log"
    for word in ("first", "second"):
        run(f"print('{word}'); print('progress: x')", log=log, name="worker 0")
    lines = log.read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["first", "second"]
    assert [line.partition(" UTC: ")[2] for line in lines if line.startswith("#")] == [
        "a trial as worker 0"
    ] * 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full disk here")  # noqa: PTH110
def test_a_full_disk_is_told_at_the_start(tmp_path: Path) -> None:
    log = tmp_path / "worker-0.log"
    log.symlink_to("/dev/full")
    with pytest.raises(ToolError, match=r"cannot write .*No space left on device"):
        start(command("pass", log=log), mark="", progress=print, output=print, ended=print)


def test_a_program_that_is_none_is_a_wrong_request() -> None:
    wrong = Command(words=("/nowhere/python",), environment={}, purpose="a trial")
    with pytest.raises(UsageError, match="cannot run /nowhere/python for a trial"):
        start(wrong, mark="", progress=print, output=print, ended=print)


def test_a_listener_that_fails_does_not_hold_up_the_process() -> None:
    ends: list[Process] = []

    def fail(_line: str) -> None:
        raise ValueError("no")

    # More than a pipe holds: it would hang if nobody went on reading.
    process = start(command("for i in range(200_000): print(i)"), mark="", progress=fail,
                    output=fail, ended=ends.append)  # fmt: skip
    until_ended(process)
    assert str(process.trouble) == "no"
    assert ends == [process, process]
    assert process.exit_code == 0


def test_it_can_be_asked_to_end_and_be_killed() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); "
    heard: list[str] = []
    process = start(command(deaf + "sys.stdout.flush(); time.sleep(60)"), mark="",
                    progress=heard.append, output=heard.append,
                    ended=lambda _process: None)  # fmt: skip
    while not heard:
        time.sleep(0.01)
    process.terminate()
    time.sleep(0.2)
    assert process.runs
    process.kill()
    until_ended(process)
    assert process.exit_code == -9
    process.terminate()  # one that has ended is left alone


def test_a_line_is_sent_and_one_that_has_ended_takes_none() -> None:
    heard: list[str] = []
    process = start(command("print(sys.stdin.readline().strip() + '!')"), mark="",
                    progress=heard.append, output=heard.append,
                    ended=lambda _process: None)  # fmt: skip
    process.send("hello")
    until_s = time.monotonic() + 60
    while process.runs and time.monotonic() < until_s:
        time.sleep(0.01)
    process.send("nobody")
    process.kill()
    process.close()
    assert heard == ["hello!"]


def test_it_runs_in_the_folder_that_is_named(tmp_path: Path) -> None:
    _, _, output = run("import os; print(os.getcwd())", cwd=str(tmp_path))
    assert output == [str(tmp_path)]
    with pytest.raises(UsageError, match="there is no such folder"):
        run("pass", cwd=str(tmp_path / "none"))
