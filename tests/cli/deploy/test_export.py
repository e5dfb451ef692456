"""``tfdyno export``: wrong use is one sentence and exit code 2, before anything is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.exports import result, verification

from tfdyno.cli.main import main
from tfdyno.core.deploy.export import ExportResult, Gates
from tfdyno.core.messages.export import EXPORT

if TYPE_CHECKING:
    from tfdyno.jobs.deploy.export import ExportRequest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a model that is never loaded."""
    monkeypatch.chdir(tmp_path)
    none = replace(EXPORT, module="no.such.module")
    monkeypatch.setattr("tfdyno.jobs.deploy.export.EXPORT", none)
    for name in ("model.keras", "taken.onnx"):
        Path(name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("nix.keras --to onnx --output a.onnx", "there is no file nix.keras"),
        ("model.keras --to onx --output a.onnx", "did you mean onnx?"),
        ("model.keras --to , --output a.onnx", "--to is empty"),
        ("model.keras --to onnx --output a.keras", "name it a.onnx"),
        ("model.keras --to savedmodel --output a.onnx", "savedmodel is a folder"),
        ("model.keras --to onnx --output taken.onnx", "replace it with --force"),
        ("model.keras --to onnx --output no/a.onnx", "there is no folder no"),
        ("model.keras --to onnx --output a.onnx --data b.csv", "give FILE.npz or file.py:function"),
        ("model.keras --to onnx --output a.onnx --data b.npz", "there is no file b.npz"),
        ("model.keras --to onnx --output a.onnx --max-difference nan", "nan is not possible"),
        ("model.keras --to onnx --output a.onnx --max-difference -1", "give 0 or more"),
        ("model.keras --to onnx --output a.onnx --max-accuracy-drop 1%", "needs rows with their"),
        ("model.keras --to onnx --output a.onnx --max-accuracy-drop 1", "write 1% or 0.01"),
        ("model.keras --to onnx --output a.onnx --max-accuracy-drop 2.5", "write 2.5% or 0.025"),
        ("model.keras --to onnx --output a.onnx --max-accuracy-drop 100%", "less than 100%"),
        ("model.keras --to onnx --output a.onnx --max-accuracy-drop 250", "less than 100%"),
        ("model.keras --to onnx --output a.onnx --python nix", "--python nix cannot be run"),
        ("model.keras --to torch --output a", "export to torch needs PyTorch"),
    ],
)
def test_wrong_use_is_one_sentence_and_leaves_nothing(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path.cwd().iterdir())
    assert main(["export", *words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.count("\n") == 1
    assert sorted(Path.cwd().iterdir()) == before


def test_a_failed_gate_is_exit_code_1_with_the_table_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gates = Gates(max_difference=0.0)
    found = result(("onnx", verification(1e-6)), gates=gates)
    monkeypatch.setattr("tfdyno.jobs.deploy.export.export", lambda *_, **__: found)
    assert main("export model.keras --to onnx --output a.onnx --html page.html".split()) == 1
    out, _ = capsys.readouterr()
    assert "onnx did not pass and is not kept" in out
    assert "1.0e-06" in out
    assert "did not pass" in Path("page.html").read_text()


def test_shares_may_be_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ExportRequest] = []

    def made(request: ExportRequest, **_: object) -> ExportResult:
        asked.append(request)
        return result(("onnx", verification()))

    monkeypatch.setattr("tfdyno.jobs.deploy.export.check", lambda request: request)
    monkeypatch.setattr("tfdyno.jobs.deploy.export.export", made)
    line = "export model.keras --to ONNX,onnx,keras --output a --max-accuracy-drop 1% --data d.npz"
    assert main(line.split()) == 0
    [request] = asked
    assert request.formats == ("onnx", "keras")
    assert request.gates.max_accuracy_drop_ratio == 0.01
