"""``tfdyno models`` end to end: keep, promote, go back, clear away."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "store"
    monkeypatch.setenv("TFDYNO_STORE", str(folder))
    return folder


def keras_file(path: Path, content: str = "{}") -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", content)
    return str(path)


def kept(tmp_path: Path, count: int) -> None:
    for number in range(count):
        path = keras_file(tmp_path / "cnn.keras", str(number))
        assert main(["models", "add", path, "--metrics", f"accuracy=0.{number + 5}", "-q"]) == 0


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Value:
    capsys.readouterr()
    assert main(["models", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["models", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    return captured.err


def test_versions_are_kept_listed_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(tmp_path, 2)
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in out] == ["cnn:1", "cnn:2"]
    assert main(["models", "promote", "cnn:1"]) == 0
    assert capsys.readouterr().out == "cnn:1 is now in use.\n"
    assert main(["models", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["cnn:2", "keras"]
    assert lines[2].split()[:2] == ["cnn:1", "production"]
    assert "accuracy 0.6" in lines[1]
    assert main(["models", "show", "cnn:2"]) == 0
    assert "accuracy 0.6000" in capsys.readouterr().out
    assert main(["models", "show", "cnn"]) == 0
    assert "cnn:1 (production)" in capsys.readouterr().out


def test_json_has_every_fact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = keras_file(tmp_path / "cnn.keras")
    made = answer(capsys, "add", path, "--name", "other", "--label", "gold")
    assert (made["id"], made["new"], made["label"]) == ("other:1", True, "gold")
    assert not answer(capsys, "add", path, "--name", "other")["new"]
    assert answer(capsys, "promote", "other:1")["new"]
    shown = answer(capsys, "show", "other")
    assert shown["promoted"]
    assert shown["files"][0]["size_bytes"] == shown["size_bytes"]
    assert [one["action"] for one in shown["history"]] == ["promote"]
    (model,) = answer(capsys, "list")["models"]
    assert (model["name"], model["production"]) == ("other", 1)


def test_rollback_label_and_get(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(tmp_path, 2)
    for version in ("cnn:1", "cnn:2"):
        main(["models", "promote", version])
    back = answer(capsys, "rollback", "cnn")
    assert (back["id"], back["before"]) == ("cnn:1", 2)
    assert answer(capsys, "label", "cnn:2", "gold")["label"] == "gold"
    assert answer(capsys, "label", "cnn:2", "--remove")["label"] == ""
    output = tmp_path / "out.keras"
    assert answer(capsys, "get", "cnn:2", "--output", str(output))["id"] == "cnn:2"
    assert output.read_bytes() == (tmp_path / "cnn.keras").read_bytes()


def test_nothing_is_cleared_away_without_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(tmp_path, 3)
    assert "nothing was removed; add --yes" in refused(capsys, "gc", "--keep", "1")
    planned = answer(capsys, "gc", "--keep", "1")
    assert (planned["removed"], [one["version"] for one in planned["versions"]]) == (False, [1, 2])
    capsys.readouterr()
    assert main(["models", "gc", "--keep", "1", "--yes"]) == 0
    assert capsys.readouterr().out.startswith("Removed 2 versions; ")
    assert main(["models", "rm", "cnn:3", "--yes"]) == 0
    assert answer(capsys, "list")["models"] == []
    assert answer(capsys, "gc", "--yes")["freed_bytes"] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "cmn"], "did you mean cnn?"),
        (["show", "cnn:9"], "cnn has no version 9: it has 1"),
        (["promote", "cnn"], "'cnn' names no version"),
        (["rollback", "cnn:1"], "a roll-back goes to the version before, not to 1"),
        (["label", "cnn:1"], "say a label, or --remove"),
        (["add", "none.keras"], "none.keras does not exist"),
        (["add", "{path}", "--metrics", "accuracy"], "write KEY=VALUE"),
        (["add", "{path}", "--metrics", "accuracy=nan"], "metric accuracy"),
        (["add", "{path}", "--name", "a/b"], "'a/b' is no name of a model"),
        (["gc", "--keep", "0"], "keep"),
        (["promte", "cnn:1"], "promote"),
    ],
)
def test_a_wrong_word_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    kept(tmp_path, 1)
    path = str(tmp_path / "cnn.keras")
    assert told in refused(capsys, *(word.format(path=path) for word in words))
    assert [one["name"] for one in answer(capsys, "list")["models"]] == ["cnn"]


def test_a_damaged_file_is_named_with_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], store: Path
) -> None:
    kept(tmp_path, 1)
    (bad,) = (store / "artefacts").rglob("*.keras")
    bad.chmod(0o644)
    bad.write_bytes(b"x")
    capsys.readouterr()
    assert main(["models", "show", "cnn"]) == 1
    assert f"damaged  {bad}"[:20] in capsys.readouterr().out
    assert main(["models", "get", "cnn", "--output", str(tmp_path / "o")]) == 3
    assert str(bad) in capsys.readouterr().err
