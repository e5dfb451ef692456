"""``tfdyno cache`` end to end."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.jobs.disks import mounted

from tfdyno.cli.main import main
from tfdyno.jobs.compiled.store import program_store

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_CACHE", str(tmp_path / "cache"))
    about = {"framework": "tensorflow", "version": "2.21.0", "processor": "AMD EPYC"}
    view = program_store({}).view("ab", about, {"programs": "programs"})
    (view.place("programs") / "a.pb").write_bytes(b"x" * 100)
    view.collect()
    view.close()
    return tmp_path / "cache"


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Value:
    capsys.readouterr()
    assert main(["cache", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_shows_what_is_kept(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    shown = " ".join(capsys.readouterr().out.split())  # a long path ends its line
    assert shown.startswith(f"{cache} holds 100 B.")
    assert answer(capsys)["bytes"] == 100


def test_clear_deletes_and_says_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "clear", "--dry-run")["removed"] is False
    assert answer(capsys, "clear", "--kind", "traces")["groups"] == []
    assert answer(capsys, "clear", "--older-than", "30d")["groups"] == []
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == (
        "Deleted 1 entry, 100 B: programs of trainings for TensorFlow 2.21.0, AMD EPYC.\n"
    )
    assert answer(capsys)["bytes"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["clear", "--older-than", "soon"], "write hours, days or weeks, as 12h, 30d or 4w"),
        (["clear", "--older-than", "-3d"], "--older-than -3d cannot be read"),
        (["clear", "--older-than", "0d"], "--older-than 0d cannot be read"),
        (["clear", "--kind", "progams"], "did you mean programs?"),
        (["claer"], "No such command 'claer'"),
    ],
)
def test_wrong_use_is_one_sentence_and_deletes_nothing(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", *words]) == 2
    assert said.lower() in capsys.readouterr().err.lower()
    assert answer(capsys)["bytes"] == 100


def test_a_size_that_cannot_be_read_is_wrong_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TFDYNO_COMPILE_CACHE", "much")
    assert main(["cache"]) == 2
    assert "'much' is not an amount of memory" in capsys.readouterr().err


def test_what_cannot_be_deleted_is_said_and_no_good_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with mounted(tmp_path / "disk", "1m") as disk:
        monkeypatch.setenv("TFDYNO_CACHE", str(disk))
        disk.chmod(0o700)
        view = program_store({}).view("ab", {}, {"programs": "programs"})
        (view.place("programs") / "a.pb").write_bytes(b"x")
        view.collect()
        view.close()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert main(["cache", "clear"]) == 3
    told = capsys.readouterr()
    assert "Not deleted:" in told.out
    assert "1 of the entries could not be deleted" in told.err
