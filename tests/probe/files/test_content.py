from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.probe.files.content import content_of as content_by

if TYPE_CHECKING:
    from pathlib import Path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def content_of(path: Path, without: frozenset[str] = frozenset()) -> str:
    return content_by(path, sha256, without=without)


def test_a_file_is_its_sha256(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"hello")
    assert content_of(file) == hashlib.sha256(b"hello").hexdigest()


def folder(place: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def test_a_folder_is_the_names_and_contents_in_it(tmp_path: Path) -> None:
    files = {"a": "1", "b/c": "2"}
    one = content_of(folder(tmp_path / "one", files))
    assert content_of(folder(tmp_path / "same", dict(reversed(files.items())))) == one
    for number, other in enumerate(({"a": "1", "b/c": "3"}, {"a": "1", "b/d": "2"}, {"a": "1"},
                                    {**files, "x": ""})):  # fmt: skip
        assert content_of(folder(tmp_path / str(number), other)) != one


def test_caches_and_what_is_left_out_change_nothing(tmp_path: Path) -> None:
    place = folder(tmp_path / "one", {"a": "1"})
    before = content_of(place)
    folder(place, {"__pycache__/a.pyc": "x", ".git/HEAD": "x", "tfdyno-project/history": "x"})
    assert content_of(place, without=frozenset({"tfdyno-project"})) == before
    assert content_of(place) != before


def test_a_link_is_what_it_leads_to_and_one_that_leads_nowhere_is_nothing(tmp_path: Path) -> None:
    place = folder(tmp_path / "one", {"a": "1"})
    whole = content_of(folder(tmp_path / "two", {"a": "1", "b": "1"}))
    (place / "b").symlink_to("a")
    (place / "gone").symlink_to("nowhere")
    assert content_of(place) == whole


def test_a_linked_folder_is_what_it_leads_to(tmp_path: Path) -> None:
    folder(tmp_path / "v1", {"x": "1", "deep/y": "2"})
    folder(tmp_path / "v2", {"x": "3"})
    place = folder(tmp_path / "data", {"a": "1"})
    (place / "train").symlink_to("../v1")
    linked = content_of(place)
    assert linked == content_of(
        folder(tmp_path / "whole", {"a": "1", "train/x": "1", "train/deep/y": "2"})
    )
    (tmp_path / "v1" / "x").write_text("4")
    edited = content_of(place)
    (place / "train").unlink()
    removed = content_of(place)
    (place / "train").symlink_to("../v2")
    assert len({linked, edited, removed, content_of(place)}) == 4


def test_links_that_lead_back_or_to_one_folder_twice_end(tmp_path: Path) -> None:
    place = folder(tmp_path / "one", {"a/x": "1"})
    before = content_of(place)
    (place / "a" / "loop").symlink_to("..")
    looped = content_of(place)
    (place / "b").symlink_to("a")
    assert len({before, looped, content_of(place)}) == 3
    for number in range(12):  # each leads to all: without a memory of them this takes forever
        folder(place / f"n{number}", {"x": ""})
        (place / f"n{number}" / "all").symlink_to("..")
    assert content_of(place) == content_of(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("1")
    file.chmod(0)
    with pytest.raises(UsageError, match="cannot read"):
        content_of(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*gone: No such file"):
        content_of(tmp_path / "gone")
