"""The door to child processes, with real children that fail in every way."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.untyped import Value
from tfdyno.core.messages.child import Child
from tfdyno.jobs.child.worker import run_child

SRC = Path(__file__).parents[3] / "src"
CHILD = """
import os, sys, time, signal, ctypes, subprocess, pathlib
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.messages.child import Child
from tfdyno.process import child

def handle(request, progress):
    print("from the child")
    {body}
    return {{"answer": request["question"] + 1}}

child.leave(child.serve(handle, Child(module="kid", request=dict, result=dict)))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    question: int = 41


KID: Child[Question, Any] = Child(module="kid", request=Question, result=dict)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(SRC))))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    yield tmp_path
    assert not list((tmp_path / "tmp").iterdir())


def write(folder: Path, body: str) -> Child[Question, Any]:
    (folder / "kid.py").write_text(CHILD.format(body=body))
    return KID


def ask(folder: Path, body: str, *, timeout_s: float = 20.0) -> Value:
    return run_child(write(folder, body), Question(), timeout_s=timeout_s, doing="tracing train.py")


def test_a_request_is_answered(modules: Path) -> None:
    assert ask(modules, "pass") == {"answer": 42}


def test_progress_lines_reach_the_caller_in_order(modules: Path) -> None:
    said: list[str] = []
    body = "progress('building'); print('noise', file=sys.stderr); progress('tracing')"
    run_child(write(modules, body), Question(), progress=said.append, timeout_s=60)
    assert said == ["building", "tracing"]


def test_the_caller_learns_the_childs_process_before_it_works(modules: Path) -> None:
    pids: list[int] = []
    body = "return {'pid': os.getpid()}"
    kid = write(modules, body)
    result = run_child(kid, Question(), timeout_s=60, started=pids.append)
    assert pids == [result["pid"]]


def test_a_caller_that_fails_at_the_start_leaves_no_child(modules: Path) -> None:
    pids: list[int] = []

    def fail(pid: int) -> None:
        pids.append(pid)
        raise RuntimeError("no telemetry")

    with pytest.raises(RuntimeError):
        run_child(write(modules, "time.sleep(60)"), Question(), timeout_s=60, started=fail)
    assert _is_gone(pids[0])


def test_the_gpu_is_hidden_and_the_user_cannot_be_asked(modules: Path) -> None:
    body = (
        "return {'gpu': os.environ['CUDA_VISIBLE_DEVICES'], 'jax': os.environ['JAX_PLATFORMS'],"
        " 'input': sys.stdin.read(), 'fd': os.read(0, 1).decode()}"
    )
    assert ask(modules, body) == {"gpu": "-1", "jax": "cpu", "input": "", "fd": ""}


@pytest.mark.parametrize(
    ("body", "kind", "sentence"),
    [
        (
            "raise UsageError('no such model', why='a typo', remedy='mend it')",
            UsageError,
            "no such model: a typo; mend it.",
        ),
        ("raise ToolError('it broke')", ToolError, "it broke."),
        (
            "os._exit(7)",
            ToolError,
            "tracing train.py failed: the process ended with exit code 7 and without a result; "
            "its last line was 'from the child'.",
        ),
        (
            "ctypes.string_at(0)",
            ToolError,
            "tracing train.py failed: the process crashed (SIGSEGV); its last line was "
            "'from the child'.",
        ),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            ToolError,
            "tracing train.py failed: it was killed by SIGKILL; the kernel counted no kill for "
            "lack of memory meanwhile; look for who ended it: a scheduler, a limit, or a person.",
        ),
    ],
)
def test_every_end_of_a_child_is_one_sentence(
    modules: Path,
    body: str,
    kind: type[Exception],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Another may run out of memory meanwhile.
    for place in ("engines.process.process", "jobs.child.worker"):
        monkeypatch.setattr(f"tfdyno.{place}.oom_kills", lambda: 0)
    with pytest.raises(kind) as caught:
        ask(modules, body)
    assert str(caught.value) == sentence


def test_a_kill_that_the_kernel_counted_is_one_for_lack_of_memory(
    modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdyno.engines.process.process.oom_kills", lambda: 3)
    monkeypatch.setattr("tfdyno.jobs.child.worker.oom_kills", lambda: 4)
    with pytest.raises(ToolError, match="meanwhile the kernel killed a process of this machine"):
        ask(modules, "os.kill(os.getpid(), signal.SIGKILL)")


def test_an_unexpected_exception_shows_its_last_line(modules: Path) -> None:
    with pytest.raises(ToolError, match=r'exit code 1 .*"?ZeroDivisionError: division by zero'):
        ask(modules, "1 / 0")


def test_a_child_that_hangs_is_killed_with_all_it_started(modules: Path) -> None:
    pid = modules / "pid"
    start = "str(subprocess.Popen(['sleep', '60']).pid)"
    body = f"pathlib.Path({str(pid)!r}).write_text({start}); time.sleep(60)"
    began = time.monotonic()
    with pytest.raises(ToolError, match="was stopped: no result within 8 s"):
        ask(modules, body, timeout_s=8)
    assert time.monotonic() - began < 50
    assert _is_gone(int(pid.read_text()))


def test_ctrl_c_kills_the_child(modules: Path) -> None:
    pid = modules / "pid"
    body = f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(60)"

    def interrupt() -> None:
        while not pid.exists() or not pid.read_text():
            time.sleep(0.05)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        ask(modules, body)
    thread.join()
    assert _is_gone(int(pid.read_text()))


SAVES = (
    "told = []; signal.signal(signal.SIGTERM, lambda *_: told.append(1));"
    " pathlib.Path({ready!r}).touch()\n"
    "    while not told: time.sleep(0.02)\n"
    "    {then}"
)


def stopped(folder: Path, then: str, *, grace_s: float, times: int = 1) -> Value:
    """The result of a child that is stopped as soon as it listens to SIGTERM."""
    ready = folder / "ready"

    def interrupt() -> None:
        while not ready.exists():
            time.sleep(0.02)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    thread = threading.Thread(target=interrupt)
    thread.start()
    kid = write(folder, SAVES.format(ready=str(ready), then=then))
    try:
        return run_child(
            kid,
            Question(),
            timeout_s=60,
            doing="training train.py",
            stop_grace_s=grace_s,
        )
    finally:
        thread.join()


def test_ctrl_c_lets_a_child_save_and_say_how_to_go_on(modules: Path) -> None:
    result = stopped(modules, "time.sleep(0.3); return {'resume': 'so'}", grace_s=20)
    assert result == {"resume": "so"}


def test_what_a_stopped_child_says_counts(modules: Path) -> None:
    with pytest.raises(ToolError, match=r"^the disk is full\.$"):
        stopped(modules, "raise ToolError('the disk is full')", grace_s=20)


def test_a_stopped_child_without_a_result_is_no_crash(modules: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        stopped(modules, "os._exit(1)", grace_s=20)


def test_a_stopped_child_gets_no_more_than_its_time(modules: Path) -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as caught:
        stopped(modules, "time.sleep(60)", grace_s=1)
    assert time.monotonic() - began < 45
    assert caught.value.__notes__ == ["training train.py did not end within 1 s and was killed."]


def test_a_second_ctrl_c_kills_the_child(modules: Path) -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        stopped(modules, "time.sleep(60)", grace_s=50, times=2)
    assert time.monotonic() - began < 45


def test_sigterm_lets_a_child_save_as_well(modules: Path) -> None:
    """The command line turns SIGTERM into an exception that is no ``Exception``."""
    ready, said = modules / "ready", modules / "said"
    write(modules, SAVES.format(ready=str(ready), then="return {'resume': 'so'}"))
    code = (
        "import click, json, sys; from pathlib import Path\n"
        "from tfdyno.cli.main import main; from tfdyno.jobs.child.worker import run_child\n"
        "from tfdyno.core.messages.child import Child, Nothing\n"
        "@click.group()\n"
        "def tool(): pass\n"
        "@tool.command()\n"
        "def train():\n"
        "    kid = Child(module='kid', request=Nothing, result=dict)\n"
        "    got = run_child(kid, Nothing(), timeout_s=60, stop_grace_s=30)\n"
        f"    Path({str(said)!r}).write_text(json.dumps(got))\n"
        "sys.exit(main(['train'], group=tool))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        while not ready.exists():
            time.sleep(0.05)
        parent.terminate()
    assert parent.returncode == 0
    assert said.read_text() == '{"resume": "so"}'


def test_a_listener_that_fails_ends_the_child(modules: Path) -> None:
    def fail(_line: str) -> None:
        raise BrokenPipeError("nobody reads")

    pid = modules / "pid"
    body = (
        f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); progress('building');"
        " time.sleep(60)"
    )
    began = time.monotonic()
    with pytest.raises(BrokenPipeError):
        run_child(write(modules, body), Question(), progress=fail, timeout_s=60)
    assert time.monotonic() - began < 45
    assert _is_gone(int(pid.read_text()))


def test_one_that_left_the_group_and_holds_the_output_does_not_hold_up_the_end(
    modules: Path,
) -> None:
    body = "subprocess.Popen(['sleep', '120'], start_new_session=True); return {'answer': 1}"
    began = time.monotonic()
    assert ask(modules, body) == {"answer": 1}
    assert time.monotonic() - began < 60


def test_a_child_ends_when_its_parent_is_gone(modules: Path) -> None:
    pid = modules / "pid"
    write(modules, f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(60)")
    code = (
        "from tfdyno.core.messages.child import Child, Nothing; "
        "from tfdyno.jobs.child.worker import run_child; "
        "kid = Child(module='kid', request=Nothing, result=dict); "
        "run_child(kid, Nothing(), timeout_s=60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(modules)}
    ) as parent:
        while not pid.exists() or not pid.read_text():
            time.sleep(0.05)
        parent.kill()
    assert _is_gone(int(pid.read_text()))


def test_an_interpreter_that_is_none_is_a_wrong_request(modules: Path) -> None:
    with pytest.raises(UsageError, match="cannot run /nowhere/python"):
        run_child(KID, Question(), timeout_s=5, python="/nowhere/python")


def test_another_interpreter_sees_tfdyno_but_not_what_lies_beside_it(modules: Path) -> None:
    other = modules / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    other.chmod(0o755)
    body = "import importlib.util as u; return {'found': u.find_spec('msgspec') is not None}"
    write(modules, body)
    assert run_child(KID, Question(), timeout_s=60, python=str(other)) == {"found": False}


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_failure_brings_the_exception_behind_it_and_the_last_progress(modules: Path) -> None:
    body = """progress('first step')
    try:
        raise RuntimeError('INTERNAL: no tile')
    except RuntimeError:
        raise UsageError('train.py failed', why='line 3') from None"""
    with pytest.raises(UsageError, match=r"train\.py failed: line 3") as caught:
        ask(modules, body)
    assert caught.value.raised == "RuntimeError: INTERNAL: no tile"
    assert caught.value.at == "first step"


def test_a_crash_brings_its_last_lines_and_progress(modules: Path) -> None:
    body = "progress('compiling'); print('LLVM ERROR: no', flush=True); os.abort()"
    with pytest.raises(ToolError) as caught:
        ask(modules, body)
    assert "LLVM ERROR: no" in caught.value.raised
    assert caught.value.at == "compiling"
