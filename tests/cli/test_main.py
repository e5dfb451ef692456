from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import click
import pytest

from tfdyno.cli import main as cli
from tfdyno.cli.lazy import Entry
from tfdyno.core.base.errors import ToolError, UsageError


def install(
    monkeypatch: pytest.MonkeyPatch, error: BaseException | None, *, result: int = 0
) -> None:
    """Add a command ``boom`` that raises ``error`` or returns ``result``."""

    @click.command()
    def boom() -> int:
        """Fail as told."""
        if error is not None:
            raise error
        return result

    module = types.ModuleType("boom_command")
    module.boom = boom  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "boom_command", module)
    entry = Entry(module="boom_command", summary="Fail as told.", section="Test")
    monkeypatch.setitem(cli.COMMANDS, "boom", entry)


def test_help_lists_every_command_under_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, entry in cli.COMMANDS.items():
        if not entry.section:  # programs call it
            assert not any(line.startswith(f"  {name} ") for line in lines)
            continue
        row = next(line for line in lines if line.startswith(f"  {name} "))
        assert row.endswith(entry.summary)
        assert f"{entry.section}:" in lines


def test_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == "tfdyno 0.1.0\n"


def test_no_command_shows_the_help_and_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "Usage: tfdyno" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gpsu"], "no command 'gpsu'; did you mean gpus?"),
        (["estimat"], "no command 'estimat'; did you mean estimate?"),
        (
            ["xyzzy"],
            "no command 'xyzzy'; there are run, doctor, advise, estimate, ui, memory, train, "
            "launch, migrate, recipe, bench, calibrate, compare, diagnose, tune, export, edge, "
            "models, serve, report, runs, gpus, offers, cache and data",
        ),
        (["--jsom"], "no such option"),
        (["boom", "extra"], "(see tfdyno boom --help)"),
    ],
)
def test_wrong_words_end_in_one_sentence_and_exit_2(
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if words[0] == "boom":
        install(monkeypatch, None)
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.startswith("tfdyno: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no GPU 'x'", why="not in the catalogue", remedy="see tfdyno gpus"), 2,
         "tfdyno: no GPU 'x': not in the catalogue; see tfdyno gpus.\n"),
        (ToolError("the compile child was killed"), 3, "tfdyno: the compile child was killed.\n"),
        (click.ClickException("no such file"), 2, "tfdyno: no such file\n"),
        (KeyboardInterrupt(), 130, "tfdyno: stopped by Ctrl-C; nothing was written.\n"),
    ],
)  # fmt: skip
def test_a_failure_is_one_sentence_and_its_exit_code(
    error: BaseException,
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, error)
    assert cli.main(["boom"]) == code
    assert capsys.readouterr() == ("", said)


def test_a_defect_asks_for_a_report_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, KeyError("weights"))
    assert cli.main(["boom"]) == 3
    err = capsys.readouterr().err
    assert "defect in tfdyno (KeyError: 'weights'); please report it" in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, KeyError("weights"))
    monkeypatch.setenv("TFDYNO_DEBUG", "1")
    assert cli.main(["boom"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_a_command_returns_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None, result=1)
    assert cli.main(["boom"]) == 1


@pytest.mark.skipif(os.name != "posix", reason="pipes close with a signal only on POSIX")
def test_a_reader_that_goes_away_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "tfdyno", "--help"]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert done.returncode == 141
    assert done.stderr == ""


SLEEPS = """
import os, pathlib, time
pathlib.Path("pid").write_text(str(os.getpid()))
time.sleep(100)
"""


@pytest.mark.skipif(os.name != "posix", reason="other systems have no SIGTERM to catch")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGTERM, 143, "tfdyno: ended by SIGTERM; nothing was written.\n"),
        (signal.SIGINT, 130, "tfdyno: stopped by Ctrl-C; nothing was written.\n"),
    ],
)
def test_an_ended_job_leaves_no_child_and_no_folder(
    number: int, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"),
                   "TFDYNO_CACHE": str(tmp_path / "cache")}  # fmt: skip
    command = [sys.executable, "-m", "tfdyno", "estimate", "sleeps.py", "--gpu", "t4", "--quiet"]
    job = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    child = _told_number(tmp_path / "pid")
    assert list((tmp_path / "temporary").iterdir())
    job.send_signal(number)
    _, err = job.communicate(timeout=60)
    assert (job.returncode, err) == (code, said)
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not _lives(child)


def _told_number(path: Path) -> int:
    """The number that another process writes into a file, once it is there."""
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        text = path.read_text() if path.exists() else ""
        if text:
            return int(text)
        time.sleep(0.05)
    raise AssertionError(f"nothing was written to {path}")


def _lives(process: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_handler_of_the_caller_is_left_as_it_was() -> None:
    before = [signal.getsignal(one) for one in cli.ENDINGS]
    assert cli.main(["--version"]) == 0
    assert [signal.getsignal(one) for one in cli.ENDINGS] == before


TOLD_TWICE = """
import signal, sys, time
from tfdyno.cli import main as cli

cli.SAME_S = float(sys.argv[1])
if sys.argv[2] == "ignored":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

def brought_to_safety():
    try:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
    finally:
        time.sleep(0.2)
        signal.raise_signal(signal.SIGTERM)
        print("safe", flush=True)

cli._invoke = lambda *_words: brought_to_safety()
try:
    cli.main([])
except BaseException as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("same_s", "hangup", "code", "out"),
    [
        ("60", "told", 0, "safe\nSIGHUP\n"),  # a whole job is told, then the parent tells again
        ("60", "ignored", 0, "safe\nSIGTERM\n"),  # as with nohup
        ("0.1", "told", -15, ""),
    ],
)
def test_a_request_to_end_that_is_told_twice_is_one(
    same_s: str, hangup: str, code: int, out: str
) -> None:
    command = [sys.executable, "-c", TOLD_TWICE, same_s, hangup]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, out), done.stderr


def test_python_m_and_the_script_are_the_same_program() -> None:
    script = Path(sys.executable).parent / "tfdyno"
    command = [str(script)] if script.exists() else [sys.executable, "-m", "tfdyno"]
    for words in (command, [sys.executable, "-m", "tfdyno"]):
        done = subprocess.run([*words, "nope"], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "no command 'nope'" in done.stderr


@pytest.mark.parametrize("where", [">&-", ">&- 2>&-"])
def test_a_closed_output_is_one_sentence(where: str) -> None:
    done = _shell(where)
    assert done.returncode == 3
    assert done.stderr in ("", "tfdyno: there is nowhere to print: standard output is closed.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_sentence() -> None:
    done = _shell("> /dev/full")
    assert done.returncode == 3
    assert done.stderr == "tfdyno: cannot write the answer: No space left on device.\n"


def _shell(redirection: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m tfdyno gpus {redirection}"
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False)


ENDS = """
import atexit, sys, threading, time
from tfdyno.cli.main import main
sys.argv = ["tfdyno", "--version"]
atexit.register(print, "at exit")
def works():
    time.sleep(0.5)
    print("worked")
{begin}
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("begin", "out"),
    [("", "at exit\n"), ("threading.Thread(target=works).start()", "worked\nat exit\n")],
)
def test_the_program_ends_after_what_is_left_to_do(begin: str, out: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS.format(begin=begin)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "tfdyno 0.1.0\n" + out)


def test_the_program_keeps_its_exit_code() -> None:
    done = subprocess.run([sys.executable, "-m", "tfdyno", "gpus", "none"], capture_output=True)
    assert done.returncode == 2
