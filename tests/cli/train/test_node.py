"""cli/node: what an engine starts is a command that people seldom type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('never runs')\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    return tmp_path


def test_the_help_of_tfdyno_does_not_list_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "\n  node" not in capsys.readouterr().out
    assert main(["node", "--help"]) == 0
    assert "TFDYNO_WORKERS" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--nodes", "2", "--output", "run"], "set TFDYNO_RANK"),
        (["--rank", "-1", "--output", "run"], "--rank -1 is not possible"),
        (["--nodes", "2", "--rank", "0", "--output", "run"], "where the others are"),
        ([], "name it with --output"),
    ],
)
def test_what_is_missing_is_told(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["node", "train.py", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_program_that_watches_gets_the_failure_as_an_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["node", "train.py", "--nodes", "2", "--output", "run", "--events"]) == 2
    first = capsys.readouterr().err.splitlines()[0]
    event = json.loads(first.removeprefix("progress: "))
    assert event["event"] == "failed"
    assert event["error"]["kind"] == "usage"


def test_alone_its_failure_is_an_event_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads the event prints it: two lines would say the same."""
    monkeypatch.delenv("TFDYNO_DEBUG", raising=False)
    words = ["node", "train.py", "--nodes", "1", "--events"]
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "name it with --output" in json.loads(line.removeprefix("progress: "))["error"]["remedy"]
    monkeypatch.setenv("TFDYNO_DEBUG", "1")
    assert main(words) == 2
    assert "Traceback" in capsys.readouterr().err
