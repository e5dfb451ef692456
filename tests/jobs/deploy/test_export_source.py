"""jobs/_export_source: what may be exported, and what is told of the rest."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.jobs.deploy._export_source import export_source
from tfdyno.jobs.deploy.models import AddRequest, add, model_store, promote


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of everything."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFDYNO_STORE", str(tmp_path / "store"))
    Path("model.keras").write_text("")
    Path("train.py").write_text("")
    for place in ("saved", "served/2", "served/10", "run", "empty", "unfinished"):
        Path(place).mkdir(parents=True)
    for place in ("saved", "served/2", "served/10"):
        Path(place, "saved_model.pb").write_text("")
    Path("run/run.json").write_text("{}")
    Path("run/model.keras").write_text("")
    Path("unfinished/run.json").write_text("{}")


@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [
        ("model.keras", "keras_file", "model.keras"),
        ("train.py:cnn", "function", ""),
        ("package.module:cnn", "function", ""),
        ("keras:ResNet50", "application", ""),
        ("saved", "savedmodel", "saved"),
        ("served", "savedmodel", "served/10"),
        ("run", "keras_file", "run/model.keras"),
    ],
)
def test_a_model_may_be_named_in_seven_ways(text: str, kind: str, path: str) -> None:
    found = export_source(text)
    assert (found.kind, found.path) == (kind, path)
    assert (found.sha256 != "") == (text not in ("keras:ResNet50", "package.module:cnn"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("modl.keras", "did you mean model.keras?"),
        ("tran.py:cnn", "did you mean train.py?"),
        ("train.py", "name its function: train.py:build_model"),
        ("old.h5", "is in the old HDF5 format"),
        ("empty", "has no saved_model.pb and no run.json"),
        ("unfinished", "holds a run without its model"),
        ("nothing here", "names no model"),
    ],
)
def test_anything_else_is_told_with_what_to_give(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*$") as error:
        export_source(text)
    assert told in str(error.value)


def kept(name: str, count: int, ending: str = ".keras") -> None:
    """Versions of a model in the store, each with other files."""
    for number in range(count):
        path = Path(f"{number}{ending}")
        path.unlink(missing_ok=True)
        if ending == ".keras":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("config.json", f"{number}")
        else:
            path.write_bytes(b"    TFL3")
        add(model_store(), AddRequest(path=path, name=name))


def test_a_name_of_the_store_is_its_promoted_version_else_its_newest() -> None:
    kept("sums", 2)
    newest = export_source("sums")
    assert (newest.reference, newest.kind) == ("sums:2", "keras_file")
    promote(model_store(), "sums:1")
    assert export_source("sums").reference == "sums:1"
    second = export_source("sums:2")
    assert (second.path, second.sha256) == (newest.path, newest.sha256)
    assert len(second.sha256) == 64


def test_a_name_of_the_store_that_cannot_be_exported_is_told_why() -> None:
    kept("sums", 1)
    kept("tiny", 1, ".tflite")
    for text, told in (
        ("sums:2", "sums has no version 2: it has 1"),
        ("sum", "did you mean sums of the model store"),
        ("tiny", "tiny:1 is kept as litert"),
    ):
        with pytest.raises(UsageError, match=told):
            export_source(text)


def test_a_damaged_version_of_the_store_is_not_exported() -> None:
    kept("sums", 1)
    path = Path(export_source("sums").path)
    path.chmod(0o644)
    path.write_bytes(b"0")
    with pytest.raises(ToolError, match="sums:1 is damaged"):
        export_source("sums")


def test_a_file_here_goes_before_a_name_of_the_store() -> None:
    kept("saved", 1)
    assert export_source("saved").path == "saved"
