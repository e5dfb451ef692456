from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tests import past_runs

from tfdyno.jobs.project import walk
from tfdyno.jobs.project.results import Reader
from tfdyno.jobs.project.walk import Walk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(past_runs.DOCUMENTS, tmp_path / "answers")
    return tmp_path


def test_stores_and_documents_are_found_in_order_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b.json", "a.txt", "results.sqlite", "study.sqlite", "other.sqlite", "a.json"):
        (tmp_path / name).touch()
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "run.json").touch()
    found = [str(path.relative_to(tmp_path)) for path in Walk(folder=tmp_path).files()]
    assert found == ["a.json", "b.json", "results.sqlite", "study.sqlite", "0/run.json"]


def test_what_a_walk_leaves_out_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder / "1" / "2" / "3" / "4" / "5"
    deep.mkdir(parents=True)
    shutil.copy(folder / "answers" / "bench.json", deep)
    bench = (folder / "answers" / "bench.json").stat().st_size
    monkeypatch.setattr(walk, "MOST_BYTES", bench - 1)
    found = Reader(folder=folder).shelf()
    assert not [one for one in found.results if one.place.endswith("bench.json")]
    large, far = found.troubles
    assert large.startswith(".json files above ")
    assert far.startswith("folders more than 4 levels down not read: 1 ")


def test_the_walk_ends_after_the_most_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (folder / "0" / name).mkdir(parents=True)
        shutil.copy(folder / "answers" / "bench.json", folder / "0" / name)
    monkeypatch.setattr(walk, "MOST_FOLDERS", 3)  # the folder, 0, 0/a
    found = Reader(folder=folder).shelf()
    assert [one.place for one in found.results] == ["0/a/bench.json"]
    assert found.troubles == ("only the first 3 folders read (name one of them with --folder)",)
