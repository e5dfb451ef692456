"""The command ``doctor``: what it prints, in which language, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.probe.conftest import Recorded, build, recorded
from tests.rules.environment.test_recorded import ROOTS

from tfdyno.cli.main import main
from tfdyno.core.base.codec import from_builtins
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.jobs.doctor.doctor import told_facts
from tfdyno.probe.machine.machine import examine
from tfdyno.probe.machine.record import save_environment
from tfdyno.probe.machine.redact import Identity
from tfdyno.rules import causes

__all__ = ["build", "recorded"]  # the fixtures of the probes

Environment = Callable[[str], str]
OOM = Path(__file__).parents[2] / "data" / "oom"
OLD_GUIDE = str(Path(__file__).parents[2] / "data" / "doctor" / "old_guide.py")
DRIVER_LOG = (
    "2025-01-01 10:00:00.000000: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:152] "
    "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: "
    "CUDA_ERROR_UNKNOWN: unknown error\n"
)
KEYS = {
    "cause", "verdict", "severity", "summary", "why", "evidence", "fix", "steps", "harmless",
    "symptoms", "link", "count",
}  # fmt: skip


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests read English unless they say otherwise."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def environment(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Writes the facts of a recorded machine as ``--save-env`` does; gives the path."""

    def write(name: str) -> str:
        path = tmp_path_factory.mktemp("env") / f"{name}.json"
        save_environment(path, examine(recorded(name)), Identity(users=("sam",)))
        return str(path)

    return write


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code and standard output of ``tfdyno doctor``, where nothing is on stderr."""
    code = main(["doctor", "--quiet", *words])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


def documented(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(capsys, *words, "--json")[1])
    return found


def process(*words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tfdyno", "doctor", "--quiet", *words]
    given = {k: v for k, v in os.environ.items() if k not in {"LC_ALL", "LC_MESSAGES", "LANG"}}
    return subprocess.run(command, capture_output=True, env={**given, **variables})


@pytest.mark.parametrize("name", ROOTS)
def test_saved_facts_give_the_findings_of_the_machine_they_come_from(
    name: str, environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    found = documented(capsys, "--env", environment(name))["findings"]
    assert [one["cause"] for one in found if not one["harmless"]] == ROOTS[name]


@pytest.mark.parametrize(("name", "code"), [("macos", 0), ("linux_pip", 1)])
def test_the_exit_code_tells_whether_a_finding_is_an_error(
    name: str, code: int, environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out = printed(capsys, "--env", environment(name))
    assert found == code
    assert out.endswith(f"exit {code}\n")


def test_a_corrupt_rule_is_a_failure_of_the_tool(
    environment: Environment,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = environment("wsl2_ld_path_first")
    (tmp_path / "wsl.toml").write_text("[driver]\nseverity = 3\n")
    monkeypatch.setattr(causes, "DATA", tmp_path)
    causes.cause.cache_clear()
    assert main(["doctor", "--env", path]) == 3
    causes.cause.cache_clear()
    out, err = capsys.readouterr()
    assert out == ""
    assert "wsl.toml, cause 'driver' is wrong" in err


def test_this_machine_is_examined_without_tensorflow(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = printed(capsys, "--quick")
    assert f"Python {'.'.join(map(str, sys.version_info[:3]))}" in out
    assert "TensorFlow: because of --quick" in out


def test_saved_facts_of_this_machine_are_read_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "facts.json"
    here = documented(capsys, "--quick", "--save-env", str(path))
    again = documented(capsys, "--env", str(path))
    assert [one["cause"] for one in again["findings"]] == [one["cause"] for one in here["findings"]]
    assert again["machine"]["release"] == here["machine"]["release"] != ""


def test_json_has_the_documented_keys_and_the_whole_machine(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    path = environment("linux_pip")
    found = documented(capsys, "--env", path)
    assert found.keys() == {"findings", "memory", "fine", "notes", "unexplained", "machine"}
    assert all(one.keys() == KEYS for one in found["findings"])
    assert from_builtins(found["machine"], MachineFacts) == told_facts(Path(path))
    first = found["findings"][0]
    assert [one["command"] for one in first["steps"] if one["command"]]
    assert all(one["command"] in text
               for one, text in zip(first["steps"], first["fix"], strict=True))  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="the commands are shell scripts")
def test_a_fix_plan_lists_the_commands_and_runs_none(
    environment: Environment, tmp_path: Path
) -> None:
    trap = tmp_path / "bin"
    trap.mkdir()
    for name in ("sudo", "pip", "python", "python3", "uv", "conda", "apt", "nvidia-smi", "export"):
        (trap / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (trap / name).chmod(0o755)
    done = process("--env", environment("linux_pip"), "--fix-plan", PATH=str(trap))
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert lines[0].startswith("# Commands in order")
    assert any("pip install" in line for line in lines if not line.startswith("#"))
    assert not (tmp_path / "ran").exists()
    subprocess.run(["sh", "-n"], input=done.stdout, check=True)  # it is a shell script


def test_a_fix_plan_says_where_there_is_nothing_to_do(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    path = environment("macos")
    assert printed(capsys, "--env", path, "--fix-plan") == (0, "# Nothing to do.\n")


def test_a_shared_report_names_no_user_host_path_or_secret(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "sam_the_tester@node-0815:~$ python /home/sam_the_tester/private-idea/train.py "
        "--wandb_api_key=0123456789abcdef\n"
        "OSError: /home/sam_the_tester/private-idea/lib/libcudnn.so.9: cannot open shared object "
        "file: No such file or directory (10.20.30.40)\n" + DRIVER_LOG
    )
    given = {
        "USER": "sam_the_tester", "LOGNAME": "sam_the_tester", "HOME": "/home/sam_the_tester",
        "HOSTNAME": "node-0815", "LD_LIBRARY_PATH": "/home/sam_the_tester/private-idea/lib",
        "TF_API_TOKEN": "hf_aBcDeFgHiJkLmNoP",
    }  # fmt: skip
    for words in (("--explain", str(log)), ("--quick",)):
        done = process(*words, "--share", **given)
        text = done.stdout.decode()
        assert done.returncode in (0, 1), done.stderr
        assert text.startswith("### tfdyno doctor\n")
        for secret in ("sam_the", "0815", "private-idea", "0123456789", "aBcDeF", "10.20.30"):
            assert secret not in text
    assert "LD_LIBRARY_PATH=~/" in text


@pytest.mark.parametrize(
    ("variables", "is_chinese"),
    [
        ({}, False),
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_TW.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, True),
    ],
)
def test_the_locale_chooses_the_language(
    variables: dict[str, str],
    is_chinese: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TFDYNO_LANG")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("退出码" in printed(capsys, "--quick")[1]) is is_chinese


def test_an_option_wins_over_the_locale(
    environment: Environment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    path = environment("linux_no_driver")
    _, out = printed(capsys, "--env", path, "--lang", "zh")
    first = out.splitlines()[0]
    assert "驱动" in first
    assert "1 个警告" in out or "0 个警告" in out


@pytest.mark.parametrize(
    ("name", "cause"), [("tf2_gpu.log", "mem.oom_model"), ("tf221_host.log", "mem.host_oom")]
)
def test_a_log_of_exhausted_memory_is_explained_with_what_held_it(
    name: str, cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = documented(capsys, "--explain", str(OOM / name))
    assert found["findings"][0]["cause"] == cause
    assert any("MiB" in sentence for sentence in found["memory"])


def test_a_log_comes_from_standard_input_too() -> None:
    command = [sys.executable, "-m", "tfdyno", "doctor", "--explain", "-", "--json"]
    done = subprocess.run(command, input=DRIVER_LOG.encode(), capture_output=True)
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"][0]["cause"].startswith("drv.")


def test_code_is_checked_for_the_machine_that_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = tmp_path / "told.json"
    told.write_text('{"tf": "2.21.0"}')
    code, out = printed(capsys, "--code", OLD_GUIDE, "--env", str(told))
    assert code == 1
    assert "old_guide.py, line " in out or "old_guide.py:" in out


def test_every_harmless_line_gets_its_reason_when_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = str(OOM / "tf221_host.log")
    folded, whole = (
        printed(capsys, "--explain", log, *rest)[1] for rest in ((), ("--show-ignored",))
    )
    assert "--show-ignored lists them" in " ".join(folded.split())
    assert "harmless.onednn: " in " ".join(whole.split())
    assert "--show-ignored" not in whole


@pytest.mark.parametrize("encoding", ["latin-1:strict", "cp1252:strict", "ascii:strict"])
def test_what_a_terminal_cannot_show_is_no_failure(encoding: str) -> None:
    done = process("--quick", "--lang", "zh", PYTHONIOENCODING=encoding, LANG="C")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"gpu." in done.stdout or b"Python" in done.stdout


def test_a_tensorflow_on_the_path_variable_is_used_and_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of the real packages but their metadata, for an interpreter that has none."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")]
    subprocess.run(command, check=True)
    (tmp_path / "own").mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.endswith(".dist-info"):
            (tmp_path / "own" / package.name).symlink_to(package)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    python = str(tmp_path / "env" / "bin" / "python")
    main(["doctor", "--python", python, "--json"])
    told = json.loads(capsys.readouterr().out)
    causes = [one["cause"] for one in told["findings"]]
    assert "py.wrong_interpreter" not in causes
    assert any(one.startswith("TensorFlow 2.") for one in told["fine"])
    assert any(one.startswith("import ") for one in told["fine"])  # the child used it
