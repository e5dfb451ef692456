"""store/model_files: equal contents once, artefacts whole, damage by name."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.store import model_files
from tfdyno.store.model_files import OBJECTS, TEMPORARY, ModelFiles

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.deploy.model_version import Artefact


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    return ModelFiles(folder=tmp_path / "store")


def saved_model(folder: Path, graph: bytes = b"graph", weights: bytes = b"w" * 5000) -> Path:
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(graph)
    (folder / "variables" / "variables.data").write_bytes(weights)
    return folder


def put(files: ModelFiles, source: Path) -> Artefact:
    with files.shared():
        return files.put(source, "savedmodel" if source.is_dir() else "keras")


def inodes(folder: Path) -> set[int]:
    return {one.stat().st_ino for one in folder.rglob("*") if one.is_file()}


def test_a_folder_comes_back_with_its_files_which_may_not_be_written(
    files: ModelFiles, tmp_path: Path
) -> None:
    kept = put(files, saved_model(tmp_path / "a"))
    found = files.path(kept)
    assert (found / "variables" / "variables.data").read_bytes() == b"w" * 5000
    assert [one.path for one in kept.files] == ["saved_model.pb", "variables/variables.data"]
    assert (found / "saved_model.pb").stat().st_mode & 0o222 == 0
    assert files.faults(kept) == ()


def test_equal_files_are_stored_once(files: ModelFiles, tmp_path: Path) -> None:
    first = put(files, saved_model(tmp_path / "a"))
    second = put(files, saved_model(tmp_path / "b", graph=b"another"))
    again = put(files, saved_model(tmp_path / "c"))
    assert first.digest == again.digest != second.digest
    assert len(inodes(files.folder / OBJECTS)) == 3  # two graphs, one file of weights
    assert files.disk_bytes() == 5 + 7 + 5000
    assert list((files.folder / TEMPORARY).iterdir()) == []


def test_the_source_may_change_afterwards(files: ModelFiles, tmp_path: Path) -> None:
    source = tmp_path / "a.keras"
    source.write_bytes(b"one")
    kept = put(files, source)
    source.write_bytes(b"two")
    assert files.path(kept).read_bytes() == b"one"


@pytest.mark.parametrize("same_size", [True, False])
def test_damage_is_found_and_named_and_the_same_files_heal_it(
    files: ModelFiles, tmp_path: Path, same_size: bool
) -> None:
    source = saved_model(tmp_path / "a")
    kept = put(files, source)
    bad = files.path(kept) / "variables" / "variables.data"
    bad.chmod(0o644)
    bad.write_bytes(b"v" * 5000 if same_size else b"v")
    (said,) = files.faults(kept)
    assert said.startswith(str(bad))
    assert ("sha256" if same_size else "has 1 bytes instead of 5,000") in said
    assert put(files, source) == kept
    assert files.faults(kept) == ()


def test_a_missing_file_is_named(files: ModelFiles, tmp_path: Path) -> None:
    kept = put(files, saved_model(tmp_path / "a"))
    (files.path(kept) / "saved_model.pb").unlink()
    assert files.faults(kept)[0].endswith("saved_model.pb is missing")


def test_what_nobody_names_is_removed_with_its_bytes_told_before(
    files: ModelFiles, tmp_path: Path
) -> None:
    first = put(files, saved_model(tmp_path / "a"))
    put(files, saved_model(tmp_path / "b", graph=b"another"))
    left = files.folder / TEMPORARY / "of-a-kill"
    left.mkdir()
    (left / "half").write_bytes(b"h" * 100)
    with files.alone():
        # the weights belong to the first, too
        assert files.remove({first.digest}, dry=True) == len(b"another") + 100
        assert files.remove({first.digest}) == len(b"another") + 100
        assert files.remove({first.digest}) == 0
    assert files.faults(first) == ()
    assert len(inodes(files.folder / OBJECTS)) == 2


def test_without_hard_links_every_artefact_has_its_own_files(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_words: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    kept = put(files, saved_model(tmp_path / "a"))
    assert files.faults(kept) == ()
    assert files.disk_bytes() == 5005
    with files.alone():
        assert files.remove(()) == 5005


def test_a_link_in_the_source_is_refused_and_nothing_is_left(
    files: ModelFiles, tmp_path: Path
) -> None:
    source = saved_model(tmp_path / "a")
    (source / "outside").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="outside is a link"):
        put(files, source)
    assert inodes(files.folder / OBJECTS) == set()
    assert list((files.folder / TEMPORARY).iterdir()) == []


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="No space left on device; free some space"):
        put(files, saved_model(tmp_path / "a"))
    assert list((files.folder / TEMPORARY).iterdir()) == []


def test_nothing_is_removed_while_somebody_adds(
    files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "PATIENCE_S", 0.05)
    with files.shared():
        with files.shared():
            pass
        with pytest.raises(ToolError, match="is in use"), files.alone():
            pass
    with files.alone():
        pass


@settings(max_examples=20)
@given(contents=st.lists(st.binary(max_size=20), min_size=1, max_size=6))
def test_the_digest_tells_contents_apart_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("digest")
    files = ModelFiles(folder=folder / "store")
    digests: dict[bytes, set[str]] = {}
    for place, content in enumerate(contents):
        source = folder / f"{place}.keras"
        source.write_bytes(content)
        digests.setdefault(content, set()).add(put(files, source).digest)
    assert all(len(found) == 1 for found in digests.values())
    assert len({next(iter(found)) for found in digests.values()}) == len(set(contents))
    assert len(inodes(files.folder / OBJECTS)) == len(set(contents))


def test_of_two_that_add_the_same_at_once_both_have_the_one_object(
    files: ModelFiles, tmp_path: Path
) -> None:
    for number in range(20):
        weights = number.to_bytes(2, "big") * 1000
        sources = [
            saved_model(
                tmp_path / f"{number}-{one}", graph=f"{number} {one}".encode(), weights=weights
            )
            for one in range(4)
        ]
        with ThreadPoolExecutor(4) as pool:
            kept = list(pool.map(lambda source: put(files, source), sources))
        places = [files.path(one) / "variables" / "variables.data" for one in kept]
        assert len({place.stat().st_ino for place in places}) == 1
