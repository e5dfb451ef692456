"""``tfdyno serve``: what is wrong is one sentence and exit code 2, before a process is started."""

from __future__ import annotations

import os
import pty
import socket
import sys
from typing import TYPE_CHECKING

import pytest
from tests.served import serving_folder

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["serve", *words])
    return code, *capsys.readouterr()


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TFDYNO_SERVING", str(serving_folder()))
    (tmp_path / "saved_model.pb").write_bytes(b"graph")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "there is no model to serve"),
        (("--setup", "cnn"), "takes no model"),
        (("cnn", "--gpu"), "--gpu goes with --setup"),
        (("cnn", "--port", "70000"), "port"),
        (("cnn", "--max-batch", "0"), "max-batch"),
        (("cnn", "--max-delay-ms", "-1"), "max-delay-ms"),
        (("cnn", "--max-delay-ms", "nan"), "max-delay-ms"),
        (("cnn", "--p99-ms", "0"), "p99-ms"),
        (("cnn", "--requests-per-s", "5"), "goes with --p99-ms"),
        (("cnn", "--name", "a/b"), "cannot be part of an address"),
        (("cnn", "--token", "a", "--token-file", "b"), "contradict"),
        (("cnn", "--token-file", "/no/such"), "cannot read"),
        (("cnn", "--log", "/no/such/log"), "cannot write"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, *words)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "code", "folder"),
    [
        ("train.py:build", "train.py:build", "build"),
        ("train.py:taken", "train.py:taken", "taken-served"),
        ("train.py", "train.py:FUNCTION", "train"),
        ("keras:ResNet50", "keras:ResNet50", "ResNet50"),
        ("nets.small:build", "nets.small:build", "build"),
    ],
)
def test_code_is_refused_with_the_two_commands_to_type(
    text: str,
    code: str,
    folder: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFDYNO_SERVING", str(tmp_path / "none"))
    (tmp_path / "train.py").write_text("def build(): ...\n")
    (tmp_path / "taken").mkdir()
    assert called(capsys, text) == (2, "", (
        f"tfdyno: {text} is code, and a server runs what was exported; type tfdyno export {code} "
        f"--to savedmodel --output {folder}, then tfdyno serve {folder}.\n"
    ))  # fmt: skip


def test_a_script_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert called(capsys, "no.py:build") == (2, "", "tfdyno: there is no file no.py.\n")


def test_without_an_environment_or_a_terminal_nothing_is_downloaded(
    model: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFDYNO_SERVING", str(tmp_path / "none"))
    code, out, err = called(capsys, model, "--port", "0")
    assert (code, out) == (2, "")
    assert err == (
        f"tfdyno: there is no serving environment in {tmp_path / 'none'}; make it once with tfdyno "
        "serve --setup, or add --yes.\n"
    )
    assert not (tmp_path / "none").exists()


def test_a_model_that_is_not_there_is_told_before_an_environment_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_SERVING", str(tmp_path / "none"))
    code, _, err = called(capsys, str(tmp_path / "no.keras"), "--yes")
    assert code == 2
    assert "no.keras" in err
    assert list(tmp_path.iterdir()) == []


def at_a_terminal(answer: str, *words: str, **environment: str) -> tuple[int, str]:
    """What the command line prints where someone types an answer when it asks."""
    command = [sys.executable, "-m", "tfdyno", *words]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, command, {**os.environ, **environment})
    said, asked = b"", False
    while chunk := read_terminal(terminal):
        said += chunk
        if not asked and said.rstrip().endswith(b":") and b"[Y/n]" in said:
            asked = True
            os.write(terminal, f"{answer}\n".encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.decode()


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux tells the end of a terminal
        return b""


def test_a_terminal_is_asked_and_a_no_downloads_nothing(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    code, said = at_a_terminal("n", "serve", model, "--port", "0", TFDYNO_SERVING=str(folder))
    assert code == 2
    assert f"There is no serving environment in {folder}. Models are served in one" in said
    assert "packages of 1.8 GB" in said
    assert "make it once with tfdyno serve --setup" in said
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["y", ""])
def test_a_yes_makes_the_environment_and_a_failure_leaves_nothing(
    answer: str, model: str, tmp_path: Path
) -> None:
    place = tmp_path / "data" / "serving"
    words = ("serve", model, "--port", "0")
    code, said = at_a_terminal(answer, *words, TFDYNO_SERVING=str(place), PIP_NO_INDEX="1")
    assert code == 3
    assert "making an empty environment" in said
    assert "the serving environment could not be made" in said
    assert list(place.parent.iterdir()) == []


@pytest.mark.slow
def test_where_there_is_no_terminal_a_yes_on_the_command_line_makes_it(
    model: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFDYNO_SERVING", str(tmp_path / "data" / "serving"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    code, out, err = called(capsys, model, "--port", "0", "--yes")
    assert (code, out) == (3, "")
    assert "could not be made: Could not find a version" in err


def test_a_port_in_use_is_told_before_anything_is_started(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        for option in ("--port", "--grpc-port"):
            code, _, err = called(capsys, model, option, str(port))
            assert code == 2
            assert f"cannot listen on 127.0.0.1:{port}" in err
            assert f"with {option}" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--host", "0.0.0.0"), "there is no token"),
        (("--host", "no.such.invalid", "--insecure"), "there is no address"),
        (("--tls-cert", "c.pem"), "needs a certificate and its key"),
        (("--versions", "7"), "has no version 7"),
        (("--versions", "newest"), "version"),
    ],
)
def test_what_cannot_be_served_so_is_one_sentence(
    words: tuple[str, ...], told: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, model, "--port", "0", *words)
    assert (code, out) == (2, "")
    assert told in err


def test_a_token_comes_from_the_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfdyno.cli.deploy.serve import TOKEN, _token

    (tmp_path / "token").write_text("from the file\n")
    monkeypatch.setenv(TOKEN, "from outside")
    assert _token(None, tmp_path / "token") == "from the file"
    assert _token(None, None) == "from outside"
    assert _token("typed", None) == "typed"
