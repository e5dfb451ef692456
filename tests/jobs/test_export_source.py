"""jobs/_export_source: what may be exported, and what is told of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfdyno.core.errors import UsageError
from tfdyno.jobs._export_source import export_source


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of everything."""
    monkeypatch.chdir(tmp_path)
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
