from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.deploy.model_version import Lineage
from tfdyno.jobs.deploy.model_reference import (
    check_stored,
    fingerprint,
    is_code,
    is_servable,
    resolve,
)
from tfdyno.store.model_store import ModelStore

if TYPE_CHECKING:
    from pathlib import Path


def saved_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    return folder


def test_a_keras_file_is_version_1_by_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "cnn.keras"
    file.write_bytes(b"zip")
    found = resolve(str(file))
    assert (found.name, found.versions, found.kind) == ("cnn", ((1, file),), "keras")


def test_a_saved_model_is_version_1_unless_its_folder_is_a_number(tmp_path: Path) -> None:
    plain = resolve(str(saved_model(tmp_path / "cnn")))
    assert (plain.name, [v for v, _ in plain.versions]) == ("cnn", [1])
    numbered = resolve(str(saved_model(tmp_path / "net" / "7")))
    assert (numbered.name, [v for v, _ in numbered.versions]) == ("net", [7])


def test_numbered_folders_are_versions_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in ("10", "9"):
        saved_model(tmp_path / "net" / number)
    (tmp_path / "net" / "11").mkdir()  # nothing in it yet
    (tmp_path / "net" / "notes").mkdir()
    found = resolve(str(tmp_path / "net"))
    assert (found.kind, [version for version, _ in found.versions]) == ("versions", [9, 10])


def test_a_function_in_a_script_has_no_version_yet() -> None:
    found = resolve("train.py:build_model")
    assert (found.name, found.versions, found.kind) == ("train", (), "function")


@pytest.mark.parametrize(
    ("text", "name"), [("keras:ResNet50", "ResNet50"), ("nets.small:build", "build")]
)
def test_a_model_by_the_name_of_its_code_has_no_version_yet(text: str, name: str) -> None:
    assert is_code(text)
    assert (resolve(text).name, resolve(text).versions) == (name, ())


@pytest.mark.parametrize("text", ["net", "net:3", "a/net.keras", "a/net"])
def test_what_was_saved_is_no_code(text: str) -> None:
    assert not is_code(text)


@pytest.mark.parametrize(
    ("made", "named", "expected"),
    [
        ("notes.txt", "notes.txt", "neither a .keras file nor a SavedModel"),
        ("cnn/saved_model.pb", "cnn/saved_model.pb", "name its folder"),
        ("empty/readme", "empty", "holds no SavedModel"),
        ("x", "gone.keras", "there is no model"),
        ("x", "no/such", "there is no model"),
    ],
)
def test_what_is_no_model_is_refused_with_what_to_name(
    made: str, named: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / made).parent.mkdir(exist_ok=True)
    (tmp_path / made).write_bytes(b"")
    with pytest.raises(UsageError, match=expected):
        resolve(str(tmp_path / named))


def test_a_folder_of_hugging_face_is_told_where_it_can_be_served(tmp_path: Path) -> None:
    (tmp_path / "chat").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "chat" / name).write_bytes(b"")
    with pytest.raises(UsageError, match=r"chat is a folder of Hugging Face: .* --render vllm"):
        resolve(str(tmp_path / "chat"))


def test_a_version_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    found = resolve(str(saved_model(tmp_path / "net" / "7")))
    with pytest.raises(UsageError, match="net has no version 8; there are 7"):
        found.path_of(8)


def test_a_change_of_any_file_changes_the_fingerprint(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "net")
    before = fingerprint(folder)
    assert fingerprint(folder) == before
    (folder / "variables").mkdir()
    (folder / "variables" / "variables.index").write_bytes(b"1")
    after = fingerprint(folder)
    assert len({before, after, ""}) == 3
    assert fingerprint(tmp_path / "gone") == ""


def test_a_folder_with_a_dot_in_its_name_is_a_model_and_an_onnx_file_is_not(tmp_path: Path) -> None:
    assert is_servable(saved_model(tmp_path / "net.v2"))
    assert is_servable(tmp_path / "net.keras")
    assert not is_servable(tmp_path / "net.onnx")


def test_a_stored_version_whose_files_were_changed_is_told_and_another_model_is_not_read(
    tmp_path: Path,
) -> None:
    store = ModelStore(tmp_path / "store")
    kept = store.add("cnn", saved_model(tmp_path / "cnn"), kind="savedmodel", lineage=Lineage(),
                     added_at="2026-11-23T12:00:00+00:00")[0]  # fmt: skip
    found = resolve("cnn", store=store.folder)
    check_stored(found, 1, store=store.folder)
    graph = kept.path / "saved_model.pb"
    graph.chmod(0o644)
    graph.write_bytes(b"other")
    with pytest.raises(ToolError, match="damaged"):
        check_stored(found, 1, store=store.folder)
    check_stored(resolve(str(kept.path)), 1, store=store.folder)
