"""jobs/_export_place: an export stands whole or not at all, and nothing else is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.errors import UsageError
from tfdyno.core.folder_lock import FolderLock
from tfdyno.jobs._export_place import check_place, digest, put, size_of, stage

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("old")
    with pytest.raises(UsageError, match="exists; name another place, or replace it with --force"):
        check_place(path, force=False)
    check_place(path, force=True)


def test_a_folder_that_is_no_export_is_not_even_taken_by_force(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    check_place(tmp_path / "photos", force=True)
    (tmp_path / "photos" / "one.jpg").write_text("")
    with pytest.raises(UsageError, match="holds no export"):
        check_place(tmp_path / "photos", force=True)


def test_there_has_to_be_a_folder_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        check_place(tmp_path / "none" / "a.onnx", force=False)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    with pytest.raises(UsageError, match="no permission"):
        check_place(tmp_path / "a.onnx", force=False)


def test_the_stage_is_gone_however_the_block_ends(tmp_path: Path) -> None:
    def stopped() -> None:
        with stage(tmp_path / "out") as folder:
            (folder / "half").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_is_swept_and_what_still_runs_is_not(tmp_path: Path) -> None:
    dead, alive = tmp_path / ".out.export-dead", tmp_path / ".out.export-alive"
    dead.mkdir()
    alive.mkdir()
    held = FolderLock(alive)
    with stage(tmp_path / "out") as folder:
        assert sorted(tmp_path.iterdir()) == sorted([alive, folder])
    held.close()


def test_the_export_that_a_kill_caught_aside_is_put_back(tmp_path: Path) -> None:
    aside = tmp_path / ".out.export-dead" / "old"
    aside.mkdir(parents=True)
    (aside / "saved_model.pb").write_text("before")
    with stage(tmp_path / "out"):
        assert (tmp_path / "out" / "saved_model.pb").read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_force_takes_neither_what_is_read_nor_a_file_for_a_folder(tmp_path: Path) -> None:
    model = tmp_path / "cnn" / "1" / "saved_model.pb"
    model.parent.mkdir(parents=True)
    model.write_text("")
    for place in (model.parent, model.parent.parent):
        with pytest.raises(UsageError, match="is what is read, or holds it"):
            check_place(place, force=True, needed=(model.parent,))
    (tmp_path / "train.py").write_text("")
    with pytest.raises(UsageError, match="is a file, and a folder is written"):
        check_place(tmp_path / "train.py", force=True, is_folder=True)
    assert (tmp_path / "train.py").exists()


@pytest.mark.parametrize("old", ["none", "file", "folder"])
@pytest.mark.parametrize("new", ["file", "folder"])
def test_a_file_or_folder_replaces_either(old: str, new: str, tmp_path: Path) -> None:
    def make(path: Path, kind: str, text: str) -> None:
        if kind == "folder":
            path.mkdir()
            (path / "part").write_text(text)
        elif kind == "file":
            path.write_text(text)

    made, place = tmp_path / "made", tmp_path / "place"
    make(made, new, "new")
    make(place, old, "old")
    put(made, place)
    assert [one.name for one in tmp_path.iterdir()] == ["place"]
    assert (place / "part" if new == "folder" else place).read_text() == "new"


def test_the_digest_of_a_folder_is_of_names_and_contents_without_the_record(tmp_path: Path) -> None:
    for name, text in (("a", "1"), ("b", "2")):
        (tmp_path / name).write_text(text)
    first = digest(tmp_path)
    (tmp_path / "export.json").write_text("{}")
    assert digest(tmp_path) == first
    (tmp_path / "b").rename(tmp_path / "c")
    assert digest(tmp_path) != first
    assert size_of(tmp_path) == 4
