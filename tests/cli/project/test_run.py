"""``tfdyno run`` as it is typed, and as it is stopped and killed."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.projects import CHAIN, chain, write

from tfdyno.cli.main import main
from tfdyno.jobs.project._child import GRACE_S
from tfdyno.jobs.train.run import STOP_GRACE_S
from tfdyno.store.project_history import ProjectHistory

SLOW = """
import os, sys, time
from pathlib import Path

folder = Path(sys.argv[1])
with open("pids.txt", "a") as file:
    print(os.getpid(), file=file, flush=True)
if not Path("go.txt").exists():
    time.sleep(60)
(folder / "done.txt").write_text("done")
"""
STEPS = """
[steps.first]
command = "python first.py"

[steps.slow]
command = "python slow.py"
arguments = ["{output}"]
needs = ["first"]
"""


def slow(folder: Path) -> Path:
    write(folder, {"project.toml": STEPS, "slow.py": SLOW, "first.py": ""})
    return folder


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    """``tfdyno run``, whose slow step runs; its standard error is read to there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tfdyno", "run", *words], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until_s = time.monotonic() + 60
    while not (folder / "pids.txt").exists() or not (folder / "pids.txt").read_text():
        assert time.monotonic() < until_s
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def gone(folder: Path) -> bool:
    """Whether the slow step's process ends within five seconds."""
    pid = int((folder / "pids.txt").read_text().split()[0])
    until_s = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < until_s:
        time.sleep(0.02)
    return not is_alive(pid)


@pytest.mark.parametrize(
    ("number", "code", "status", "said"),
    [
        (signal.SIGINT, 130, "stopped", "tfdyno: stopped by Ctrl-C; what is finished is kept"),
        (signal.SIGTERM, 143, "stopped", "tfdyno: ended by SIGTERM; what is finished is kept"),
        (signal.SIGHUP, 129, "stopped", "tfdyno: ended by SIGHUP; what is finished is kept"),
        (signal.SIGKILL, -9, "running", ""),
    ],
)
def test_however_it_ends_no_child_is_left_and_the_next_run_goes_on(
    number: signal.Signals, code: int, status: str, said: str, tmp_path: Path
) -> None:
    process = started(slow(tmp_path))
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert said in err
    assert gone(tmp_path)
    history = ProjectHistory(folder=tmp_path / "tfdyno-project")
    (run,) = history.runs()
    assert [one.status for one in run.steps] == ["finished", status]
    (tmp_path / "go.txt").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "tfdyno", "run", "--json"], cwd=tmp_path, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["status"] for one in found["steps"]] == ["reused", "finished"]
    assert found["steps"][1]["why"] == "it was stopped last time"
    folder = tmp_path / "tfdyno-project" / found["steps"][1]["output"]
    assert (folder / "done.txt").read_text() == "done"
    assert [run.status for run in history.runs()] == ["finished", "stopped"]


SAVES = """
import signal, sys, time
from pathlib import Path

def saved(number, _frame):
    time.sleep(1.5)
    Path("saved.txt").write_text(signal.Signals(number).name)
    sys.exit(1)

signal.signal(signal.SIGTERM, saved)
Path("pids.txt").write_text("1")
time.sleep(60)
"""


def test_a_child_that_saves_its_work_is_waited_for_and_that_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"project.toml": 'steps.a = {command = "python a.py"}', "a.py": SAVES})
    process = started(tmp_path)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 129
    assert (tmp_path / "saved.txt").read_text() == "SIGTERM"
    assert "a (1 of 1): waiting for it to bring its work to safety (a checkpoint); a second" in err


def test_a_terminal_that_is_closed_ends_it_as_sigterm_does(tmp_path: Path) -> None:
    write(tmp_path, {"project.toml": 'steps.a = {command = "python a.py"}',
                     "a.py": SAVES.replace("1.5", "0")})  # fmt: skip
    code = "import os; from tfdyno.cli.main import main; os._exit(main(['run']))"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-c", code])
    until_s = time.monotonic() + 60
    while not (tmp_path / "pids.txt").exists() and time.monotonic() < until_s:
        time.sleep(0.02)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    assert (tmp_path / "saved.txt").read_text() == "SIGTERM"
    (run,) = ProjectHistory(folder=tmp_path / "tfdyno-project").runs()
    assert (run.status, run.steps[0].status) == ("stopped", "stopped")


def test_a_training_has_the_time_for_its_checkpoint_that_it_gives_itself() -> None:
    assert GRACE_S > STOP_GRACE_S


def test_two_at_once_are_refused_with_the_process_that_runs(tmp_path: Path) -> None:
    process = started(slow(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "tfdyno", "run"], cwd=tmp_path, capture_output=True, text=True
    )
    process.terminate()
    process.communicate(timeout=30)
    assert done.returncode == 2
    assert re.search(rf"in use by another run: process {process.pid} on ", done.stderr)
    assert done.stdout == ""


def test_the_answer_is_a_table_then_the_reasons_and_the_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["run"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("chain: 4 steps run, 0 reused.\n\nstep   status")
    assert re.search(r"\nb      done +\d\.\d s  3 signs\n", out)
    assert "because" not in out
    assert re.search(r"Outputs\n  a      tfdyno-project/outputs/a-[0-9a-f]{16}\n", out)
    assert err.splitlines()[:2] == ["a (1 of 4): it has not run yet", err.splitlines()[1]]
    assert re.fullmatch(r"a: done in \d\.\d s: 2 signs", err.splitlines()[1])
    assert main(["run", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("chain: nothing has changed; 4 steps reused.")
    assert err == ""
    (tmp_path / "start.txt").write_text("1")
    assert main(["run", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "Ran again because\n  a  start.txt changed\n  b  a ran anew\n" in out


def test_a_dry_run_says_what_would_run_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = chain(tmp_path)
    assert main(["run", str(file), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("chain: 4 steps of 4 would run.\n\nstep   status     why\n")
    assert "\nb      would run  a would run anew\n" in out
    assert main(["run", str(file), "-q"]) == 0
    capsys.readouterr()
    assert main(["run", str(file), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("chain: nothing would run.")


def test_a_failed_step_is_told_with_its_log_and_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = chain(tmp_path, CHAIN.replace('"start.txt", "{output}', '"start.txt", "/dev/null/x'))
    assert main(["run", str(file), "--quiet"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("chain: step a failed.")
    assert "step a ended with exit code 1: " in out
    log = re.search(r"Its log:\s+(\S+)", out)
    assert log
    assert "NotADirectoryError" in Path(log[1]).read_text()
    assert "Outputs" not in out


@pytest.mark.parametrize(("code", "told"), [(2, 2), (3, 3), (7, 3)])
def test_the_exit_code_of_the_command_is_kept(
    code: int, told: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"project.toml": 'steps.a = {command = "python a.py"}',
                     "a.py": f"raise SystemExit({code})"})  # fmt: skip
    assert main(["run", str(tmp_path / "project.toml"), "--json", "-q"]) == told
    out, err = capsys.readouterr()
    assert json.loads(out)["steps"][0]["exit_code"] == code
    assert err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "d"], "has no step d; there are a, b, c, other"),
        (["--from", "c", "--only", "c"], "--from and --only contradict"),
        (["--force", " "], "--force is empty"),
        (["elsewhere.toml"], "there is no file elsewhere.toml"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["run", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "tfdyno-project").exists() or words[0] == "--only"


def test_without_a_project_the_file_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run"]) == 2
    assert "there is no file project.toml" in capsys.readouterr().err


def test_a_project_is_begun_for_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"train.py": ""})
    assert main(["run", "--init", "train.py", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["file"], told["steps"][0], told["steps"][-1]) == (
        "project.toml",
        "advise",
        "serve",
    )
    assert main(["run", "--init", "train.py"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["run", "b.toml", "--init", "train.py", "--only", "train"]) == 2
    assert "--init and --only contradict" in capsys.readouterr().err
    assert main(["run", "b.toml", "--init", "train.py"]) == 0
    assert capsys.readouterr().out.startswith("Wrote b.toml with 7 steps: advise, train, ")
    assert not (tmp_path / "tfdyno-project").exists()  # nothing ran
