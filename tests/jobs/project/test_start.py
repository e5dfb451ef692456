"""Beginning a project."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.project.start import start


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "my shop"
    here.mkdir()
    (here / "train.py").write_text("")
    (here / "model.keras").write_text("")
    monkeypatch.chdir(here)
    return here


def raw(path: str) -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(Path(path).read_text())


def test_it_is_named_after_its_folder_as_the_store_takes_names() -> None:
    assert start(Path("project.toml"), "train.py").name == "my-shop"
    assert raw("project.toml")["steps"]["keep"]["name"] == "my-shop"


def test_a_workload_is_written_as_seen_from_the_file() -> None:
    Path("sub").mkdir()
    start(Path("sub/project.toml"), "train.py:make")
    assert raw("sub/project.toml")["steps"]["train"]["workload"] == "../train.py:make"
    start(Path("sub/other.toml"), "shop.model:make")
    assert raw("sub/other.toml")["steps"]["train"]["workload"] == "shop.model:make"


def test_a_saved_model_has_nothing_to_train() -> None:
    assert "train" not in {step.name for step in start(Path("p.toml"), "model.keras").steps}


@pytest.mark.parametrize(
    ("file", "workload", "message"),
    [
        ("train.py", "train.py", r"train\.py is there already"),
        ("none/p.toml", "train.py", "there is no folder none"),
        ("p.toml", "trian.py", r"no file trian\.py; did you mean train\.py\?"),
        ("p.toml", "keras:ResNet50", "brings no data to train on; .*tfdyno advise keras:ResNet50"),
        ("p.toml", "what is this", "names no workload"),
    ],
)
def test_what_cannot_begin_is_told_and_nothing_is_written(
    file: str, workload: str, message: str, folder: Path
) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(UsageError, match=message):
        start(Path(file), workload)
    assert sorted(folder.rglob("*")) == before
