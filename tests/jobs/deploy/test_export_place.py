"""jobs/_export_place: an export stands whole or not at all, and nothing else is touched."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.jobs.deploy._export_place import check_place, digest, put, record_of, size_of, stage
from tfdyno.jobs.deploy.models import AddRequest, add
from tfdyno.store.model_store import ModelStore

if TYPE_CHECKING:
    from pathlib import Path

KILLED = """
import os, signal, sys
from pathlib import Path
from tfdyno.jobs.deploy._export_place import digest, put_with_record, stage
path, text, last = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
renamed, real = 0, Path.replace
def replace(self, target):
    global renamed
    found = real(self, target)
    renamed += Path(target) == path or Path(target).name == path.name + ".export.json"
    if last and renamed == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
Path.replace = replace
with stage(path) as folder:
    made = folder / "made"
    made.write_text(text)
    one = {"path": str(path), "sha256": digest(made),
           "verification": {"accuracy": {"after_ratio": float(text)}}}
    put_with_record(made, path, {"artefacts": [one]}, folder=folder)
"""
"""Exports a file that holds its accuracy, and is killed after so many renames."""


def export_killed(path: Path, text: str, after: int) -> int:
    words = [sys.executable, "-c", KILLED, str(path), text, str(after)]
    return subprocess.run(words, check=False).returncode


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
    held = lock_folder(alive)
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


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("second", [1, 2, 3])
def test_a_kill_between_a_file_and_its_record_leaves_either_with_what_is_true_of_it(
    first: int, second: int, tmp_path: Path
) -> None:
    path = tmp_path / "net.onnx"
    assert export_killed(path, "0.25", 0) == 0
    for text, after in (("0.5", first), ("0.75", second)):
        assert export_killed(path, text, after) == -signal.SIGKILL
        kept, _ = add(ModelStore(tmp_path / text), AddRequest(path=path))
        assert kept.lineage.metrics == {"accuracy": float(path.read_text())}
    assert export_killed(path, "1.0", 0) == 0
    record = json.loads((tmp_path / "net.onnx.export.json").read_text())
    assert list(record) == ["artefacts"]
    assert [one.name for one in tmp_path.glob(".*")] == []


def test_a_kill_before_the_file_is_there_leaves_no_file_that_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.with_name("net.onnx.export.json").write_text('{"artefacts": [{"sha256": "0"}]}')
    for after in (1, 2):
        assert export_killed(path, "0.5", after) == -signal.SIGKILL
        assert path.exists() == (after == 2)
    assert add(ModelStore(tmp_path / "store"), AddRequest(path=path))[1]


def test_a_file_that_had_no_record_has_none_while_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_text("0.25")
    assert export_killed(path, "0.5", 1) == -signal.SIGKILL
    record = json.loads(path.with_name("net.onnx.export.json").read_text())
    assert record_of(record, path) == {}
    assert add(ModelStore(tmp_path / "store"), AddRequest(path=path))[0].lineage.metrics == {}
